"""A produced batch in two: what waits, and the rest, against a model that decodes everything."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.delay.companion import CANCELLER_DUE, read_companion
from odradek.kernel.delay.headers import DELAY_CANCEL, DELAY_ID, DELIVER_AFTER, DELIVER_AT, digest_of
from odradek.kernel.delay.splitting import WAITING_BYTES_MAX, WAITING_RECORDS_MAX, Split, split_batch
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import (
    HEADER_SIZE,
    TimestampType,
    assign_offset_and_epoch,
    is_crc_valid,
    patch_max_timestamp,
    read_header,
)
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.produced import InvalidBatchError
from odradek.kernel.records.reader import read_batch
from odradek.kernel.records.record import Record
from odradek.kernel.records.record_errors import RECORD_ERRORS_MAX
from odradek.kernel.wire.varint import unsigned_varint

NOW_MS = 1_700_000_000_000
DELAY_MS_MAX = 1_000_000
OFFSET = 500
EPOCH = 4

AFTER = st.integers(0, 100).map(lambda after: (DELIVER_AFTER, b"%d" % after))
PLAIN = st.tuples(st.sampled_from(["a", "odradek.del"]), st.none() | st.binary(max_size=4))
HEADERS = st.lists(PLAIN, max_size=2) | st.tuples(AFTER).map(list) | st.tuples(PLAIN, AFTER).map(list)
NAMED = st.tuples(AFTER, st.just((DELAY_ID, b"name"))).map(list) | st.just([(DELAY_CANCEL, b"name")])
RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=3), st.none() | st.binary(max_size=9), st.integers(0, 50), HEADERS | NAMED
    ),
    min_size=1,
    max_size=8,
)
Drawn = list[tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]]


def batch_of(drawn: Drawn, **options: object) -> bytearray:
    builder = BatchBuilder(**options)  # type: ignore[arg-type] # tests pass what fits
    for key, value, late_ms, headers in drawn:
        builder.append(key, value, timestamp=NOW_MS - 1_000 + late_ms, headers=headers)
    return builder.build()


def one(*headers: tuple[str, bytes | None]) -> tuple[bytes, bytes, int, list[tuple[str, bytes | None]]]:
    return b"k", b"v", 0, list(headers)


def split(batch: bytearray) -> Split | None:
    return split_batch(batch, read_header(batch), NOW_MS, DELAY_MS_MAX)


def due_of(record: Record) -> int | None:
    """Return when a record of these tests is due; None for one that stays."""
    asked = dict(record.headers)
    if DELAY_CANCEL in asked:
        return CANCELLER_DUE
    after = int(asked.get(DELIVER_AFTER) or b"0")
    return NOW_MS + after if after else None


@given(RECORDS, st.sampled_from(CompressionType), st.booleans(), st.booleans())
def test_both_parts_together_are_what_was_produced(
    drawn: Drawn, codec: CompressionType, is_transactional: bool, by_broker: bool
) -> None:
    options = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 40, "is_transactional": is_transactional}
    timestamp_type = TimestampType.LOG_APPEND_TIME if by_broker else TimestampType.CREATE_TIME
    batch = batch_of(drawn, compression=codec, timestamp_type=timestamp_type, **options)
    header = read_header(batch)
    produced = list(read_batch(batch, 0, header))
    asking = [(record, due_of(record)) for record in produced]
    before = bytes(batch)

    found = split(batch)

    assert bytes(batch) == before
    if all(due is None for _, due in asking):
        assert found is None
        return
    assert found is not None
    assert list(read_batch(found.rest, 0, read_header(found.rest))) == [r for r, due in asking if due is None]
    companion = found.sealed()
    companion_header = read_header(companion)
    assign_offset_and_epoch(companion, companion_header, OFFSET, EPOCH)
    placed = read_companion(companion, companion_header)
    assert placed is not None
    assert list(placed.records()) == [
        (entry, record._replace(offset=OFFSET + 1 + record.offset))
        for entry, (record, due) in zip(
            [entry for entry in placed.entries if not entry.is_canceller],
            [(record, due) for record, due in asking if due is not None and due != CANCELLER_DUE],
            strict=True,
        )
    ]
    assert [(entry.due_ms, entry.origin, entry.leader_epoch) for entry in placed.entries] == [
        (due, OFFSET + 1 + record.offset, EPOCH) for record, due in asking if due is not None
    ]
    assert (placed.producer_id, placed.producer_epoch) == ((7, 2) if is_transactional else (-1, -1))


@given(RECORDS, st.sampled_from(CompressionType), st.booleans())
def test_the_rest_is_the_producers_batch_with_holes(
    drawn: Drawn, codec: CompressionType, is_transactional: bool
) -> None:
    options = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 40, "is_transactional": is_transactional}
    batch = batch_of(drawn, compression=codec, **options)
    found = split(batch)
    if found is None:
        return
    produced, rest = read_header(batch), read_header(found.rest)

    assert found.header == rest
    assert is_crc_valid(found.rest, 0, rest)
    assert rest.length_bytes == len(found.rest)
    for name in ("base_offset", "last_offset_delta", "producer_id", "producer_epoch", "base_sequence", "last_sequence"):
        assert getattr(rest, name) == getattr(produced, name)
    assert rest.is_transactional is is_transactional
    kept = list(read_batch(found.rest, 0, rest))
    assert rest.records_count == len(kept)
    if kept:
        assert rest.compression_id == codec
        assert rest.max_timestamp == max(record.timestamp for record in kept)
    else:
        assert (len(found.rest), rest.compression_id) == (HEADER_SIZE, 0)


@pytest.mark.parametrize("codec", CompressionType)
def test_a_batch_that_asks_for_nothing_stays_as_it_is(codec: CompressionType) -> None:
    assert split(batch_of([one(("h", b"x"))] * 3, compression=codec)) is None
    assert split(batch_of([one((DELIVER_AT, b"5"))], compression=codec)) is None
    assert split(batch_of([(b"odradek.deliver.after", b"odradek.delay.id", 0, [])], compression=codec)) is None


def test_it_counts_with_the_rest_as_a_leader_has_stamped_it() -> None:
    options = {"timestamp_type": TimestampType.LOG_APPEND_TIME}
    found = split(batch_of([one(), one((DELIVER_AFTER, b"9"))], **options))
    assert found is not None
    patch_max_timestamp(found.rest, 0, found.header, TimestampType.LOG_APPEND_TIME, NOW_MS + 3)

    companion = found.sealed()
    header = read_header(companion)
    assign_offset_and_epoch(companion, header, OFFSET, EPOCH)
    assign_offset_and_epoch(found.rest, found.header, OFFSET + 1, EPOCH)
    placed = read_companion(companion, header)

    assert placed is not None
    assert placed.counts_with(read_header(found.rest), OFFSET)
    assert header.max_timestamp == NOW_MS + 3
    assert [record.timestamp for _, record in placed.records()] == [NOW_MS + 3]


def test_names_are_kept_as_digests() -> None:
    found = split(batch_of([one((DELIVER_AFTER, b"9"), (DELAY_ID, b"a")), one((DELAY_CANCEL, b"b"))]))

    assert found is not None
    assert [entry.id_digest for entry in found.companion.entries] == [digest_of(b"a"), digest_of(b"b")]


def test_a_wrong_record_refuses_the_whole_batch_and_is_told_by_its_index() -> None:
    batch = batch_of([one(), one((DELIVER_AFTER, b"9")), one((DELIVER_AFTER, b"x")), one((DELIVER_AT, b"-1"))])

    with pytest.raises(InvalidBatchError) as refused:
        split(batch)

    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in refused.value.record_errors] == [2, 3]
    assert "2 record errors in total" in (refused.value.error_message or "")
    assert "'x' is no number" in refused.value.record_errors[0][1]


@pytest.mark.parametrize("deltas", [(0, 0), (-(1 << 31), 1), (0, 7), (1, 0)])
def test_a_record_whose_offset_is_not_its_own_refuses_the_batch(deltas: tuple[int, int]) -> None:
    """In what is not compressed nobody else minds, and what waits is found by its offset."""
    batch = batch_with(deltas)

    with pytest.raises(InvalidBatchError, match="offset delta") as refused:
        split(batch)

    assert refused.value.code is ErrorCode.INVALID_RECORD


def signed(value: int) -> bytes:
    """Return a number as records have it."""
    return unsigned_varint((value << 1 ^ value >> 31) & 0xFFFF_FFFF)


def batch_with(deltas: Iterable[int]) -> bytearray:
    """Return a batch of as many delayed records, each with an offset delta of its own choice."""
    records = b""
    for delta in deltas:
        key = DELIVER_AFTER.encode()
        header = signed(len(key)) + key + signed(1) + b"9"
        body = b"\0" + signed(0) + signed(delta) + signed(-1) + signed(-1) + signed(1)
        records += signed(len(body + header)) + body + header
    plain = batch_of([one(), one()])
    batch = bytearray(plain[:HEADER_SIZE]) + records
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    return batch


def test_of_very_many_wrong_records_the_first_are_told() -> None:
    batch = batch_of([one((DELIVER_AFTER, b"x"))] * (RECORD_ERRORS_MAX + 5))

    with pytest.raises(InvalidBatchError) as refused:
        split(batch)

    assert len(refused.value.record_errors) == RECORD_ERRORS_MAX
    assert f"{RECORD_ERRORS_MAX + 5} record errors" in (refused.value.error_message or "")


@pytest.mark.parametrize("gone", [{0}, {1, 2}, {3}])
def test_offsets_with_gaps_as_compaction_leaves_them_stay(gone: set[int]) -> None:
    batch = batch_of([one((DELIVER_AFTER, b"%d" % (9 - number))) for number in range(4)])
    header = read_header(batch)
    builder = BatchBuilder.like(attrs.evolve(header, base_offset=70))
    builder.extend(
        record._replace(offset=70 + record.offset)
        for record in read_batch(batch, 0, header)
        if record.offset not in gone
    )
    with_gaps = builder.build(last_offset=73)

    found = split(with_gaps)

    assert found is not None
    assert [entry.origin for entry in found.companion.entries] == [each for each in range(4) if each not in gone]
    assert (found.header.base_offset, found.header.last_offset) == (70, 73)


def test_more_than_replicas_take_note_of_at_once_is_refused_so_that_it_is_sent_in_parts() -> None:
    drawn: Drawn = [one((DELIVER_AFTER, b"9"))] * WAITING_RECORDS_MAX
    found = split(batch_of(drawn))
    assert found is not None
    assert len(found.companion.entries) == WAITING_RECORDS_MAX

    with pytest.raises(InvalidBatchError, match="more than 16384 delayed records") as refused:
        split(batch_of([*drawn, one((DELIVER_AFTER, b"9"))], compression=CompressionType.ZSTD))
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_what_is_small_and_waits_as_something_large_is_refused() -> None:
    """Whoever delivers one record of a batch has all that waits with it in memory."""
    value = bytes(WAITING_BYTES_MAX // 2)
    drawn: Drawn = [(None, value, 0, [(DELIVER_AFTER, b"9")])] * 2
    batch = batch_of(drawn, compression=CompressionType.ZSTD)
    assert len(batch) < 100_000

    with pytest.raises(InvalidBatchError, match=f"more than {WAITING_BYTES_MAX}") as refused:
        split(batch)

    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert split(batch_of([drawn[0], (None, value, 0, [])], compression=CompressionType.ZSTD)) is not None
