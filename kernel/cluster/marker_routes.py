"""Shell: brings the ends of transactions to the leaders of partitions, on whatever brokers these are.

    led by this broker                      --> its own writer, by a plain call
    led by another                          --> WriteTxnMarkers, what goes to one broker together, so much in a request
    of a topic that is gone                 --> UNKNOWN_TOPIC_OR_PARTITION: nothing is left to be ended
    without a leader, or no answer came     --> a code after which the coordinator sends again, to who leads then

Whether a topic is gone the metadata of *this* broker says. It has every topic that a transaction it coordinates can
have reached: a partition is added by a coordinator that knows it, and whoever becomes coordinator after that one does
so by a later record of the same metadata log. Another broker that does not know a partition may be behind.

*Source:* KIP-98; Kafka's TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import attrs

from ..contracts.pieces import ITEMS_AT_ONCE
from ..errors import ErrorCode, error_code
from ..metadata.image import NO_LEADER
from ..purgatory.gathering import Gathered
from ..types import TopicPartition
from ..wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from .coordinator_admissions import by_topic
from .peer_batches import PeerBatches

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..contracts.election import PartitionState
    from ..contracts.transactions import MarkerWriter, TransactionMarker
    from ..metadata.image import MetadataImage
    from ..wire.messages.api_27_write_txn_markers import WriteTxnMarkersResponse
    from .peer_batches import BrokerRequests

MARKERS_MAX: Final = ITEMS_AT_ONCE
"""How many markers one request brings, one for each partition of each transaction."""
_GONE: Final = -2
_UNLED: Final = {NO_LEADER: ErrorCode.LEADER_NOT_AVAILABLE, _GONE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@attrs.frozen(eq=False)
class Sending:
    """A marker for partitions of one broker, and who is told what became of it there."""

    marker: TransactionMarker
    note: Callable[[TopicPartition, ErrorCode], None]

    def of(self, partitions: Sequence[TopicPartition]) -> Sending:
        """Return the same for some of its partitions."""
        return attrs.evolve(self, marker=attrs.evolve(self.marker, partitions=partitions))


class WritingMarkers:
    """The exchange WriteTxnMarkers. Pure."""

    purpose = "markers"

    def take(self, queue: deque[Sending]) -> list[Sending]:
        """Take markers off the front, until one of the same producer comes again: answers go by producers.

        What a transaction has too many of goes behind all others.
        """
        taken: dict[int, Sending] = {}
        room = MARKERS_MAX
        while queue and room and queue[0].marker.producer_id not in taken:
            sending = queue.popleft()
            partitions = sending.marker.partitions
            if len(partitions) > room:
                queue.append(sending.of(partitions[room:]))
                sending = sending.of(partitions[:room])
            taken[sending.marker.producer_id] = sending
            room -= len(sending.marker.partitions)
        return list(taken.values())

    def request(self, items: Sequence[Sending]) -> WriteTxnMarkersRequest:
        """Return the request."""
        return WriteTxnMarkersRequest(markers=[_writable(item.marker) for item in items])

    def answered(self, items: Sequence[Sending], response: WriteTxnMarkersResponse) -> None:
        """Tell each partition's code; one that is left out is not known to have its marker."""
        by_producer = {
            result.producer_id: {
                TopicPartition(topic.name, each.partition_index): error_code(each.error_code)
                for topic in result.topics
                for each in topic.partitions
            }
            for result in response.markers
        }
        for item in items:
            codes = by_producer.get(item.marker.producer_id, {})
            for partition in item.marker.partitions:
                item.note(partition, codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR))

    def failed(self, items: Sequence[Sending], code: ErrorCode) -> None:
        """Tell each partition why it is not known to have its marker."""
        for item in items:
            for partition in item.marker.partitions:
                item.note(partition, code)


def _writable(marker: TransactionMarker) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.is_commit,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(marker.partitions).items()
        ],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


class ClusterMarkerWriter:
    """The `MarkerWriter` of a broker of a cluster. Owned by the reactor's task.

    Attributes:
        batches: What is brought to other brokers; its `run` is a service.
    """

    def __init__(
        self,
        local: MarkerWriter,
        *,
        node_id: int,
        image: Callable[[], MetadataImage],
        brokers: BrokerRequests,
        timeout_ms: Callable[[], int],
    ) -> None:
        """Make it.

        Args:
            local: Writes to partitions that this broker leads.
            node_id: This broker.
            image: Returns the newest metadata.
            brokers: The way to the others.
            timeout_ms: Returns how long a request may take: `request.timeout.ms`.
        """
        self._local = local
        self._node_id = node_id
        self._image = image
        self.batches = PeerBatches(WritingMarkers(), brokers, timeout_ms)

    def write(self, marker: TransactionMarker, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        """Have a marker written and committed in each of its partitions; see `contracts.transactions.MarkerWriter`."""
        gathered: Gathered[TopicPartition, ErrorCode] = Gathered(marker.partitions, done)
        by_leader = _by_leader(self._image(), dict.fromkeys(marker.partitions))
        for leader, code in _UNLED.items():
            for partition in by_leader.pop(leader, ()):
                gathered.note(partition, code)

        def note(partition: TopicPartition, code: ErrorCode) -> None:
            gathered.note(partition, self._judged(partition, code))

        def note_all(codes: Mapping[TopicPartition, ErrorCode]) -> None:
            for partition, code in codes.items():
                note(partition, code)

        for leader, partitions in by_leader.items():
            part = attrs.evolve(marker, partitions=partitions)
            if leader == self._node_id:
                self._local.write(part, note_all)
            else:
                self.batches.put(leader, Sending(part, note))

    def _judged(self, partition: TopicPartition, code: ErrorCode) -> ErrorCode:
        """Return what a leader's code means: one that does not know a partition that exists is behind."""
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            (leader,) = _by_leader(self._image(), (partition,))
            return _UNLED.get(leader, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return code


def _by_leader(image: MetadataImage, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Return partitions by leader, `_UNLED` for those without one.

    Hot: all of a long transaction in one go, so it calls next to nothing for each.
    """
    found: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    name: str | None = None
    states: Sequence[PartitionState] = ()
    count = 0
    for partition in partitions:
        if partition.topic != name:
            name = partition.topic
            topic = image.topics_by_name.get(name)
            states = () if topic is None else topic.partitions
            count = len(states)
        number = partition.partition
        found[states[number].leader if 0 <= number < count else _GONE].append(partition)
    return found
