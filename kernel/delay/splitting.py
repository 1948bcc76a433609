"""Pure core: takes what is to be seen later out of a produced batch: bytes in, bytes out.

    produced:   | r0 | r1 after 5000 | r2 | r3 cancel |        a batch of one producer, sequences 7 to 10
    companion:  r1 waits, r3's name is withdrawn               a control batch, right before it
    the rest:   | r0 |    | r2 |    |                          offsets, sequences, transaction, codec as they were

Records are copied as they stand. A batch in which nothing asks for anything is not looked at record by record: it has
the common part of all the headers' names nowhere.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..classes import frozen
from ..errors import ErrorCode
from ..records.batch import TimestampType
from ..records.compression import CompressionType, compress
from ..records.produced import InvalidBatchError
from ..records.record_errors import RECORD_ERRORS_MAX
from ..records.run import GOES, STAYS, RecordRun
from ..records.thinned import emptied, thinned
from ..types import NO_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from .companion import CANCELLER_DUE, Companion, WaitingEntry, build_companion
from .headers import INT64_MAX, PREFIX, DelayHeaderError, parse_delay

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..records.batch import BatchHeader
    from ..types import Buffer

WAITING_RECORDS_MAX: Final = 1 << 14
"""So many of one batch may wait or withdraw: every replica takes note of them in one go."""
WAITING_BYTES_MAX: Final = 16 << 20
"""So many bytes may wait together, decompressed: whoever delivers one of them has all in memory."""
_SHOWN_IN_MESSAGE: Final = 3


@frozen
class Split:
    """A produced batch in two.

    Attributes:
        companion: What waits and what is withdrawn.
        rest: The batch without that.
        header: Of the rest.
    """

    companion: Companion
    rest: bytearray
    header: BatchHeader

    def sealed(self) -> bytearray:
        """Return the companion's batch, which counts with the rest as it is now.

        To be called when nothing of the rest changes any more but its offset and epoch: a leader may have stamped it.
        """
        companion = attrs.evolve(self.companion, crc=self.header.crc)
        if self.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            companion = attrs.evolve(companion, append_time_ms=self.header.max_timestamp)
        return build_companion(companion, timestamp=max(self.header.max_timestamp, 0))


def split_batch(
    batch: Buffer,
    header: BatchHeader,
    now_ms: int,
    delay_ms_max: int,
    rounding: Callable[[int, int], int] | None = None,
) -> Split | None:
    """Take out of a valid batch what is to be seen later, and what withdraws.

    Args:
        batch: As it was produced, and validated.
        header: Its header; not changed.
        now_ms: The wall clock.
        delay_ms_max: The topic's `odradek.delay.max.ms`.
        rounding: Makes a due time of that which is asked for, and the wall clock; None where it stays as it is.

    Returns:
        The batch in two; None where it stays as it is.

    Raises:
        InvalidBatchError: A record asks for what cannot be done; told by its index. Or too much would wait together:
            MESSAGE_TOO_LARGE, for which Kafka's producer sends it in parts. Nothing of the batch is kept.
        CorruptRecordsError: The records cannot be read.
    """
    run = RecordRun.of(batch, header)
    if PREFIX not in run.payload:
        return None
    flags, entries = _entries(run, now_ms, delay_ms_max, header.last_offset_delta)
    if not entries:
        return None
    if rounding is not None:
        entries = [_rounded(entry, now_ms, rounding) for entry in entries]
    kept = run.kept(bytes(flags))
    rest, rest_header = thinned(header, kept) if kept.records_count else emptied(header)
    is_transactional = header.is_transactional
    codec = CompressionType(header.compression_id)
    companion = Companion(
        entries=tuple(entries),
        payload=_waiting_payload(run, flags, entries, codec),
        codec=codec,
        base_timestamp=run.base_timestamp,
        append_time_ms=NO_TIMESTAMP if run.append_time_ms is None else run.append_time_ms,
        producer_id=header.producer_id if is_transactional else NO_PRODUCER_ID,
        producer_epoch=header.producer_epoch if is_transactional else NO_EPOCH,
    )
    return Split(companion, rest, rest_header)


def _entries(
    run: RecordRun, now_ms: int, delay_ms_max: int, last_offset_delta: int
) -> tuple[bytearray, list[WaitingEntry]]:
    """Return a flag for each record, whether it stays, and what the others ask for.

    Raises:
        InvalidBatchError: Some ask for what cannot be done.
    """
    flags = bytearray([STAYS]) * run.count
    entries: list[WaitingEntry] = []
    errors: list[tuple[int, str]] = []
    errors_count = 0
    last_delta = -1
    for index, record in enumerate(run.records()):
        if not record.headers:
            continue
        try:
            delay = parse_delay(record.headers, now_ms, delay_ms_max)
        except DelayHeaderError as error:
            errors_count += 1
            if len(errors) < RECORD_ERRORS_MAX:
                errors.append((index, str(error)))
            continue
        if delay is not None:
            delta = record.offset - run.base_offset
            if not last_delta < delta <= last_offset_delta:  # nobody else minds in what is not compressed
                raise _refusal([(index, f"its offset delta is {delta}, behind {last_delta}")], 1)
            last_delta = delta
            flags[index] = GOES
            if len(entries) >= WAITING_RECORDS_MAX:
                text = f"more than {WAITING_RECORDS_MAX} delayed records in one batch"
                raise InvalidBatchError(ErrorCode.MESSAGE_TOO_LARGE, text)
            due_ms = CANCELLER_DUE if delay.due_ms is None else delay.due_ms
            entries.append(WaitingEntry(due_ms, delta, NO_EPOCH, delay.id_digest))
    if errors:
        raise _refusal(errors, errors_count)
    return flags, entries


def _rounded(entry: WaitingEntry, now_ms: int, rounding: Callable[[int, int], int]) -> WaitingEntry:
    """Return an entry at the due time that its queue makes of that which was asked for.

    Raises:
        ValueError: That is an earlier one, or no time any more.
    """
    if entry.is_canceller:
        return entry
    due_ms = rounding(entry.due_ms, now_ms)
    if not entry.due_ms <= due_ms <= INT64_MAX:
        raise ValueError(f"the delay queue makes {due_ms} of the due time {entry.due_ms}: that is early, or never")
    return entry._replace(due_ms=due_ms)


def _waiting_payload(run: RecordRun, flags: bytearray, entries: list[WaitingEntry], codec: CompressionType) -> bytes:
    """Return the records that wait: those that go, but for cancellers.

    Raises:
        InvalidBatchError: They are too large together.
    """
    cancelling = {entry.origin for entry in entries if entry.is_canceller}
    waits = bytearray(STAYS if flag == GOES else GOES for flag in flags)
    if cancelling:
        for index, record in enumerate(run.raw()):
            if record.offset_delta in cancelling:
                waits[index] = GOES
    waiting = run.kept(bytes(waits))
    if len(waiting.payload) > WAITING_BYTES_MAX:
        text = f"the delayed records of one batch have {len(waiting.payload)} bytes, more than {WAITING_BYTES_MAX}"
        raise InvalidBatchError(ErrorCode.MESSAGE_TOO_LARGE, text)
    return compress(codec, waiting.payload) if waiting.records_count else b""


def _refusal(errors: list[tuple[int, str]], errors_count: int) -> InvalidBatchError:
    lines = (f"RecordError(batchIndex={index}, message='{line}')" for index, line in errors[:_SHOWN_IN_MESSAGE])
    text = (
        f"One or more records have been rejected due to {errors_count} record errors in total, "
        f"and only showing the first three errors at most: [{', '.join(lines)}]"
    )
    return InvalidBatchError(ErrorCode.INVALID_RECORD, text, record_errors=tuple(errors), is_from_log=True)
