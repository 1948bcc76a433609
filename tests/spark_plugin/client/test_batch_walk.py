"""The walk over headers of fetched batches: what is whole, what comes next, what is nonsense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records.batch import CorruptRecordsError
from odradek.spark_plugin.client.batches import walk_batches
from tests.spark_plugin.client.scripted import raw_batch

SIZES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(61, 90)), max_size=8)


def laid_out(plan: list[tuple[int, int, int]], first: int) -> list[tuple[int, int, bytes]]:
    """Return batches after gaps: first offset, next offset, bytes."""
    found = []
    for gap, count, size in plan:
        first += gap
        found.append((first, first + count, raw_batch(first, count, size)))
        first += count
    return found


@given(SIZES, st.integers(0, 20), st.integers(0, 40), st.integers(0, 700))
def test_a_walk_finds_what_a_naive_reader_finds(
    plan: list[tuple[int, int, int]], first: int, end: int, cut: int
) -> None:
    batches = laid_out(plan, first)
    data = b"".join(raw for _, _, raw in batches)[:cut]
    stop, next_offset = 0, first
    for begin, after, raw in batches:
        if begin >= end or stop + len(raw) > len(data):
            break
        stop += len(raw)
        next_offset = after

    walk = walk_batches(memoryview(data), first, end)

    assert (stop, next_offset) == (walk.stop, walk.next_offset)


def test_a_batch_at_the_end_shows_that_nothing_more_comes() -> None:
    data = raw_batch(3, 2) + raw_batch(9, 1)

    assert walk_batches(data, 0, 9).is_past_end
    assert not walk_batches(data, 0, 10).is_past_end


def test_a_batch_that_breaks_off_is_told() -> None:
    data = raw_batch(3, 2) + raw_batch(9, 1)[:50]
    walk = walk_batches(data, 0, 100)

    assert (walk.stop, walk.next_offset, walk.has_partial) == (200, 5, True)


def test_batches_below_the_position_move_nothing() -> None:
    walk = walk_batches(raw_batch(0, 4), 10, 20)

    assert (walk.stop, walk.next_offset) == (200, 10)


def test_a_message_of_the_old_formats_counts_by_its_own_offset() -> None:
    old = (41).to_bytes(8, "big") + (30).to_bytes(4, "big") + bytes(4) + b"\x01" + bytes(25)

    assert walk_batches(old, 0, 100).next_offset == 42


@pytest.mark.parametrize(
    ("place", "value"),
    [(8, b"\xff\xff\xff\xff"), (8, b"\x00\x00\x00\x10"), (23, b"\x80\x00\x00\x00"), (0, b"\xff" * 8)],
)
def test_lying_headers_are_refused_with_their_place(place: int, value: bytes) -> None:
    spoiled = bytearray(raw_batch(5, 1) + raw_batch(6, 1))
    spoiled[200 + place : 200 + place + len(value)] = value

    with pytest.raises(CorruptRecordsError) as caught:
        walk_batches(spoiled, 0, 100)
    assert caught.value.position == 200
