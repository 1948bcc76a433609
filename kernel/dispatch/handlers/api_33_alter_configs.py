"""Shell: AlterConfigs (key 33): the controller decides; durable when answered.

*Source:* KIP-133.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.alter import Alteration, AlterConfigOp
from ...contracts.pieces import ListPieces
from ...wire.messages.api_33_alter_configs import AlterConfigsResourceResponse, AlterConfigsResponse
from ..controller_call import message_of
from ..cordon_check import CordonCheck, ask_for_the_rest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...config.broker import BrokerConfig
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from ...metadata.image import MetadataImage
    from ...wire.messages.api_33_alter_configs import AlterConfigsRequest, AlterConfigsResource


class AlterConfigsHandler:
    """Answers AlterConfigs through the controller."""

    api_key = 33
    pieces = ListPieces(
        "resources", answers=["responses"], items_max=10, long_frame_bytes=512, together="resource_type resource_name"
    )

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

    async def handle_async(self, request: AlterConfigsRequest, context: RequestContext) -> Answer:
        """Answer once the change is durable. Cancelled: the broker is stopping."""
        refusals = [
            self._cordons.refusal(resource.resource_type, resource.resource_name, _alterations(resource), context)
            for resource in request.resources
        ]
        return await ask_for_the_rest(self._calls, request, refusals, AlterConfigsResourceResponse)

    def error_response(
        self, request: AlterConfigsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every resource this error."""
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(
                    error_code=code,
                    error_message=message_of(code, detail),
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in request.resources
            ]
        )


def _alterations(resource: AlterConfigsResource) -> Iterator[Alteration]:
    return (Alteration(config.name, AlterConfigOp.SET, config.value) for config in resource.configs)
