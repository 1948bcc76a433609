"""Shell: carries forward what waits in one partition below an offset: pieces, each kept before the next.

A piece is kept when it is committed, and synced to the leader's disk: what waits may have been there for years, and a
loss of power takes no more of it than it would have taken before. Then the log may start behind where it waited.

What waits for the end of its transaction is not carried: that ends soon, and until then its segment stays. Nor is what
a transaction that is open may withdraw: its copy would lie behind the withdrawal, and outlive it.

What was carried is old enough to be taken again when it is as old as the topic's retention. Where it is its size that
has it taken, in a log of which most waits, that would be at once, and for ever: so it waits for a day, or for twice as
many offsets behind it as records wait.

Of a log in two tiers the start stays where it is: only what waits begins later, and the segments below that may leave
the disk, or go. A follower of one does the same and appends nothing: it goes as far as its leader has carried.
"""

from __future__ import annotations

import logging
from itertools import repeat
from typing import TYPE_CHECKING, Final

from ..delay.carrying import carry
from ..delay.companion import COMPANION_OFFSETS, Companion, CompanionReader, build_companion
from ..delay.ledger import stretch_end
from ..machine.turnstile import SLICE_STEPS
from ..records.batch import CorruptRecordsError, read_header
from ..types import NO_PRODUCER_ID
from .delay_recovery import ENTRY_BYTES, kept_end
from .leading import advance_log_start, append_companion
from .recovery import BYTES_PER_STEP

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ..delay.companion import WaitingEntry
    from ..machine.clock import Clock
    from ..records.batch import BatchHeader
    from .changed_replicas import ChangedReplicas
    from .replica import Replica
    from .staged_writes import StagedWrites

log = logging.getLogger(__name__)

PIECE_BYTES: Final = 1 << 20
"""About so much is appended before it has to be kept and the log's start follows."""
PIECE_RECORDS: Final = 1 << 13
"""Or so many: as the log starts later, all of them come to count in one go."""
AGAIN_MS: Final = 24 * 60 * 60 * 1000
GROWN_TIMES: Final = 2


