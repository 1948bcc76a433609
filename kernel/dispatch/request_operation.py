"""Pure core: a request that waits in a purgatory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..purgatory.delayed_operation import DelayedOperation

if TYPE_CHECKING:
    from ..contracts.api_handler import RequestContext


class RequestOperation(DelayedOperation):
    """A waiting request: owned by its connection, ended with it."""

    __slots__ = ("context",)

    def __init__(self, deadline_ms: int, context: RequestContext) -> None:
        super().__init__(deadline_ms, context.connection)
        self.context = context

    def fail(self, reason: str) -> None:
        """Give up: there is no answer, the connection is closed."""
        self.context.fail(reason)
