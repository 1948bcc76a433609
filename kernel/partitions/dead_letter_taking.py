"""Shell: reads retry topics, here or on other brokers, and appends their dead letters, with a note of how far."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from ..classes import define, frozen
from ..errors import KafkaError, StorageError
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
    from .dead_letter_batches import TakenLetters
    from .replica import Replica
    from .replicas import Replicas
    from .staged_writes import StagedWrites

log = logging.getLogger(__name__)

FETCH_BYTES: Final = 1 << 20
FETCH_BYTES_MAX: Final = 1 << 30
BATCH_BYTES_MAX: Final = 1 << 19
NOTE_BYTES: Final = 16 << 20
"""After so much in which nothing had died the position is noted alone: the next leader need not read it again."""


@frozen
class SourceRead:
    """What was read of a retry topic's partition.

    Attributes:
        batches: From the position on, below the last stable offset.
        size_bytes: Of them.
        aborted: The aborted transactions that reach into them.
        is_cut: Whether there is more below the last stable offset.
        moved_to: Where the log begins, or ends, where the position is outside of it; None where it is not.
    """

    batches: Sequence[Buffer] = ()
    size_bytes: int = 0
    aborted: Sequence[AbortedRange] = ()
    is_cut: bool = False
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
    unnoted_bytes: int = 0
    told: str = ""


class DeadLetterTaking:
    """Keeps how far each partition was taken in the epoch that it is led in. Owned by `DeadLetters`.

    Attributes:
        taken_count: How many dead letters were taken.
        has_come_on: Whether any source brought something since that was last set to False.
    """

    def __init__(
        self, *, node_id: int, replicas: Replicas, writes: StagedWrites, clock: Clock, on_more: Callable[[], None]
    ) -> None:
        """Begin; nothing is known but what the logs say. `on_more` is called when another broker has more."""
        self._node_id = node_id
        self._replicas = replicas
        self._writes = writes
        self._clock = clock
        self._on_more = on_more
        self._takings: dict[Replica, Taking] = {}
        self._asking: dict[int, trio.CancelScope] = {}
        self.taken_count = 0
        self.has_come_on = False

    async def take_some(
        self,
        due: Sequence[tuple[Replica, TopicPartition, int, uuid.UUID]],
        others: OtherLeaders | None,
        handler_nursery: trio.Nursery,
    ) -> bool:
        """Read each source that is led here; return whether any has more. Other brokers are asked beside.

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
            self._keep_note(taking)
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
        """Read a source that is led here; None where it is not, or cannot be read now: nobody else pays for that."""
        source = self._replicas.find(*taking.source)
        if source is None or source.partition.topic_id != taking.topic_id:  # a namesake, or not heard of yet
            return None
        if not source.is_leader or not self._replicas.is_served(source):
            return None
        try:
            return _read(source, taking)
        except StorageError as error:
            self._tell(taking, f"{taking.source} cannot be read: {error}")
        except Exception as error:  # a bug of its storage
            self._replicas.fail(source, error)
        return None

    async def _take_from(
        self, others: OtherLeaders, node_id: int, takings: Collection[Taking], scope: trio.CancelScope
    ) -> None:
        """Take what another broker has; what cannot be had now is asked for again.

        What comes late, when another leader was asked meanwhile, or the topic is another one, is of no use any more.
        """
        asked = [(taking, taking.position) for taking in takings]
        wanted = [Wanted(each.source, each.topic_id, each.position.offset, each.bytes_max) for each in takings]
        try:
            with scope:
                found = await others.read(node_id, wanted)
                has_more = False
                for taking, position in asked:
                    if self._takings.get(taking.replica) is taking and taking.position == position:
                        has_more = self._take(taking, found.get(taking.source)) or has_more
                if has_more:
                    self._on_more()
        except Exception as error:  # it is gone, or has a bug: others are taken from
            log.debug("dead letters: broker %d: %s", node_id, error)
        finally:
            del self._asking[node_id]

    # --------------------------------------------------------------------------------------------------------- appends

    def _take(self, taking: Taking, read: SourceRead | None) -> bool:
        """Append the dead letters of what was read; return whether there is more to be read at once."""
        if read is None or not self._is_led(taking):
            return False
        before = taking.position
        try:
            letters, position = self._letters_of(taking, read)
        except Exception as error:  # what the source has: it is looked at again, and nothing behind it is taken
            self._tell(taking, f"{taking.source}: offset {before.offset} or what follows cannot be judged: {error!r}")
            return False
        if not self._append(taking, letters, position, read.size_bytes):
            return False
        if taking.position != before:
            self.has_come_on = True
            taking.bytes_max = FETCH_BYTES
            return read.is_cut
        if read.is_cut and taking.bytes_max < FETCH_BYTES_MAX:
            taking.bytes_max *= 2  # a companion and its batch come together
            return True
        return False

    def _is_led(self, taking: Taking) -> bool:
        replica = taking.replica
        return replica.is_leader and replica.leader_epoch == taking.epoch and self._replicas.is_served(replica)

    def _letters_of(self, taking: Taking, read: SourceRead) -> tuple[list[TakenLetters], Position]:
        """Return what is to be appended of what was read, and where the reader stands then."""
        position = taking.position
        if read.moved_to is not None:
            self._tell(taking, f"{taking.source} has no offset {position.offset}: goes on at {read.moved_to}")
            return [], Position(read.moved_to, min(position.last_origin, read.moved_to - 1))
        reader = DeadReader(position, read.aborted)
        for batch in read.batches:
            reader.read(batch)
        if reader.unreadable:
            self._tell(taking, f"{taking.source}: what died at {', '.join(reader.unreadable)}; passed over")
        rules = taking.replica.settings.rules
        letters = batches_of(
            reader.groups,
            partition=taking.source.partition,
            topic_id=taking.topic_id,
            epoch=taking.epoch,
            now_ms=self._clock.now_ms(),
            compression=rules.compression,
            bytes_max=min(BATCH_BYTES_MAX, rules.max_message_bytes),
        )
        made = list(letters)
        last = made[-1].position if made else position
        return made, last._replace(offset=max(reader.next_offset, last.offset))

    def _append(self, taking: Taking, letters: Sequence[TakenLetters], position: Position, size_bytes: int) -> bool:
        """Append dead letters, and now and then the note alone; return whether that went well."""
        try:
            for part in letters:
                append_delivery(taking.replica, part.note, part.records)
                self._writes.stage(taking.replica)
                taking.position = part.position
                self.taken_count += part.records_count
            taking.position = position
            taking.unnoted_bytes = 0 if letters else taking.unnoted_bytes + size_bytes
            if taking.unnoted_bytes >= NOTE_BYTES:
                self._append_note(taking)
        except KafkaError:
            return False  # it leads no more, or its disk failed, which was told
        except Exception as error:  # its disk's, or a plugin's: its partition pays, nobody else
            self._replicas.fail(taking.replica, error)
            return False
        return True

    def _append_note(self, taking: Taking) -> None:
        now_ms = self._clock.now_ms()
        note = note_of(taking.position, taking.topic_id, crc=None, epoch=taking.epoch, now_ms=now_ms)
        append_delivery(taking.replica, note, None)
        self._writes.stage(taking.replica)
        taking.unnoted_bytes = 0

    def _keep_note(self, taking: Taking) -> None:
        """Append the note again where the log begins behind it: a replica that begins there is to know it, too."""
        replica, ledger = taking.replica, taking.replica.delays
        assert ledger is not None, "it keeps the notes"
        if -1 < ledger.last_delivery_offset < replica.log.log_start_offset and self._is_led(taking):
            taking.unnoted_bytes = NOTE_BYTES
            self._append(taking, (), taking.position, 0)

    @staticmethod
    def _tell(taking: Taking, what: str) -> None:
        """Say once what is wrong."""
        if taking.told != what:
            taking.told = what
            log.warning("dead letters: %s", what)


def _read(source: Replica, taking: Taking) -> SourceRead:
    """Return what a source that is led here has below its last stable offset, as much as is asked for.

    Raises:
        StorageError: It cannot be read.
    """
    offsets = source.offsets
    offset = taking.position.offset
    stable_end = offsets.last_stable_offset
    if not offsets.log_start_offset <= offset <= offsets.log_end_offset:
        return SourceRead(moved_to=min(max(offset, offsets.log_start_offset), stable_end))
    batches: list[Buffer] = []
    size_bytes = 0
    end_offset = offset
    is_cut = False
    for batch in source.log.batches(offset, stable_end) if offset < stable_end else ():
        header = read_header(batch)
        if header.base_offset >= stable_end:
            break
        if batches and size_bytes + len(batch) > taking.bytes_max:
            is_cut = True
            break
        batches.append(bytes(batch))
        size_bytes += len(batch)
        end_offset = header.next_offset
    aborted = source.producers.transactions.aborted_between(offset, end_offset)
    ranges = [AbortedRange(each.producer_id, each.first_offset) for each in aborted]
    return SourceRead(batches, size_bytes, ranges, is_cut=is_cut)
