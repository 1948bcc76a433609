"""Shell: reads retry topics, here or on other brokers, and appends their dead letters, with a note of how far."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from ..classes import define, frozen
from ..errors import KafkaError
from ..machine.turnstile import take_turn
from ..records.batch import read_header
from ..retry.dead_reader import BEGIN, AbortedRange, DeadReader, Position
from ..types import TopicPartition
from .dead_letter_batches import batches_of, note_of, position_in
from .leading import append_delivery

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..machine.clock import Clock
    from ..types import Buffer
    from .replica import Replica
    from .replicas import Replicas
    from .staged_writes import StagedWrites

log = logging.getLogger(__name__)

FETCH_BYTES: Final = 1 << 20
FETCH_BYTES_MAX: Final = 1 << 30
BATCH_BYTES_MAX: Final = 1 << 19


@frozen
class SourceRead:
    """What was read of a retry topic's partition.

    Attributes:
        batches: From the position on, below the last stable offset.
        size_bytes: Of them.
        aborted: The aborted transactions that reach into them.
        moved_to: Where the log begins, or ends, where the position is outside of it; None where it is not.
    """

    batches: Sequence[Buffer] = ()
    size_bytes: int = 0
    aborted: Sequence[AbortedRange] = ()
    moved_to: int | None = None


class Wanted(NamedTuple):
    """What is asked of another broker: a partition of a topic's id, from where on, and how much."""

    partition: TopicPartition
    topic_id: uuid.UUID
    offset: int
    bytes_max: int


class OtherLeaders(Protocol):
    """Reads partitions that other brokers lead."""

    async def read(self, node_id: int, wanted: Sequence[Wanted]) -> Mapping[TopicPartition, SourceRead]:
        """Return what a broker has of partitions; those that it does not lead, or cannot read, are left out.

        Raises:
            ClientError: It is not reached.
            KafkaError: It does not speak the same version.
        """
        ...


@define(eq=False)
class Taking:
    """One dead-letter partition that is led here, and how far its source was taken in this epoch."""

    replica: Replica
    epoch: int
    source: TopicPartition
    topic_id: uuid.UUID
    position: Position = BEGIN
    bytes_max: int = FETCH_BYTES
    told: str = ""


