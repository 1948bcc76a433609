"""The one look at a plain batch: what it takes is what the long way takes unchanged, and the twins agree."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records import plain as plain_module
from odradek.kernel.records import scan
from odradek.kernel.records.batch import BatchHeader, TimestampType, encode_batch
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.plain import CHECKED_BYTES_MAX, read_plain_in_python, take_plain
from odradek.kernel.records.produced import InvalidBatchError
from odradek.kernel.records.record import encode_record
from odradek.kernel.records.validation import ValidationRules, validate_batch

if TYPE_CHECKING:
    from odradek.kernel.records.plain import PlainReader

NOW_MS = 1_700_000_000_000
INT64_MAX = 2**63 - 1
needs_kernel = pytest.mark.skipif(not scan.HAS_COMPILED_KERNEL, reason="the record kernel was not compiled")


def compiled() -> PlainReader:
    reader: PlainReader = import_module("odradek.kernel.records._kernel").read_plain_batch
    return reader


TWINS = [lambda: read_plain_in_python, pytest.param(compiled, marks=needs_kernel)]

RECORD = st.builds(
    encode_record,
    st.sampled_from([0, 0, 1, -1, 3_600_000, 3_600_001, 2**62, -(2**63), INT64_MAX]),
    st.integers(0, 3),
    st.none() | st.binary(max_size=4),
    st.none() | st.binary(max_size=90),
    st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2),
)
SMALL_OR_ODD = st.sampled_from([0, 0, 0, 0, 1, -1, 2, 5, 2**31 - 1, -(2**31)])
TIMES = st.sampled_from(
    [NOW_MS, NOW_MS, NOW_MS - 1, NOW_MS + 3_600_000, NOW_MS + 3_600_001, -1, 0, INT64_MAX, -(2**63)]
)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Batches that are plain, or nearly."""
    records = draw(st.lists(RECORD, min_size=0, max_size=3))
    count = len(records) if draw(st.booleans()) else draw(st.integers(-1, 4))
    base = draw(TIMES)
    header = BatchHeader(
        base_offset=draw(st.sampled_from([0, 0, 0, 0, 1, -1])),
        length_bytes=0,
        partition_leader_epoch=draw(SMALL_OR_ODD),
        magic=draw(st.sampled_from([2, 2, 2, 2, 1, 3, -1])),
        crc=0,
        attributes=draw(st.sampled_from([0, 0, 0, 0, 0, 1, 4, 7, 8, 16, 32, 64, 0x7F80, -32768])),
        last_offset_delta=count - 1 if draw(st.integers(0, 5)) else draw(SMALL_OR_ODD),
        base_timestamp=base,
        max_timestamp=base if draw(st.booleans()) else draw(TIMES),
        producer_id=draw(SMALL_OR_ODD),
        producer_epoch=draw(st.sampled_from([0, 1, -1])),
        base_sequence=draw(SMALL_OR_ODD),
        records_count=count,
    )
    batch = bytes(encode_batch(header, b"".join(records)))
    cut = draw(st.sampled_from([0, 0, 0, 0, 0, 1, 30, 90]))
    return batch[: len(batch) - cut] if cut else batch + draw(st.sampled_from([b"", b"", b"", b"\0"]))


LIMITS = st.tuples(
    st.just(NOW_MS), st.sampled_from([0, 1, 3_600_000, INT64_MAX]), st.sampled_from([0, 3_600_000, INT64_MAX])
)


def plain(*values: bytes, key: bytes | None = None) -> bytes:
    records = [encode_record(index, index, key, value) for index, value in enumerate(values)]
    header = BatchHeader(0, 0, -1, 2, 0, 0, len(values) - 1, NOW_MS, NOW_MS + len(values) - 1, -1, -1, -1, len(values))
    return bytes(encode_batch(header, b"".join(records)))


