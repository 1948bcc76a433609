"""Shell: reads retry topics, here or on other brokers, and appends their dead letters, with a note of how far."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from ..classes import define, frozen
from ..contracts.tiering import RecordsAreRemoteError
from ..errors import ErrorCode, KafkaError, StorageError
from ..machine.turnstile import take_turn
from ..peers.errors import ClientError
from ..records.batch import iterate_batches
from ..retry.dead_reader import BEGIN, AbortedRange, DeadReader, Position
from ..types import IsolationLevel, TopicPartition
from .dead_letter_batches import batches_of, note_of, position_in
from .leading import append_companion

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ..machine.clock import Clock
    from ..retry.dead_reader import DeadGroup
    from ..types import Buffer
    from .dead_letter_batches import TakenLetters
    from .replica import Replica
    from .replicas import Replicas
    from .staged_writes import StagedWrites

log = logging.getLogger(__name__)

FETCH_BYTES: Final = 1 << 20
FETCH_BYTES_MAX: Final = 1 << 30
BATCH_BYTES_MAX: Final = 1 << 19
BATCHES_PER_TURN: Final = 64
"""So many batches in which nothing died are looked at before others come."""
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
                has_more = await self._take(taking, self._read_here(taking)) or has_more
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
        except RecordsAreRemoteError:
            assert source.tiered_log is not None, "only what is in a store is brought near"
            source.tiered_log.begin_cold_read(taking.position.offset, taking.bytes_max, self._on_more)
        except KafkaError:  # a bug of its storage: it went offline, which was told; or what is far cannot be had now
            self._replicas.progressed((source,))
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
                    if self._goes_on(taking, position):
                        has_more = await self._take(taking, found.get(taking.source)) or has_more
                if has_more:
                    self._on_more()
        except (ClientError, KafkaError, OSError) as error:  # it is gone for now: others are taken from
            log.debug("dead letters: broker %d: %s", node_id, error)
        except Exception:
            sources = ", ".join(str(taking.source) for taking in takings)
            log.exception(
                "dead letters: what broker %d has of %s cannot be taken, and is asked for again", node_id, sources
            )
        finally:
            del self._asking[node_id]

    # --------------------------------------------------------------------------------------------------------- appends

    async def _take(self, taking: Taking, read: SourceRead | None) -> bool:
        """Append the dead letters of what was read, others coming in between; return whether there is more to be read.

        Cancelled: what was appended is, with its note.
        """
        if read is None or not self._is_led(taking):
            return False
        before = taking.position
        if read.moved_to is not None:
            self._tell(taking, f"{taking.source} has no offset {before.offset}: goes on at {read.moved_to}")
            taking.position = Position(read.moved_to, min(before.last_origin, read.moved_to - 1))
        elif not await self._take_batches(taking, read):
            return False
        if taking.unnoted_bytes >= NOTE_BYTES and not self._append_note(taking):
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

    def _goes_on(self, taking: Taking, position: Position) -> bool:
        """Return whether a partition is led as it was, and was taken up to this very position and by nobody further.

        To be asked whenever others came in between: one of them may have taken from who led the source before.
        """
        is_known = self._takings.get(taking.replica) is taking and taking.position is position
        return is_known and self._is_led(taking)

    async def _take_batches(self, taking: Taking, read: SourceRead) -> bool:
        """Append the dead letters of batches, batch by batch; return whether all were looked at."""
        reader = DeadReader(taking.position, read.aborted)
        for number, batch in enumerate(read.batches):
            if number % BATCHES_PER_TURN == BATCHES_PER_TURN - 1 and not await self._after_others(taking):
                return False
            offset = taking.position.offset
            try:
                reader.read(batch)
                parts = self._letters_of(taking, reader.take_groups())
                for part in parts:
                    if not self._append(taking, part) or not await self._after_others(taking):
                        return False
            except Exception as error:  # what the source has: it is looked at again, and nothing behind it is taken
                self._tell(taking, f"{taking.source}: offset {offset} or what follows cannot be judged: {error!r}")
                return False
            next_offset = max(reader.next_offset, taking.position.offset)
            if next_offset != taking.position.offset:
                taking.position = taking.position._replace(offset=next_offset)
            taking.unnoted_bytes += len(batch)
        if reader.unreadable:
            self._tell(taking, f"{taking.source}: what died at {', '.join(reader.unreadable)}; passed over")
        return True

    async def _after_others(self, taking: Taking) -> bool:
        """Let others come first; return whether it goes on as if they had not."""
        position = taking.position
        await take_turn()
        return self._goes_on(taking, position)

    def _letters_of(self, taking: Taking, groups: Sequence[DeadGroup]) -> Iterator[TakenLetters]:
        """Iterate over what is to be appended of what was found."""
        rules = taking.replica.settings.rules
        return batches_of(
            groups,
            partition=taking.source.partition,
            topic_id=taking.topic_id,
            epoch=taking.epoch,
            now_ms=self._clock.now_ms(),
            compression=rules.compression,
            bytes_max=min(BATCH_BYTES_MAX, rules.max_message_bytes),
        )

    def _append(self, taking: Taking, part: TakenLetters) -> bool:
        """Append some dead letters with their note; return whether that went well."""
        if not self._stage(taking, part.note, part.records):
            return False
        taking.position = part.position
        self.taken_count += part.records_count
        return True

    def _append_note(self, taking: Taking) -> bool:
        """Append the note alone; return whether that went well."""
        now_ms = self._clock.now_ms()
        note = note_of(taking.position, taking.topic_id, crc=None, epoch=taking.epoch, now_ms=now_ms)
        return self._stage(taking, note, None)

    def _stage(self, taking: Taking, note: bytearray, records: bytearray | None) -> bool:
        try:
            append_companion(taking.replica, note, records)
            self._writes.stage(taking.replica)
        except KafkaError:
            return False  # it leads no more, or its disk failed, which was told
        except Exception as error:  # its disk's, or a plugin's: its partition pays, nobody else
            self._replicas.fail(taking.replica, error)
            return False
        taking.unnoted_bytes = 0
        return True

    def _keep_note(self, taking: Taking) -> None:
        """Append the note again where the log begins behind it: a replica that begins there is to know it, too."""
        replica, ledger = taking.replica, taking.replica.delays
        assert ledger is not None, "it keeps the notes"
        if -1 < ledger.last_delivery_offset < replica.log.log_start_offset and self._is_led(taking):
            self._append_note(taking)

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
        KafkaError: It has gone offline.
    """
    offset = taking.position.offset
    try:
        read = source.read(
            offset, taking.bytes_max, IsolationLevel.READ_COMMITTED, is_follower=False, at_least_one=True
        )
    except KafkaError as error:
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        offsets = source.offsets
        return SourceRead(moved_to=min(max(offset, offsets.log_start_offset), offsets.last_stable_offset))
    if not read.size_bytes:
        return SourceRead()
    records = read.data if isinstance(read.data, (bytes, memoryview)) else read.data.read()
    aborted = source.producers.transactions.aborted_between(offset, read.next_offset)
    ranges = [AbortedRange(each.producer_id, each.first_offset) for each in aborted]
    return read_of(records, ranges, source.last_stable_offset)


def read_of(records: Buffer, aborted: Sequence[AbortedRange], last_stable_offset: int) -> SourceRead:
    """Return what a Fetch, or a read, has brought: whole batches.

    Args:
        records: They; not changed as long as the result is used.
        aborted: The aborted transactions that reach into them.
        last_stable_offset: Where more may be read up to.

    Raises:
        CorruptRecordsError: These are no batches.
    """
    view = memoryview(records)
    batches: list[Buffer] = []
    next_offset = last_stable_offset
    for at, header in iterate_batches(view):
        batches.append(view[at : at + header.length_bytes])
        next_offset = header.next_offset
    return SourceRead(batches, len(view), aborted, is_cut=next_offset < last_stable_offset)
