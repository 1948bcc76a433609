"""Shell: brings the ends of transactions to the partitions that this broker leads.

A marker is a control batch of one record. Its way is that of a produced batch with acks=all: judged by the partition's
producer state, staged, written at the end of the reactor's turn, answered once the high watermark has passed it::

    write(marker) --> each partition: judge, stage --> turn's end: one write --> all committed, or failed: done(codes)

A transaction may have thousands of partitions, and a thousand transactions may end at once: a turn takes a few hundred
markers, and the others wait for the turns behind it, those of each transaction in turn.

Partitions of a topic that a coordinator keeps its state in are left to that coordinator's runtime, whose shard has to
hear of the marker at its place among the records.

*Source:* KIP-98; KIP-890 on versions; Kafka's handling of WriteTxnMarkers.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from ..contracts.pieces import ITEMS_MAX
from ..errors import ErrorCode, KafkaError
from ..purgatory.delayed_operation import DelayedOperation, Outcome
from ..purgatory.gathering import Gathered
from ..records.batch import read_header
from ..records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from .leading import ACKS_ALL, AppendOrigin, append_as_leader

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from ..contracts.transactions import TransactionMarker
    from ..machine.clock import Clock
    from ..purgatory.purgatory import Purgatory
    from ..types import TopicPartition
    from .replica import Replica
    from .replicas import Replicas
    from .staged_writes import StagedWrites

log = logging.getLogger(__name__)

MARKERS_A_TURN: Final = ITEMS_MAX
"""How many markers are judged and staged in one turn, of all transactions together."""


class MarkerOwner(Protocol):
    """The runtime of a coordinator, as far as markers in its topic go."""

    def write_marker(self, partition: int, marker: TransactionMarker, done: Callable[[ErrorCode], None]) -> None:
        """Have a marker written, committed and replayed in one partition of the coordinator's topic.

        Args:
            partition: Where; of the marker's own partitions only this one is meant.
            marker: What.
            done: Called once, on the reactor's task, perhaps before this returns.
        """
        ...


class _MarkerOperation(DelayedOperation):
    """Waits until the marker's batches in this broker's own partitions are committed."""

    __slots__ = ("_open", "_parts", "_waiting")

    def __init__(
        self, deadline_ms: int, waiting: dict[Replica, int], parts: Gathered[TopicPartition, ErrorCode]
    ) -> None:
        """Take by replica the offset that its high watermark has to reach."""
        super().__init__(deadline_ms)
        self._waiting = waiting
        self._open = dict.fromkeys(waiting)
        self._parts = parts

    def is_ready(self) -> bool:
        """Return whether no partition is still on its way; one that is done is not looked at again."""
        while self._open:
            replica = next(iter(self._open))
            if self.code(replica) is None:
                return False
            del self._open[replica]
        return True

    def is_ready_for(self, key: Hashable) -> bool:
        """Return the same, at the cost of one partition while that one is not done."""
        replica: Replica = key  # type: ignore[assignment] # it waits under replicas and nothing else
        if self.code(replica) is None:
            return False
        self._open.pop(replica, None)
        return self.is_ready()

    def code(self, replica: Replica) -> ErrorCode | None:
        """Return what became of one partition, None as long as that is open."""
        if replica.offline_reason is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not replica.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE if replica.high_watermark >= self._waiting[replica] else None

    def finish(self, outcome: Outcome) -> None:
        """Tell every partition's code."""
        for replica in self._waiting:
            code = self.code(replica)
            self._parts.note(replica.topic_partition, ErrorCode.REQUEST_TIMED_OUT if code is None else code)


@attrs.define(eq=False)
class _Unwritten:
    """A marker, and the partitions in which it is still to be written."""

    marker: TransactionMarker
    partitions: deque[TopicPartition]
    parts: Gathered[TopicPartition, ErrorCode]

    def take(self, count_max: int) -> list[TopicPartition]:
        """Return the next partitions, which are written now."""
        return [self.partitions.popleft() for _ in range(min(count_max, len(self.partitions)))]


