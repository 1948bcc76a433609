"""The quick way into an open batch takes what `append` would put into the same batch, and counts the same memory."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.accumulator import Accumulator, record_size
from odradek.kernel.records.batch import HEADER_SIZE
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.types import TopicPartition

PLACE = TopicPartition("t", 0)


def accumulator(batch_bytes: int, memory_bytes: int) -> Accumulator:
    return Accumulator(batch_bytes, 5, memory_bytes, CompressionType.NONE)


def append(into: Accumulator, value: bytes) -> tuple[tuple[int, ...], int] | None:
    size_bytes = record_size(None, value, ())
    appended = into.append(PLACE, None, value, (), 1, 0, size_bytes)
    return None if appended is None else (appended[0].ordinal, appended[1])


def append_quickly(into: Accumulator, value: bytes) -> tuple[tuple[int, ...], int] | None:
    size_bytes = record_size(None, value, ())
    batch = into.open_batch(PLACE, size_bytes)
    if batch is None:
        return append(into, value)
    return batch.ordinal, batch.append(None, value, 1, (), size_bytes)


@given(
    sizes=st.lists(st.integers(0, 90), max_size=20),
    closes=st.sets(st.integers(0, 20)),
    batch_bytes=st.integers(0, 400),
    memory_bytes=st.integers(HEADER_SIZE, 900),
)
def test_both_ways_lead_to_the_same_batches_and_memory(
    sizes: list[int], closes: set[int], batch_bytes: int, memory_bytes: int
) -> None:
    plain, quick = accumulator(batch_bytes, memory_bytes), accumulator(batch_bytes, memory_bytes)
    for number, size in enumerate(sizes):
        if number in closes:
            for each in (plain, quick):
                for batch in each.unfinished:
                    batch.is_closed = True
        assert append(plain, bytes(size)) == append_quickly(quick, bytes(size))
        assert plain.used_bytes == quick.used_bytes

    assert [batch.records_count for batch in plain.unfinished] == [batch.records_count for batch in quick.unfinished]