@pytest.mark.parametrize("reader", TWINS)
def test_a_plain_batch_is_read_in_one_look(reader: Any) -> None:
    batch = plain(b"one", b"two", b"three")
    fields = reader()(batch, NOW_MS, INT64_MAX, 3_600_000, False)

    assert fields is not None
    assert attrs.astuple(BatchHeader(*fields))[5:] == (0, 2, NOW_MS, NOW_MS + 2, -1, -1, -1, 3)
    assert reader()(batch, NOW_MS, INT64_MAX, 3_600_000, True) is None
    assert reader()(plain(b"one", key=b"k"), NOW_MS, INT64_MAX, 3_600_000, True) is not None
    assert reader()(memoryview(batch)[1:], NOW_MS, INT64_MAX, 3_600_000, False) is None


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("size_bytes", [0, CHECKED_BYTES_MAX - 200, CHECKED_BYTES_MAX, 100_000])
def test_a_wrong_checksum_is_left_to_the_long_way(twin: Any, size_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_module, "_read_plain", twin())
    batch = bytearray(plain(b"x" * size_bytes + b"one"))
    assert take_plain(memoryview(batch), ValidationRules(walks_records=True), NOW_MS) is not None
    batch[-2] ^= 1

    assert take_plain(memoryview(batch), ValidationRules(walks_records=True), NOW_MS) is None


@needs_kernel
@given(batch=batches(), limits=LIMITS, is_compacted=st.booleans())
def test_the_twins_agree(batch: bytes, limits: tuple[int, int, int], is_compacted: bool) -> None:
    assert read_plain_in_python(batch, *limits, is_compacted) == compiled()(batch, *limits, is_compacted)


@needs_kernel
@given(data=st.binary(max_size=150), position=st.integers(0, 150), byte=st.integers(0, 255))
def test_the_twins_agree_on_garbage(data: bytes, position: int, byte: int) -> None:
    damaged = bytearray(plain(b"one", b"two"))
    damaged[position % len(damaged)] = byte
    for garbage in (data, bytes(damaged)):
        assert read_plain_in_python(garbage, NOW_MS, 1, 1, False) == compiled()(garbage, NOW_MS, 1, 1, False)


@given(batch=batches(), limits=LIMITS, is_compacted=st.booleans())
def test_what_is_plain_is_taken_unchanged_by_the_long_way(
    batch: bytes, limits: tuple[int, int, int], is_compacted: bool
) -> None:
    now_ms, before_max_ms, after_max_ms = limits
    rules = ValidationRules(
        timestamp_before_max_ms=before_max_ms,
        timestamp_after_max_ms=after_max_ms,
        is_compacted=is_compacted,
        walks_records=True,
    )
    found = take_plain(memoryview(batch), rules, now_ms)
    buffer = bytearray(batch)
    try:
        judged = validate_batch(buffer, 0, len(buffer), rules, now_ms=now_ms, produce_version=9)
    except InvalidBatchError:
        assert found is None
        return
    is_odd = bool(judged.header.attributes & 7) or buffer != batch

    assert (found is None) is is_odd
    assert found is None or found == judged.header


def test_only_topics_that_keep_what_comes_are_looked_at_so() -> None:
    assert ValidationRules(walks_records=True, max_message_bytes=7).plain_bytes_max == 7
    assert ValidationRules(walks_records=True, segment_bytes=6).plain_bytes_max == 6
    assert ValidationRules().plain_bytes_max == -1
    assert ValidationRules(walks_records=True, compression=CompressionType.LZ4).plain_bytes_max == -1
    assert (
        ValidationRules(
            walks_records=True, compression=CompressionType.NONE, timestamp_type=TimestampType.LOG_APPEND_TIME
        ).plain_bytes_max
        == -1
    )


def test_what_is_too_large_is_left_to_the_long_way() -> None:
    batch = memoryview(bytearray(plain(b"one")))
    size_bytes = len(batch)

    assert take_plain(batch, ValidationRules(walks_records=True, max_message_bytes=size_bytes), NOW_MS) is not None
    assert take_plain(batch, ValidationRules(walks_records=True, max_message_bytes=size_bytes - 1), NOW_MS) is None