class LocalMarkerWriter:
    """The `MarkerWriter` over this broker's replicas. Owned by the reactor's task.

    Life: `write` at any time; `turn_ended` at the end of each turn of the reactor, before what is staged is written.
    """

    def __init__(
        self,
        *,
        replicas: Replicas,
        writes: StagedWrites,
        purgatory: Purgatory,
        clock: Clock,
        timeout_ms: Callable[[], int],
        owner_of: Callable[[str], MarkerOwner | None],
        want_turn: Callable[[], None],
    ) -> None:
        """Make the writer.

        Args:
            replicas: Where the partitions are.
            writes: Where markers are staged.
            purgatory: Where markers wait to be committed; checked with each progress of a replica.
            clock: Timestamps of markers, deadlines.
            timeout_ms: Returns how long a marker may take: `request.timeout.ms`.
            owner_of: Returns the runtime that owns a topic, None for ordinary topics.
            want_turn: Has a turn of the reactor end soon, at which `turn_ended` is called.
        """
        self._replicas = replicas
        self._writes = writes
        self._purgatory = purgatory
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._owner_of = owner_of
        self._want_turn = want_turn
        self._room = MARKERS_A_TURN
        self._unwritten: deque[_Unwritten] = deque()

    def write(self, marker: TransactionMarker, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        """Have a marker written and committed in each of its partitions; see `MarkerWriter`."""
        partitions = dict.fromkeys(marker.partitions)
        parts: Gathered[TopicPartition, ErrorCode] = Gathered(partitions, done)
        self._unwritten.append(_Unwritten(marker, deque(partitions), parts))
        self._go_on()

    def turn_ended(self) -> None:
        """Stage what earlier turns had no room for, as far as this one has."""
        self._room = MARKERS_A_TURN
        if self._unwritten:
            self._go_on()

    def _go_on(self) -> None:
        while self._unwritten and self._room:
            some = self._unwritten.popleft()
            partitions = some.take(self._room)
            self._room -= len(partitions)
            if some.partitions:
                self._unwritten.append(some)
            self._write(some.marker, partitions, some.parts)
        if self._unwritten:
            self._want_turn()

    def _write(
        self,
        marker: TransactionMarker,
        partitions: Iterable[TopicPartition],
        parts: Gathered[TopicPartition, ErrorCode],
    ) -> None:
        waiting: dict[Replica, int] = {}
        for partition in partitions:
            owner = self._owner_of(partition.topic)
            if owner is not None:
                _write_by_owner(owner, partition, marker, parts)
                continue
            try:
                replica = self._replicas.get(partition.topic, partition.partition)
                waiting[replica] = self._append(replica, marker)
            except KafkaError as error:
                parts.note(partition, error.code)
            except Exception:
                log.exception("a marker of producer %d for %s failed", marker.producer_id, partition)
                parts.note(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
        if waiting:
            deadline_ms = self._clock.monotonic_ms() + self._timeout_ms()
            self._purgatory.watch(_MarkerOperation(deadline_ms, waiting, parts), waiting)

    def _append(self, replica: Replica, marker: TransactionMarker) -> int:
        """Stage a marker; return the high watermark that commits it.

        Raises:
            KafkaError: It may not be written.
        """
        replica.producers.check_marker(
            marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_version
        )
        batch = marker_batch(marker, self._clock.now_ms())
        header = read_header(batch)
        append_as_leader(replica, batch, header, ACKS_ALL, origin=AppendOrigin.COORDINATOR)
        self._writes.stage(replica)
        return header.next_offset


def marker_batch(marker: TransactionMarker, now_ms: int) -> memoryview:
    """Return the control batch of a marker, without an offset yet."""
    kind = ControlRecordType.COMMIT if marker.is_commit else ControlRecordType.ABORT
    return memoryview(
        build_control_batch(
            [EndTransactionMarker(kind, marker.coordinator_epoch)],
            timestamp=now_ms,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
        )
    )


def _write_by_owner(
    owner: MarkerOwner, partition: TopicPartition, marker: TransactionMarker, parts: Gathered[TopicPartition, ErrorCode]
) -> None:
    owner.write_marker(partition.partition, marker, lambda code: parts.note(partition, code))
