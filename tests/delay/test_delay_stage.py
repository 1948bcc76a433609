"""The append stage of delayed records: which batches take time, which are left alone."""

from __future__ import annotations

import pytest

from odradek.kernel.contracts.append_stage import Diverted
from odradek.kernel.delay.companion import CANCELLER_DUE, read_companion
from odradek.kernel.delay.headers import DELAY_CANCEL, DELIVER_AFTER
from odradek.kernel.delay.stage import BRIEF_BYTES_MAX, BRIEF_RECORDS_MAX, DelayStage
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import HEADER_SIZE, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.produced import InvalidBatchError

NOW_MS = 1_700_000_000_000
STAGE = DelayStage(lambda: NOW_MS, 10_000)


def batch(
    size_bytes: int = 10, *, after: bytes = b"", count: int = 2, codec: CompressionType = CompressionType.NONE
) -> memoryview:
    builder = BatchBuilder(compression=codec)
    for _ in range(count - 2):
        builder.append(None, None, timestamp=NOW_MS)
    builder.append(None, bytes(range(256)) * (size_bytes // 256 + 1), timestamp=NOW_MS)
    builder.append(None, b"v", timestamp=NOW_MS, headers=[(DELIVER_AFTER, after)] if after else [])
    return memoryview(builder.build())


@pytest.mark.parametrize(
    ("asked", "is_brief"),
    [
        (batch(after=b"5"), True),
        (batch(BRIEF_BYTES_MAX), True),
        (batch(BRIEF_BYTES_MAX, after=b"5"), False),
        (batch(after=b"5", count=BRIEF_RECORDS_MAX), True),
        (batch(count=BRIEF_RECORDS_MAX + 1), True),
        (batch(after=b"5", count=BRIEF_RECORDS_MAX + 1), False),
        (batch(count=BRIEF_RECORDS_MAX + 1, codec=CompressionType.ZSTD), False),
    ],
)
def test_a_batch_takes_time_that_is_large_or_of_many_records_and_may_ask_for_something(
    asked: memoryview, is_brief: bool
) -> None:
    assert STAGE.is_brief(asked) is is_brief


def test_a_batch_in_which_nothing_waits_is_left_as_it_is() -> None:
    asked = batch()

    assert STAGE.accept(asked) is asked


def test_what_is_left_stands_behind_what_waits() -> None:
    found = STAGE.accept(batch(after=b"5", codec=CompressionType.ZSTD))

    assert isinstance(found, Diverted)
    assert (read_header(found.before).is_control, read_header(found.batch).records_count) == (True, 1)
    assert found.behind is None


def test_records_that_cannot_be_read_are_refused() -> None:
    asked = batch(after=b"5")
    asked[HEADER_SIZE] = 0xFE

    with pytest.raises(InvalidBatchError) as refused:
        STAGE.accept(asked)

    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_the_queue_rounds_what_is_asked_for_and_withdrawals_wait_for_nothing() -> None:
    builder = BatchBuilder()
    for headers in ([(DELIVER_AFTER, b"17")], [(DELAY_CANCEL, b"name")], [(DELIVER_AFTER, b"0")]):
        builder.append(None, b"v", timestamp=NOW_MS, headers=headers)
    found = DelayStage(lambda: NOW_MS, 10_000, lambda due_ms, now_ms: now_ms + 30).accept(memoryview(builder.build()))

    assert isinstance(found, Diverted)
    companion = read_companion(found.before, read_header(found.before))
    assert companion is not None
    assert [entry.due_ms for entry in companion.entries] == [NOW_MS + 30, CANCELLER_DUE]


@pytest.mark.parametrize("rounded_ms", [NOW_MS + 16, 2**63])
def test_a_queue_that_rounds_down_or_to_no_time_has_the_batch_refused(rounded_ms: int) -> None:
    with pytest.raises(ValueError, match="that is early, or never"):
        DelayStage(lambda: NOW_MS, 10_000, lambda due_ms, now_ms: rounded_ms).accept(batch(after=b"17"))
