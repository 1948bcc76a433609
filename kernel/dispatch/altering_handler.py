"""Shell: what AlterConfigs and IncrementalAlterConfigs share: the controller decides; durable when answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from ..contracts.pieces import ListPieces
from .controller_call import message_of
from .cordon_check import CordonCheck
from .long_requests import whole_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..config.alter import Alteration
    from ..config.broker import BrokerConfig
    from ..contracts.api_handler import Answer, RequestContext
    from ..errors import ErrorCode, KafkaError
    from ..metadata.controller_calls import ControllerCalls
    from ..metadata.image import MetadataImage


class AlteringHandler(ABC):
    """Base of the two handlers, which say what they read and what they answer with.

    Attributes:
        answer: The response.
        row: What tells of one resource in it.
    """

    pieces = ListPieces(
        "resources", answers=["responses"], items_max=10, long_frame_bytes=512, together="resource_type resource_name"
    )
    answer: ClassVar[type]
    row: ClassVar[type]

    def __init__(
        self,
        *,
        calls: ControllerCalls,
        broker_id: int,
        config: Callable[[], BrokerConfig],
        image: Callable[[], MetadataImage],
    ) -> None:
        """Make the handler; `calls` bring what is asked to the controller, but for what `CordonCheck` refuses."""
        self._calls = calls
        self._cordons = CordonCheck(broker_id, config, image)

    @abstractmethod
    def alteration(self, config: Any) -> Alteration:
        """Return what is to become of one key of a resource."""

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Answer once the change is durable. Cancelled: the broker is stopping."""
        whole = whole_of(context)  # whether it was sent on, a piece does not tell
        refusals = [
            self._cordons.refusal(
                resource.resource_type, resource.resource_name, map(self.alteration, resource.configs), whole
            )
            for resource in request.resources
        ]
        if any(refusals):
            return await self._ask_for_the_rest(request, refusals, context)
        return await context.wait_aside(lambda: self._calls.ask(request))

    async def _ask_for_the_rest(
        self, request: Any, refusals: Sequence[KafkaError | None], context: RequestContext
    ) -> Answer:
        """Have the controller alter what is not refused here, and return the answer to all of it."""
        kept = [resource for resource, refusal in zip(request.resources, refusals, strict=True) if refusal is None]
        rest = type(request)(resources=kept, validate_only=request.validate_only)
        answer = await context.wait_aside(lambda: self._calls.ask(rest))
        told = iter(answer.responses)
        answer.responses = [
            next(told) if refusal is None else self._told(resource, refusal.code, refusal.detail)
            for resource, refusal in zip(request.resources, refusals, strict=True)
        ]
        return answer

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that gives every resource this error."""
        text = message_of(code, detail)
        return self.answer(responses=[self._told(resource, code, text) for resource in request.resources])

    def _told(self, resource: Any, code: ErrorCode, text: str | None) -> Any:
        return self.row(
            error_code=code,
            error_message=text,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
