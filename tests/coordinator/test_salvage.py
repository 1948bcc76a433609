"""Sound batches are found behind damaged ones, wherever the damage begins and ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.coordinator.salvage import damage_at, find_sound_batch, first_readable, sound_batch
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.records.builder import BatchBuilder


def run_of(sizes: list[int]) -> tuple[bytearray, list[tuple[int, int]]]:
    """Return batches, each of one record of a size, and from where to where each one goes."""
    data, places = bytearray(), []
    for offset, size in enumerate(sizes):
        builder = BatchBuilder(base_offset=offset)
        builder.append(b"k", bytes([2]) * size, timestamp=0)
        batch = builder.build()
        places.append((len(data), len(data) + len(batch)))
        data += batch
    return data, places


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=8),
    st.floats(0, 1),
    st.binary(min_size=1, max_size=200),
)
def test_every_batch_that_damage_did_not_touch_is_found(sizes: list[int], where: float, garbage: bytes) -> None:
    data, places = run_of(sizes)
    begin = int(where * (len(data) - 1))
    whole = bytes(data)
    data[begin : begin + len(garbage)] = garbage[: len(data) - begin]
    offsets = range(len(sizes))
    untouched = [start for start, end in places if data[start:end] == whole[start:end]]
    found, position = [], 0
    while (here := find_sound_batch(data, position, len(data), offsets)) is not None:
        header = sound_batch(data, here, offsets)
        assert header is not None
        found.append(here)
        position = here + header.length_bytes

    assert set(untouched) <= set(found)
    assert set(found) <= {start for start, _end in places}  # one whose epoch alone was hit is as sound as before


def test_a_window_holds_the_batches_that_begin_in_it() -> None:
    data, places = run_of([10, 10, 10])
    (_, second, third) = (start for start, _end in places)

    assert find_sound_batch(data, 1, second, range(3)) is None
    assert find_sound_batch(data, 1, second + 1, range(3)) == second
    assert find_sound_batch(data, second + 1, len(data), range(3)) == third
    assert find_sound_batch(data, third + 1, len(data), range(3)) is None


def test_a_batch_of_other_offsets_is_not_sound() -> None:
    data, _places = run_of([1, 1])
    positions = [position for position, _header in iterate_batches(data)]

    assert sound_batch(data, positions[1], range(1)) is None
    assert damage_at(data, positions[1], range(1)) == "a batch that ends at offset 1"
    assert sound_batch(data, positions[0], range(1, 2)) is None
    assert not damage_at(data, positions[1], range(1, 2))


@given(st.integers(0, 1_000), st.integers(1, 1_000), st.integers(1, 1_000))
def test_the_first_offset_behind_the_damage_is_found_in_few_steps(start: int, length: int, rest: int) -> None:
    end, asked = start + length + rest, []

    def is_readable(offset: int) -> bool:
        asked.append(offset)
        return offset >= start + length

    assert first_readable(is_readable, start, end) == start + length
    assert len(asked) <= 2 * length.bit_length() + 2
    assert all(start < offset < end for offset in asked)


def test_where_nothing_can_be_read_the_end_is_found() -> None:
    assert first_readable(lambda _offset: False, 3, 100) == 100
    assert first_readable(lambda _offset: False, 3, 4) == 4
