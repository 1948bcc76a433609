"""A batch of failed records becomes a companion in which each waits for its level, or is dead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.delay.companion import DEAD_DUE, read_companion
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.produced import InvalidBatchError
from odradek.kernel.retry import rewriting
from odradek.kernel.retry.headers import ATTEMPT, BEHIND
from odradek.kernel.retry.rewriting import DELAY_MS_MAX, take_failed

from .failed_batches import ATTEMPTS, NOW_MS, OWNER, Failed, decide, produced

FAILED = st.lists(st.builds(Failed, st.binary(max_size=20), st.integers(0, ATTEMPTS + 2), st.booleans()), min_size=1)


@given(FAILED, st.sampled_from([CompressionType.NONE, CompressionType.GZIP]), st.booleans())
def test_every_record_waits_once_or_is_dead_once(
    records: list[Failed], codec: CompressionType, is_transactional: bool
) -> None:
    batch = produced(records, producer_id=9, is_transactional=is_transactional, codec=codec)
    header = read_header(batch)
    split = take_failed(batch, header, OWNER, decide, NOW_MS)
    sealed = split.sealed()
    companion = read_companion(sealed, read_header(sealed))

    assert companion is not None
    assert companion.counts_with(split.header, -1)
    held = list(companion.records())
    assert [record.value for _, record in held] == [record.value for record in records]
    assert [record.timestamp for _, record in held] == [NOW_MS - 50 + number for number in range(len(records))]
    for (entry, record), failed in zip(held, records, strict=True):
        is_dead = failed.is_dead or failed.attempts >= ATTEMPTS
        assert entry.due_ms == (DEAD_DUE if is_dead else NOW_MS + (failed.attempts + 1) * 100)
        assert dict(record.headers)[ATTEMPT] == b"%d" % (failed.attempts + (not is_dead))
    assert companion.producer_id == (9 if is_transactional else -1)
    rest = read_header(split.rest)
    assert (rest.producer_id, rest.base_sequence, rest.last_offset_delta, rest.records_count) == (
        9,
        4,
        len(records) - 1,
        0,
    )


@pytest.mark.parametrize(
    ("behind_ms", "due_ms"),
    [(NOW_MS + 7, NOW_MS + 7), (NOW_MS - 7, NOW_MS), (NOW_MS * 10, NOW_MS + DELAY_MS_MAX)],
)
def test_what_is_put_behind_another_waits_as_long_as_that_and_counts_no_attempt(behind_ms: int, due_ms: int) -> None:
    builder = BatchBuilder()
    headers = [(ATTEMPT, b"%d" % ATTEMPTS), (BEHIND, b"%d" % behind_ms), ("own", b"1")]
    builder.append(b"k", b"v", timestamp=NOW_MS, headers=headers)
    batch = builder.build()
    split = take_failed(batch, read_header(batch), OWNER, decide, NOW_MS)
    ((entry, record),) = split.companion.records()

    assert entry.due_ms == due_ms
    assert record.headers == (("own", b"1"), (ATTEMPT, b"%d" % ATTEMPTS))


def test_offsets_that_do_not_rise_are_refused() -> None:
    builder = BatchBuilder()
    builder.append(None, b"a", timestamp=NOW_MS, offset=1)
    batch = builder.build()
    header = read_header(batch)
    header.last_offset_delta = 0

    with pytest.raises(InvalidBatchError, match="offset delta is 1"):
        take_failed(batch, header, OWNER, decide, NOW_MS)


@pytest.mark.parametrize("delay_ms", [-1, DELAY_MS_MAX + 1])
def test_what_is_no_delay_is_the_policys_bug(delay_ms: int) -> None:
    batch = produced([Failed(b"a")])

    with pytest.raises(ValueError, match="retry policy"):
        take_failed(batch, read_header(batch), OWNER, lambda attempt, record: delay_ms if attempt else None, NOW_MS)


def test_more_records_than_are_written_anew_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "WAITING_RECORDS_MAX", 10)
    take_failed(produced([Failed(b"")] * 10), read_header(produced([Failed(b"")] * 10)), OWNER, decide, NOW_MS)
    batch = produced([Failed(b"")] * 11)

    with pytest.raises(InvalidBatchError, match="11 records") as refused:
        take_failed(batch, read_header(batch), OWNER, decide, NOW_MS)

    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_what_is_far_larger_than_it_came_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "WAITING_BYTES_MAX", 8_000)
    batch = produced([Failed(bytes(1_000))] * 7, codec=CompressionType.GZIP)
    take_failed(batch, read_header(batch), OWNER, decide, NOW_MS)
    batch = produced([Failed(bytes(1_000))] * 8, codec=CompressionType.GZIP)

    with pytest.raises(InvalidBatchError, match="bytes when it is written anew") as refused:
        take_failed(batch, read_header(batch), OWNER, decide, NOW_MS)

    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_large_records_as_they_came_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "WAITING_BYTES_MAX", 8_000)
    batch = produced([Failed(bytes(10_000))])

    assert take_failed(batch, read_header(batch), OWNER, decide, NOW_MS).companion.entries
