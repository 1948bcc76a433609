"""Shell: FindCoordinator (key 10): the broker that coordinates a group or a transactional id.

That is the leader of the key's partition in the coordinator's topic. A topic that is not there yet is asked for; until
it is, the answer is COORDINATOR_NOT_AVAILABLE and clients ask again.

*Source:* KIP-98 (key types), KIP-699 (many keys, version 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode, KafkaError, error_code
from ...plugin_system.missing_roles import ROLE_OF_KEY_TYPE
from ...wire.messages.api_10_find_coordinator import Coordinator, FindCoordinatorResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...contracts.api_handler import Answer, RequestContext
    from ...coordinator.runtime import Runtime
    from ...metadata.image import MetadataImage
    from ...wire.messages.api_10_find_coordinator import FindCoordinatorRequest

FIRST_VERSION_WITH_MANY_KEYS: Final = 4
SUCCESS_TEXT: Final = "NONE"
"""What Kafka gives as the message of a success before version 4; later it is empty."""
SILENT: Final = frozenset({ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Codes without a message from version 4 on."""


class FindCoordinatorHandler:
    """Answers FindCoordinator from the current image."""

    api_key = 10
    pieces = ListPieces("coordinator_keys", answers=["coordinators"])

    def __init__(
        self,
        *,
        runtimes: Mapping[int, Runtime],
        image: Callable[[], MetadataImage],
        create_topics: Callable[[Iterable[str]], None],
    ) -> None:
        """Make the handler.

        Args:
            runtimes: By key type.
            image: The current image.
            create_topics: Asks the controller for topics of these names; does not wait.
        """
        self._runtimes = runtimes
        self._image = image
        self._create_topics = create_topics

    def handle(self, request: FindCoordinatorRequest, context: RequestContext) -> Answer:
        """Answer with the coordinator of each key, in the order of the keys."""
        keys = request.coordinator_keys if context.api_version >= FIRST_VERSION_WITH_MANY_KEYS else [request.key]
        return _response([self._find(key, request.key_type, context) for key in keys], context.api_version)

    def _find(self, key: str, key_type: int, context: RequestContext) -> Coordinator:
        try:
            return self._found(key, key_type, context.connection.listener_name)
        except KafkaError as error:
            return _failed(key, error.code, error.detail)

    def _found(self, key: str, key_type: int, listener_name: str) -> Coordinator:
        """Return where a key is coordinated.

        Raises:
            KafkaError: INVALID_REQUEST for a key type that nobody coordinates, else COORDINATOR_NOT_AVAILABLE.
        """
        runtime = self._runtimes.get(key_type)
        if runtime is None:
            role = ROLE_OF_KEY_TYPE.get(key_type)
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"no active plugin of the broker {role.name}" if role else "")
        image = self._image()
        name = runtime.coordinator.topic
        topic = image.topics_by_name.get(name)
        if topic is None:
            self._create_topics([name])
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        broker = image.brokers.get(topic.partitions[runtime.partition_for(key)].leader)
        listener = broker.listeners.get(listener_name) if broker is not None and not broker.is_fenced else None
        if broker is None or listener is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Coordinator(key=key, node_id=broker.broker_id, host=listener.host, port=listener.port)

    def error_response(
        self, request: FindCoordinatorRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every key this error."""
        keys = request.coordinator_keys if context.api_version >= FIRST_VERSION_WITH_MANY_KEYS else [request.key]
        return _response([_failed(key, code) for key in keys], context.api_version)


def _failed(key: str, code: ErrorCode, detail: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=detail)


def _response(coordinators: list[Coordinator], version: int) -> FindCoordinatorResponse:
    """Return the response in the form of its version: one coordinator at the top, or a list."""
    for each in coordinators:
        code = error_code(each.error_code)
        is_silent = version >= FIRST_VERSION_WITH_MANY_KEYS and code in SILENT
        told = each.error_message or (code.text if code else SUCCESS_TEXT)
        each.error_message = "" if is_silent else told
    if version >= FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(coordinators=coordinators)
    (one,) = coordinators
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )
