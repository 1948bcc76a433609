"""Shell: what handlers have in common that answer what is short at once, and what is long in slices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ..contracts.api_handler import AS_TASK
from ..machine.turnstile import run_at_once, run_in_slices

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..contracts.api_handler import Answer, RequestContext


class SteppedHandler(ABC):
    """Answers in steps; a subclass says what they are, and what is too much to be answered at once."""

    @abstractmethod
    def is_long(self, request: Any, context: RequestContext) -> bool:
        """Return whether an answer is so much that others are to be served in between; see `are_many`."""

    @abstractmethod
    def answer_in_steps(self, request: Any, context: RequestContext) -> Generator[None, None, Any]:
        """Make the answer; yield after each partition, topic or the like."""

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Answer at once unless it is long."""
        if self.is_long(request, context):
            return AS_TASK
        answer: Answer = run_at_once(self.answer_in_steps(request, context))
        return answer

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Answer what is long. Cancelled: nobody waits for it any more."""
        answer: Answer = await run_in_slices(self.answer_in_steps(request, context))
        return answer
