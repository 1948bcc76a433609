import tracemalloc
from collections.abc import Iterator, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.contracts.storage import PartitionLog
from odradek.kernel.partitions.timestamp_lookup import (
    BatchSearch,
    Search,
    TimestampOffset,
    find_in_batch,
    search_by_timestamp,
    search_max_timestamp,
)
from odradek.kernel.records.batch import TimestampType, encode_batch, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import DECOMPRESSED_BYTES_MAX, CompressionType
from odradek.kernel.records.record import encode_record

from ..records.bombs import RECORD, batch_around


def run_search(search: Search) -> TimestampOffset | None:
    """Run a search to its end, however long that takes."""
    try:
        wanted = next(search)
        while True:
            wanted = search.send(find_in_batch(*wanted))
    except StopIteration as end:
        found: TimestampOffset | None = end.value
        return found


def batch_of(
    base_offset: int,
    timestamps: Sequence[int],
    *,
    compression: CompressionType = CompressionType.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    epoch: int = 4,
) -> bytes:
    builder = BatchBuilder(
        base_offset=base_offset,
        compression=compression,
        timestamp_type=timestamp_type,
        partition_leader_epoch=epoch,
    )
    for timestamp in timestamps:
        builder.append(None, b"v", timestamp=timestamp)
    return bytes(builder.build())


class BatchesOnly:
    """As much of a log as a lookup needs."""

    def __init__(self, *batches: bytes) -> None:
        self.held = batches

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        for batch in self.batches(start_offset):
            if read_header(batch).max_timestamp >= timestamp:
                return bytes(batch)
        return None

    def batches(self, start_offset: int) -> Iterator[memoryview]:
        return (memoryview(batch) for batch in self.held if read_header(batch).last_offset >= start_offset)

    def max_timestamp(self) -> tuple[int, int]:
        headers = [read_header(batch) for batch in self.held]
        largest = max(headers, key=lambda header: header.max_timestamp, default=None)
        return (-1, -1) if largest is None else (largest.max_timestamp, largest.last_offset)


def log_of(*batches: bytes) -> PartitionLog:
    return cast("PartitionLog", BatchesOnly(*batches))


KAFKAS_LOG = log_of(batch_of(0, [100, 300, 200]), batch_of(3, [250, 300]), batch_of(5, [50, 60]))


@pytest.mark.parametrize(
    ("start_offset", "timestamp", "expected"),
    [
        (0, 0, (100, 0)),
        (0, 100, (100, 0)),
        (0, 101, (300, 1)),
        (0, 200, (300, 1)),
        (0, 300, (300, 1)),
        (0, 301, None),
        (2, 0, (200, 2)),
        (2, 101, (200, 2)),
        (2, 250, (250, 3)),
        (2, 300, (300, 4)),
    ],
)
def test_lookups_answer_as_apache_kafka_answered(
    start_offset: int, timestamp: int, expected: tuple[int, int] | None
) -> None:
    found = run_search(search_by_timestamp(KAFKAS_LOG, timestamp, start_offset))

    assert (found and found[:2]) == expected


def test_the_largest_timestamp_is_found_at_its_first_record() -> None:
    assert run_search(search_max_timestamp(KAFKAS_LOG)) == TimestampOffset(300, 1, 4)


def test_a_log_without_timestamps_has_no_largest_one() -> None:
    assert run_search(search_max_timestamp(log_of())) is None
    assert run_search(search_max_timestamp(log_of(batch_of(0, [-1])))) is None


def test_with_log_append_time_every_record_has_the_batchs_timestamp() -> None:
    batch = batch_of(10, [5, 9, 7], timestamp_type=TimestampType.LOG_APPEND_TIME)

    assert find_in_batch(batch, 1, 0) == TimestampOffset(9, 10, 4)
    assert find_in_batch(batch, 9, 11) == TimestampOffset(9, 11, 4)
    assert find_in_batch(batch, 10, 0) is None
    assert run_search(search_max_timestamp(log_of(batch))) == TimestampOffset(9, 10, 4)


def test_the_leader_epoch_is_the_one_of_the_records_batch() -> None:
    log = log_of(batch_of(0, [1], epoch=2), batch_of(1, [5], epoch=7))

    assert run_search(search_by_timestamp(log, 3, 0)) == TimestampOffset(5, 1, 7)


@given(
    batches=st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=4), max_size=5),
    timestamp=st.integers(0, 21),
    start_offset=st.integers(0, 20),
    compression=st.sampled_from([CompressionType.NONE, CompressionType.ZSTD]),
)
def test_the_first_record_at_or_above_is_found(
    batches: list[list[int]], timestamp: int, start_offset: int, compression: CompressionType
) -> None:
    records: list[tuple[int, int]] = []
    encoded = []
    for timestamps in batches:
        encoded.append(batch_of(len(records), timestamps, compression=compression))
        records += [(when, len(records) + index) for index, when in enumerate(timestamps)]
    expected = next((record for record in records if record[0] >= timestamp and record[1] >= start_offset), None)
    found = run_search(search_by_timestamp(log_of(*encoded), timestamp, start_offset))

    assert (found and found[:2]) == expected


def test_only_a_small_plain_batch_is_looked_through_briefly() -> None:
    small = batch_of(0, [1, 2])
    packed = batch_of(0, [1, 2], compression=CompressionType.GZIP)
    stamped = batch_of(0, [1, 2], compression=CompressionType.GZIP, timestamp_type=TimestampType.LOG_APPEND_TIME)
    large = batch_of(0, [1] * 40_000)

    assert [BatchSearch(batch, 1, 0).is_brief() for batch in (small, packed, stamped, large)] == [
        True,
        False,
        True,
        False,
    ]


def test_a_search_makes_no_objects_of_a_million_records() -> None:
    count = 1_000_000
    batch = bytes(batch_around(RECORD * (count - 1) + encode_record(5, 7, None, b""), count, timestamp=100))
    header = read_header(batch)
    header.max_timestamp = 105
    batch = bytes(encode_batch(header, batch[61:]))

    tracemalloc.start()
    found = find_in_batch(batch, 105, 0)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found == TimestampOffset(105, 7, -1)
    assert peak_bytes < 2 * DECOMPRESSED_BYTES_MAX