class DeadLetterTaking:
    """Keeps how far each partition was taken in the epoch that it is led in. Owned by `DeadLetters`.

    Attributes:
        taken_count: How many dead letters were taken.
    """

    def __init__(
        self, *, node_id: int, replicas: Replicas, writes: StagedWrites, clock: Clock, on_more: Callable[[], None]
    ) -> None:
        """Begin; nothing is known but what the logs say. `on_more` is called when another broker may have more."""
        self._node_id = node_id
        self._replicas = replicas
        self._writes = writes
        self._clock = clock
        self._on_more = on_more
        self._takings: dict[Replica, Taking] = {}
        self._asking: dict[int, trio.CancelScope] = {}
        self.taken_count = 0

    async def take_some(
        self,
        due: Sequence[tuple[Replica, TopicPartition, int, uuid.UUID]],
        others: OtherLeaders | None,
        handler_nursery: trio.Nursery,
    ) -> bool:
        """Read each source that is led here; return whether any brought something. Other brokers are asked beside.

        One that does not answer holds up nobody else, and is not waited for when it leads no source any more.

        Args:
            due: The partitions that are led here, each with its source, who leads that, and its topic's id.
            others: The way to other brokers.
            handler_nursery: Has the tasks that ask them.
        """
        elsewhere: dict[int, list[Taking]] = {}
        has_more = False
        led = {replica for replica, *_ in due}
        self._takings = {replica: taking for replica, taking in self._takings.items() if replica in led}
        for replica, source, node_id, topic_id in due:
            taking = self._taking(replica, source, topic_id)
            if node_id == self._node_id:
                await take_turn()
                has_more = self._take(taking, self._read_here(taking)) or has_more
            elif node_id >= 0 and others is not None:
                elsewhere.setdefault(node_id, []).append(taking)
        for node_id in self._asking.keys() - elsewhere.keys():
            self._asking[node_id].cancel()
        for node_id, takings in elsewhere.items():
            if node_id not in self._asking and others is not None:
                scope = self._asking[node_id] = trio.CancelScope()
                name = f"dead letters of broker {node_id}"
                handler_nursery.start_soon(self._take_from, others, node_id, takings, scope, name=name)
        return has_more

    def _taking(self, replica: Replica, source: TopicPartition, topic_id: uuid.UUID) -> Taking:
        taking = self._takings.get(replica)
        key = (replica.leader_epoch, source, topic_id)
        if taking is None or (taking.epoch, taking.source, taking.topic_id) != key:
            assert replica.delays is not None, "it keeps the notes"
            taking = self._takings[replica] = Taking(replica, *key)
            taking.position = position_in(replica.delays.last_delivery, topic_id)
        return taking

    # ----------------------------------------------------------------------------------------------------------- reads

    def _read_here(self, taking: Taking) -> SourceRead | None:
        """Read a source that is led here; None where it is not, or cannot be read now."""
        source = self._replicas.find(*taking.source)
        if source is None or not source.is_leader or not self._replicas.is_served(source):
            return None
        offsets = source.offsets
        offset = taking.position.offset
        stable_end = offsets.last_stable_offset
        if not offsets.log_start_offset <= offset <= offsets.log_end_offset:
            return SourceRead(moved_to=min(max(offset, offsets.log_start_offset), stable_end))
        batches: list[Buffer] = []
        size_bytes = 0
        end_offset = offset
        for batch in source.log.batches(offset, stable_end) if offset < stable_end else ():
            header = read_header(batch)
            if header.base_offset >= stable_end or (batches and size_bytes + len(batch) > taking.bytes_max):
                break
            batches.append(bytes(batch))
            size_bytes += len(batch)
            end_offset = header.next_offset
        aborted = source.producers.transactions.aborted_between(offset, end_offset)
        return SourceRead(batches, size_bytes, [AbortedRange(each.producer_id, each.first_offset) for each in aborted])

    async def _take_from(
        self, others: OtherLeaders, node_id: int, takings: Collection[Taking], scope: trio.CancelScope
    ) -> None:
        """Take what another broker has; what cannot be had now is asked for again."""
        wanted = [Wanted(each.source, each.topic_id, each.position.offset, each.bytes_max) for each in takings]
        try:
            with scope:
                found = await others.read(node_id, wanted)
                came_on = [self._take(taking, found.get(taking.source)) for taking in takings]
                if any(came_on):
                    self._on_more()
        except Exception as error:  # it is gone, or has a bug: others are taken from
            log.debug("dead letters: broker %d: %s", node_id, error)
        finally:
            del self._asking[node_id]

    # --------------------------------------------------------------------------------------------------------- appends

    def _take(self, taking: Taking, read: SourceRead | None) -> bool:
        """Append the dead letters of what was read; return whether the reader came on."""
        replica = taking.replica
        is_led = replica.is_leader and replica.leader_epoch == taking.epoch and self._replicas.is_served(replica)
        if read is None or not is_led:
            return False
        try:
            before = taking.position
            self._append(taking, read)
            self._keep_note(taking)
        except KafkaError:
            return False  # it leads no more, or its disk failed, which was told
        except Exception as error:  # its disk's, or a plugin's: its partition pays, nobody else
            self._replicas.fail(replica, error)
            return False
        if taking.position == before and read.size_bytes >= taking.bytes_max:
            taking.bytes_max = min(2 * taking.bytes_max, FETCH_BYTES_MAX)  # a companion and its batch come together
        return taking.position != before

    def _append(self, taking: Taking, read: SourceRead) -> None:
        if read.moved_to is not None:
            self._tell(taking, f"{taking.source} has no offset {taking.position.offset}: goes on at {read.moved_to}")
            taking.position = Position(read.moved_to, min(taking.position.last_origin, read.moved_to - 1))
            return
        reader = DeadReader(taking.position, read.aborted)
        for batch in read.batches:
            reader.read(batch)
        if reader.unreadable:
            self._tell(taking, f"{taking.source}: what died at {', '.join(reader.unreadable)}; passed over")
        replica = taking.replica
        for letters in batches_of(
            reader.groups,
            partition=taking.source.partition,
            topic_id=taking.topic_id,
            epoch=taking.epoch,
            now_ms=self._clock.now_ms(),
            compression=replica.settings.rules.compression,
            bytes_max=min(BATCH_BYTES_MAX, replica.settings.rules.max_message_bytes),
        ):
            append_delivery(replica, letters.note, letters.records)
            self._writes.stage(replica)
            taking.position = letters.position
            self.taken_count += letters.records_count
        taking.position = taking.position._replace(offset=max(reader.next_offset, taking.position.offset))

    def _keep_note(self, taking: Taking) -> None:
        """Append the note again where the log begins behind it: a replica that begins there is to know it, too."""
        replica, ledger = taking.replica, taking.replica.delays
        assert ledger is not None, "it keeps the notes"
        if -1 < ledger.last_delivery_offset < replica.log.log_start_offset:
            now_ms = self._clock.now_ms()
            note = note_of(taking.position, taking.topic_id, crc=None, epoch=taking.epoch, now_ms=now_ms)
            append_delivery(replica, note, None)
            self._writes.stage(replica)

    @staticmethod
    def _tell(taking: Taking, what: str) -> None:
        """Say once what is wrong."""
        if taking.told != what:
            taking.told = what
            log.warning("dead letters: %s", what)