class Carrying:
    """What is under way in one partition. Owned by a task.

    Attributes:
        replica: Which.
        below: Retention wants what lies below gone, from the log or from the disk.
        carried_count: How many records were appended again.
    """

    def __init__(
        self, replica: Replica, below: int, *, writes: StagedWrites, clock: Clock, changed: ChangedReplicas
    ) -> None:
        """Begin where what waits does.

        Args:
            replica: It has a ledger, and leads or is in two tiers.
            below: Whole batches lie below this offset, all of them committed.
            writes: The way to the disk.
            clock: Whose wall clock says how old a batch is.
            changed: Told of a log that starts later.
        """
        assert replica.delays is not None, "only a replica with a ledger has something that waits"
        self.replica = replica
        self.below = below
        self.carried_count = 0
        self._writes = writes
        self._clock = clock
        self._changed = changed
        self._ledger = replica.delays
        self._leader_epoch = replica.leader_epoch
        self._is_leader = replica.is_leader
        # What waited below was carried, or was delivered.
        self._position = max(replica.log.log_start_offset, self._ledger.start_offset)
        self._committed_at: int | None = None  # when all below is committed and durable, the log may start later
        self._is_flush_asked_for = False
        self._is_stopped = False  # what lies at the position is not carried now
        self._piece_bytes = self._piece_records = 0

    def __repr__(self) -> str:
        return f"<Carrying: {self.replica.partition}, from {self._position} to {self.below}>"

    @property
    def goes_on(self) -> bool:
        """Whether the replica leads, or follows, as it did when this began."""
        replica = self.replica
        is_same = replica.leader_epoch == self._leader_epoch and replica.delays is self._ledger
        return is_same and replica.is_leader == self._is_leader and replica.offline_reason is None

    @property
    def _is_full(self) -> bool:
        return self._piece_bytes >= PIECE_BYTES or self._piece_records >= PIECE_RECORDS

    def step(self) -> Generator[None, None, bool]:
        """Carry one piece, or have the log start behind the one before; return False when there is no more to do.

        Raises:
            KafkaError: It does not lead any more.
            StorageError: The disk fails.
        """
        if not self.goes_on:
            return False
        if self._committed_at is not None:
            if not self._is_kept(self._committed_at):
                return True
            self._advance()
            self._committed_at = None
            if self._is_stopped or self._position >= self.below:
                return False
        yield from self._carry_piece()
        self._committed_at = self.replica.log.log_end_offset
        self._is_flush_asked_for = False
        return self.goes_on

    def _is_kept(self, end_offset: int) -> bool:
        """Return whether all below an offset is committed, and durable here: where it was carried from it may be."""
        replica = self.replica
        if kept_end(replica) >= end_offset:
            return True
        if replica.high_watermark >= end_offset and not self._is_flush_asked_for:
            self._is_flush_asked_for = True
            self._writes.ask_for_flush(replica)
        return False

    def _advance(self) -> None:
        replica, start = self.replica, min(self._position, self.below)
        first_open = self._ledger.first_open
        if first_open is not None:
            start = min(start, first_open)
        if replica.tiered_log is not None:
            self._ledger.start_advanced(start)
        elif start > replica.log.log_start_offset:
            advance_log_start(replica, start)
            self._changed.note((replica,))
            log.debug("%s: starts at offset %d, behind what was carried forward", replica.partition, start)

    def _carry_piece(self) -> Generator[None, None, None]:
        replica = self.replica
        self._piece_bytes = self._piece_records = 0
        self._carry_note()
        while not self._is_full and not self._is_stopped and self.goes_on:
            start = max(self._position, replica.log.log_start_offset)
            needed_at = self._ledger.needed_at(start, kept_end(replica))
            end = self.below if needed_at is None else min(needed_at, self.below)
            first_open = self._ledger.first_open
            if first_open is not None and first_open < end:  # it may be over, and wait, before the log starts later
                self._position, self._is_stopped = max(start, first_open), True
                return
            self._position = max(start, end)
            if self._position >= self.below:
                return
            yield from self._carry_stretch(min(self.below, stretch_end(self._position)))

    def _carry_note(self) -> None:
        """Append again how far dead letters were taken, of a log in two tiers: it is to be known from there on, too."""
        replica, ledger = self.replica, self._ledger
        if replica.tiered_log is None or not ledger.has_note_below(self.below):
            return
        if not self._is_leader:
            self._is_stopped = True
            return
        assert ledger.last_delivery is not None, "it has a note"
        note = Companion((ledger.last_delivery,), b"", None, is_delivery=True)
        append_companion(replica, build_companion(note, timestamp=self._clock.now_ms()))
        self._writes.stage(replica)

    def _carry_stretch(self, end_offset: int) -> Generator[None, None, None]:
        """Carry what waits from the position on below an offset, as far as a piece goes."""
        reader = CompanionReader()
        for batch in self.replica.log.batches(self._position):
            header = read_header(batch)
            for _ in range(1 + len(batch) // (ENTRY_BYTES if header.is_control else BYTES_PER_STEP)):
                yield
            if header.base_offset < self._position:
                continue  # it holds the position
            if not self.goes_on or (not reader.is_amidst and self._ends_at(header.base_offset, end_offset)):
                return
            yield from self._take(reader, batch, header)
            if self._is_stopped:
                return
            if not reader.is_amidst:
                self._position = header.next_offset
        self._is_stopped = True  # the log ends before it should, or amidst: another time there is more of it

    def _ends_at(self, offset: int, end_offset: int) -> bool:
        first_open = self._ledger.first_open
        self._is_stopped = first_open is not None and offset >= first_open
        is_end = self._is_stopped or offset >= end_offset or self._is_full
        if is_end:
            self._position = offset
        return is_end

    def _take(self, reader: CompanionReader, batch: memoryview, header: BatchHeader) -> Generator[None, None, None]:
        """Take the next batch; nothing is awaited between looking whether a record waits and appending it."""
        try:
            counted = reader.saw(batch, header)
        except CorruptRecordsError:
            return  # the ledger has told of it
        if counted is not None and not counted.companion.is_delivery:
            yield from self._carry(*counted)

    def _carry(self, header: BatchHeader, companion: Companion) -> Generator[None, None, None]:
        replica, ledger, offset = self.replica, self._ledger, header.base_offset
        if companion.producer_id != NO_PRODUCER_ID and _is_aborted(replica, offset, companion):
            return
        waiting = ledger.waiting_of(offset, companion)
        if not self._is_leader:
            self._is_stopped = bool(waiting)
            self._piece_records += len(companion.entries)
            return
        if not waiting:
            return
        now_ms = self._clock.now_ms()
        if companion.is_carried and header.max_timestamp > now_ms - AGAIN_MS:
            grown = replica.log.log_end_offset - offset
            self._is_stopped = grown < GROWN_TIMES * ledger.queue.waiting_count
            if self._is_stopped:
                return
        try:
            for batch in carry(offset, companion, self._still_waiting(waiting), now_ms):
                append_companion(replica, batch)
                self._writes.stage(replica)
                self._piece_bytes += len(batch)
                yield from repeat(None, SLICE_STEPS)  # to compress it took long enough
                if not self.goes_on:
                    return
        except CorruptRecordsError as error:
            ledger.on_unreadable(offset, error)  # nobody will ever read it: what is behind it goes on

    def _still_waiting(self, waiting: Iterable[WaitingEntry]) -> Iterator[WaitingEntry]:
        """Iterate over what was not delivered or withdrawn meanwhile, and count it as carried.

        It ends before what may be withdrawn soon: that, and all behind it, stays for now.
        """
        for entry in waiting:
            if not self._ledger.still_waits(entry):
                continue
            if self._ledger.may_be_withdrawn(entry):
                self._is_stopped = True
                return
            self._piece_records += 1
            self.carried_count += 1
            yield entry


def _is_aborted(replica: Replica, offset: int, companion: Companion) -> bool:
    origin = offset + COMPANION_OFFSETS
    aborted = replica.producers.transactions.aborted_between(origin, origin + 1)
    return any(each.producer_id == companion.producer_id for each in aborted)
