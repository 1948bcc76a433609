"""Shell: DescribeQuorum (key 55): who leads the metadata log, and how far its voters, here one, and its observers are.

A broker that keeps no metadata log has the controller answer.

*Source:* KIP-595, KIP-836 (times), KIP-853 (directory ids, nodes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode
from ...types import METADATA_TOPIC, ZERO_ID
from ...wire.messages.api_55_describe_quorum import (
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...contracts.api_handler import Answer, RequestContext
    from ...machine.clock import Clock
    from ...metadata.controller_calls import ControllerCalls, ObserverView
    from ...metadata.image_source import ImageSource
    from ...wire.messages.api_55_describe_quorum import DescribeQuorumRequest

FIRST_VERSION_WITH_NODES: Final = 2
UNKNOWN: Final = "This server does not host this topic-partition."


class DescribeQuorumHandler:
    """Answers DescribeQuorum from the metadata log."""

    api_key = 55
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"])

    def __init__(
        self,
        *,
        broker_id: int,
        metadata: Callable[[], ImageSource],
        clock: Clock,
        observers: Callable[[], Mapping[int, ObserverView]],
        listeners: Sequence[tuple[str, str, int]] = (),
    ) -> None:
        """Make the handler.

        Args:
            broker_id: This node, the only voter.
            metadata: Returns the metadata log.
            clock: The only voter has always fetched just now.
            observers: Returns the brokers that follow, by id.
            listeners: Name, host and port of the controller's listeners; none: those of the broker.
        """
        self._broker_id = broker_id
        self._metadata = metadata
        self._clock = clock
        self._observers = observers
        self._listeners = [Listener(name=name, host=host, port=port) for name, host, port in listeners]

    def handle(self, request: DescribeQuorumRequest, context: RequestContext) -> Answer:
        """Answer at once; Kafka answers for the metadata partition only when nothing else is asked for."""
        if asks_for_metadata(request):
            return self._quorum(with_nodes=context.api_version >= FIRST_VERSION_WITH_NODES)
        return answer_each(request, lambda _topic, index: refusal(index))

    def _quorum(self, *, with_nodes: bool) -> DescribeQuorumResponse:
        metadata, now_ms = self._metadata(), self._clock.now_ms()
        image = metadata.image
        broker = image.brokers.get(self._broker_id)
        voter = ReplicaState(
            replica_id=self._broker_id,
            replica_directory_id=broker.log_dirs[0]
            if with_nodes and broker is not None and broker.log_dirs
            else ZERO_ID,
            log_end_offset=metadata.end_offset,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )
        partition = ResponsePartitionData(
            error_message="",
            leader_id=self._broker_id,
            leader_epoch=metadata.leader_epoch,
            high_watermark=image.offset + 1,
            current_voters=[voter],
            observers=[
                ReplicaState(
                    replica_id=broker_id,
                    replica_directory_id=observer.directory_id if with_nodes else ZERO_ID,
                    log_end_offset=observer.log_end_offset,
                    last_fetch_timestamp=observer.fetched_ms,
                    last_caught_up_timestamp=observer.caught_up_ms,
                )
                for broker_id, observer in sorted(self._observers().items())
            ],
        )
        listeners = broker.listeners.values() if broker is not None else ()
        node = Node(
            node_id=self._broker_id,
            listeners=self._listeners
            or [Listener(name=item.name, host=item.host, port=item.port) for item in listeners],
        )
        return DescribeQuorumResponse(
            error_message="",
            topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
            nodes=[node] if with_nodes else [],
        )

    def error_response(
        self, request: DescribeQuorumRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeQuorumResponse(error_code=code, error_message=detail)


class ForwardedQuorumHandler:
    """Answers DescribeQuorum of a broker whose metadata another node keeps, through that one."""

    api_key = 55

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: DescribeQuorumRequest, context: RequestContext) -> Answer:
        """Answer what the controller answers. Cancelled: the broker is stopping."""
        answer: DescribeQuorumResponse = await context.wait_aside(lambda: self._calls.ask(request))
        return as_of(context.api_version, answer)

    def error_response(
        self, request: DescribeQuorumRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeQuorumResponse(error_code=code, error_message=detail)


def as_of(version: int, answer: DescribeQuorumResponse) -> DescribeQuorumResponse:
    """Return an answer without what an older version cannot say: directories and nodes."""
    if version < FIRST_VERSION_WITH_NODES:
        answer.nodes = []
        parts = (part for topic in answer.topics for part in topic.partitions)
        for state in (state for part in parts for state in (*part.current_voters, *part.observers)):
            state.replica_directory_id = ZERO_ID
    return answer


def asks_for_metadata(request: DescribeQuorumRequest) -> bool:
    """Return whether it is the metadata log that is asked for, and nothing else."""
    asked = [(topic.topic_name, item.partition_index) for topic in request.topics for item in topic.partitions]
    return asked == [(METADATA_TOPIC, 0)]


def answer_each(
    request: DescribeQuorumRequest, tell: Callable[[str, int], ResponsePartitionData]
) -> DescribeQuorumResponse:
    """Return an answer that says of each partition what `tell` says of a topic's name and its number."""
    return DescribeQuorumResponse(
        error_message="",
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[tell(topic.topic_name, item.partition_index) for item in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def refusal(
    index: int,
    code: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    message: str = UNKNOWN,
    leader: tuple[int, int] | None = None,
) -> ResponsePartitionData:
    """Return what is said of a partition of which nothing is told, with who leads it in which epoch, where known."""
    part = ResponsePartitionData(partition_index=index, error_code=code, error_message=message)
    if leader is not None:
        part.leader_id, part.leader_epoch = leader
    return part
