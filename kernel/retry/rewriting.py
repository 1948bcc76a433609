"""Pure core: a batch of failed records becomes a companion in which all of them wait, or are dead: bytes in, bytes out.

    produced:   | r0 failed | r1 failed, attempt 2 | r2 failed, attempt 16 |     a batch of one producer
    companion:  r0' waits, r1' waits, r2' is dead                                a control batch, right before it
    the rest:   |           |                      |                       |     offsets, sequences as they were

What is written anew is larger than what came: by headers, by 20 bytes of an entry each, and by far where it came
compressed. So a batch of too many records, or that grows too large, is refused, as it is read: whoever reads what was
taken is never asked for more than it can hold.

So what holds of delayed records holds of failed ones (`kernel/delay`), and the ledger leaves a dead one to who takes it
to its topic. Every record is written anew, for its headers change.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ..classes import frozen
from ..delay.companion import DEAD_DUE, Companion, WaitingEntry
from ..delay.splitting import WAITING_BYTES_MAX, WAITING_RECORDS_MAX, Split
from ..errors import ErrorCode
from ..records.batch import HEADER_SIZE, read_header
from ..records.builder import BatchBuilder
from ..records.compression import DECOMPRESSED_BYTES_MAX, CompressionType
from ..records.produced import InvalidBatchError
from ..records.run import RecordRun
from ..records.thinned import emptied
from ..types import NO_EPOCH, NO_PRODUCER_ID
from .headers import dead_headers, read_failure, retried_headers

if TYPE_CHECKING:
    from ..records.batch import BatchHeader
    from ..records.record import Record
    from ..types import Buffer

WRITTEN_TIMES_MAX: Final = 4
"""Above what may wait of any batch, so many times what came may be written: its records are large themselves."""
WRITTEN_BYTES_MAX: Final = DECOMPRESSED_BYTES_MAX // 2
"""But never more: a dead letter gets headers once more, and has to be read then."""
DELAY_MS_MAX: Final = 315_576_000_000
"""Ten years: a policy that wants more has a bug, and must not make times that no clock knows."""


class Decision(Protocol):
    """Who says when a record is given back: `RetryPolicy.delay_ms`, chance already drawn."""

    def __call__(self, attempt: int, record: Record) -> int | None:
        """Return how long a record waits for an attempt, milliseconds; None for a dead one."""
        ...


class Spare(Protocol):
    """Who has records wait whose attempts are over: a circuit breaker."""

    def __call__(self, spared_times: int) -> int | None:
        """Return how long one waits more, milliseconds; None for one that is to die. Asked once for each.

        Args:
            spared_times: How often it was spared before.
        """
        ...


@frozen
class Owner:
    """Whose failed records these are.

    Attributes:
        topic: What the group reads.
        group: Its id.
    """

    topic: str
    group: str


def take_failed(
    batch: Buffer, header: BatchHeader, owner: Owner, decide: Decision, now_ms: int, spare: Spare | None = None
) -> Split:
    """Have all records of a batch wait until they are given back, but for dead ones.

    Args:
        batch: As it was produced, and validated.
        header: Its header; not changed.
        owner: Whose.
        decide: When each attempt is, or that there is none.
        now_ms: The wall clock.
        spare: Which of those for whom there is none wait all the same; None where all of them die.

    Raises:
        InvalidBatchError: Its offsets do not rise, or it is too large.
        CorruptRecordsError: The records cannot be read.
        ValueError: The policy asks for what is no delay.
    """
    if header.records_count > WAITING_RECORDS_MAX:
        told = f"{header.records_count} records in one batch: a retry topic takes {WAITING_RECORDS_MAX} at once"
        raise InvalidBatchError(ErrorCode.MESSAGE_TOO_LARGE, told)
    bytes_max = min(max(WAITING_BYTES_MAX, WRITTEN_TIMES_MAX * len(batch)), WRITTEN_BYTES_MAX)
    run = RecordRun.of(batch, header)
    builder = BatchBuilder(compression=CompressionType(header.compression_id))
    entries: list[WaitingEntry] = []
    last_delta = -1
    for index, record in enumerate(run.records()):
        delta = record.offset - run.base_offset
        if not last_delta < delta <= header.last_offset_delta:  # nobody else minds in what is not compressed
            told = f"its offset delta is {delta}, behind {last_delta}"
            raise InvalidBatchError(
                ErrorCode.INVALID_RECORD, f"record {index}: {told}", record_errors=((index, told),), is_from_log=True
            )
        last_delta = delta
        due_ms, headers = _judged(record, owner, decide, now_ms, spare)
        builder.append(record.key, record.value, timestamp=record.timestamp, headers=headers, offset=delta)
        if builder.size_bytes > bytes_max:
            told = f"a batch of {len(batch)} bytes has more than {bytes_max} bytes when it is written anew"
            raise InvalidBatchError(ErrorCode.MESSAGE_TOO_LARGE, told)
        entries.append(WaitingEntry(due_ms, delta, NO_EPOCH))
    written = builder.build()
    rest, rest_header = emptied(header)
    companion = Companion(
        entries=tuple(entries),
        payload=bytes(written[HEADER_SIZE:]),
        codec=builder.compression,
        base_timestamp=read_header(written).base_timestamp,
        producer_id=header.producer_id if header.is_transactional else NO_PRODUCER_ID,
        producer_epoch=header.producer_epoch if header.is_transactional else NO_EPOCH,
    )
    return Split(companion, rest, rest_header)


def _judged(
    record: Record, owner: Owner, decide: Decision, now_ms: int, spare: Spare | None
) -> tuple[int, list[tuple[str, bytes | None]]]:
    """Return when a record is due, and the headers that it has then."""
    failure = read_failure(record.headers)
    if failure.behind_ms is not None and not failure.is_dead:
        due_ms = min(max(failure.behind_ms, now_ms), now_ms + DELAY_MS_MAX)
        return due_ms, retried_headers(record.headers, failure, failure.attempts, spared_times=failure.spared_times)
    delay_ms = None if failure.is_dead else decide(failure.attempts + 1, record)
    is_over = delay_ms is None and not failure.is_dead
    if is_over and spare is not None:
        delay_ms = spare(failure.spared_times)
    if delay_ms is None:
        dead = dead_headers(record.headers, failure, topic=owner.topic, group=owner.group, now_ms=now_ms)
        return DEAD_DUE, dead
    if not 0 <= delay_ms <= DELAY_MS_MAX:
        raise ValueError(f"the retry policy has a record wait for {delay_ms} ms")
    spared_times = failure.spared_times + 1 if is_over else 0
    return now_ms + delay_ms, retried_headers(record.headers, failure, failure.attempts + 1, spared_times=spared_times)
