"""Shell: what brokers and controllers ask the controller for themselves: each API goes to the controller as it came.

*Source:* KIP-631 (registration, heartbeats), KIP-919 (controllers), KIP-497 (AlterPartition), KIP-730 (producer ids),
KIP-858 (directories).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...wire.messages.api_56_alter_partition import AlterPartitionResponse
from ...wire.messages.api_62_broker_registration import BrokerRegistrationResponse
from ...wire.messages.api_63_broker_heartbeat import BrokerHeartbeatResponse
from ...wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsResponse
from ...wire.messages.api_70_controller_registration import ControllerRegistrationResponse
from ...wire.messages.api_73_assign_replicas_to_dirs import AssignReplicasToDirsResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from .broker_connections import BrokerConnections

REGISTRATION: Final = 62
HEARTBEAT: Final = 63
ANSWERS: Final[Mapping[int, type[Any]]] = {
    56: AlterPartitionResponse,
    REGISTRATION: BrokerRegistrationResponse,
    HEARTBEAT: BrokerHeartbeatResponse,
    67: AllocateProducerIdsResponse,
    70: ControllerRegistrationResponse,
    73: AssignReplicasToDirsResponse,
}
"""By API key, what tells that a request is refused as a whole, by its `error_code`."""
LIFE_SIGNS: Final = frozenset({REGISTRATION, HEARTBEAT})
"""What a broker lives by: never behind other requests."""


class BrokerCallHandler:
    """Answers one API of brokers through the controller."""

    def __init__(self, api_key: int, *, calls: ControllerCalls, connections: BrokerConnections) -> None:
        """Make the handler of an API of `ANSWERS`; `connections` are told who is heard of by which."""
        self.api_key = api_key
        self.waits_for_nobody = api_key in LIFE_SIGNS
        self._calls = calls
        self._connections = connections

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Answer once all that it rests on is durable. Cancelled: the node is stopping."""
        answer = await context.wait_aside(lambda: self._calls.ask(request))
        if self.api_key == REGISTRATION:
            self._connections.heard(context.connection, request.broker_id, answer.broker_epoch)
        elif self.api_key == HEARTBEAT:
            self._connections.heard(context.connection, request.broker_id, request.broker_epoch)
        return answer

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails as a whole."""
        return ANSWERS[self.api_key](error_code=code)
