"""Shell: who came to a broker that does not lead is told who does, so that nobody asks for metadata first (KIP-951).

*Source:* KIP-951; Kafka's `KafkaApis.handleProduceRequest` and `handleFetchRequest`, as observed on three brokers of
4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import ErrorCode
from ..machine.turnstile import run_at_once
from ..wire.messages import api_00_produce as produce
from ..wire.messages import api_01_fetch as fetch
from .broker_nodes import NO_NODE, BrokerNodes
from .replica_selection import ReplicaSelection

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Generator, Iterable, Iterator

    from ..config.broker import BrokerConfig
    from ..contracts.api_handler import RequestContext
    from ..metadata.image import BrokerEndpoint, BrokerImage, MetadataImage
    from ..partitions.replicas import Replicas

FIRST_PRODUCE_VERSION: Final = 10
FIRST_FETCH_VERSION: Final = 16
LEADER_ERRORS: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class Leader(NamedTuple):
    """Who leads a partition, -1 for nobody, and since when."""

    leader_id: int
    leader_epoch: int


class CurrentLeaders:
    """Looks up who leads. Owned by the reactor's task; asked only for answers in which something failed.

    Attributes:
        selection: Which replica a consumer reads from, that of the leader or another.
    """

    def __init__(self, *, replicas: Replicas, image: Callable[[], MetadataImage], selection: ReplicaSelection) -> None:
        """Make it over the replicas of this broker and the metadata."""
        self._replicas = replicas
        self._image = image
        self.selection = selection

    @classmethod
    def configured(cls, config: BrokerConfig, replicas: Replicas, image: Callable[[], MetadataImage]) -> CurrentLeaders:
        """Make it with the selection that the configuration names.

        Raises:
            ConfigError: There is no such selector.
        """
        return cls(replicas=replicas, image=image, selection=ReplicaSelection.configured(config, image))

    def tell_producer(self, response: produce.ProduceResponse, context: RequestContext) -> None:
        """Say in the answer who leads the partitions that this broker does not."""
        if context.api_version < FIRST_PRODUCE_VERSION:
            return
        leaders: list[Leader] = []
        for topic in response.responses:
            for part in topic.partition_responses:
                found = self._find(part.error_code, topic.name, topic.topic_id, part.index)
                if found is not None:
                    part.current_leader = produce.LeaderIdAndEpoch(
                        leader_id=found.leader_id, leader_epoch=found.leader_epoch
                    )
                    leaders.append(found)
        response.node_endpoints = [
            produce.NodeEndpoint(node_id=broker.broker_id, host=place.host, port=place.port, rack=broker.rack)
            for broker, place in self._nodes(leaders, context)
        ]

    def tell_reader(self, response: fetch.FetchResponse, context: RequestContext, *, is_follower: bool = False) -> None:
        """Say in the answer who leads the partitions that this broker does not; a follower knows where brokers are."""
        run_at_once(self.tell_reader_in_steps(response, context, is_follower=is_follower))

    def tell_reader_in_steps(
        self, response: fetch.FetchResponse, context: RequestContext, *, is_follower: bool
    ) -> Generator[None, None, None]:
        """Do as `tell_reader`; a step is a partition."""
        if context.api_version < FIRST_FETCH_VERSION:
            return
        leaders: list[Leader] = []
        for topic in response.responses:
            for part in topic.partitions:
                found = self._find(part.error_code, topic.topic, topic.topic_id, part.partition_index)
                if found is not None:
                    part.current_leader = fetch.LeaderIdAndEpoch(
                        leader_id=found.leader_id, leader_epoch=found.leader_epoch
                    )
                    leaders.append(found)
                yield
        if is_follower:
            return
        response.node_endpoints = [
            fetch.NodeEndpoint(node_id=broker.broker_id, host=place.host, port=place.port, rack=broker.rack)
            for broker, place in self._nodes(leaders, context)
        ]

    def _find(self, error_code: int, name: str, topic_id: uuid.UUID, partition: int) -> Leader | None:
        if error_code not in LEADER_ERRORS:
            return None
        topic = self._replicas.topics.get(name) or self._replicas.topics_by_id.get(topic_id)
        if topic is None:
            return None
        replica = topic.partitions.get(partition)
        if replica is not None:
            return Leader(replica.leader_id, replica.leader_epoch)
        state = topic.elsewhere.get(partition)
        return None if state is None else Leader(state.leader, state.leader_epoch)

    def _nodes(
        self, leaders: Iterable[Leader], context: RequestContext
    ) -> Iterator[tuple[BrokerImage, BrokerEndpoint]]:
        wanted = {leader.leader_id for leader in leaders} - {NO_NODE}
        if wanted:
            nodes = BrokerNodes(self._image(), context.connection.listener_name)
            yield from (node for broker_id, node in nodes.by_id.items() if broker_id in wanted)
