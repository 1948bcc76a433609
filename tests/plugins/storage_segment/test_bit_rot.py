"""Bits of a segment's files that turn round: what is whole is found all the same, and what is not is cut or told."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.kernel.api import CorruptionError, OsFiles
from odradek.plugins.storage_segment.formats import decode_epochs, decode_offsets
from odradek.plugins.storage_segment.segment import Segment
from odradek.storage_base import EpochCache
from odradek.testing.batches import make_batch

COUNT = 16
INTERVAL = 150
INDEX_BYTES = 4096
BITS = (0, 3, 7)
"""Of each byte these turn round; the others do the same."""


def written(directory: Path) -> Segment:
    """Return a closed segment of batches of one record, each a second later than the one before."""
    segment = Segment(OsFiles(), directory, 0)
    segment.create(INDEX_BYTES, 0)
    batches = [make_batch(offset, timestamp=1_000 * (1 + offset)) for offset in range(COUNT)]
    segment.path.write_bytes(b"".join(batches))
    segment.size_bytes = sum(map(len, batches))
    segment.recover(INTERVAL, INDEX_BYTES, EpochCache())
    segment.forget()
    return opened(directory)


def opened(directory: Path) -> Segment:
    segment = Segment(OsFiles(), directory, 0)
    segment.size_bytes = segment.path.stat().st_size
    return segment


def turned(content: bytes, position: int, bit: int) -> bytes:
    return content[:position] + bytes((content[position] ^ 1 << bit,)) + content[position + 1 :]


def positions(segment: Segment) -> list[int]:
    return [segment.position_of(offset) for offset in range(COUNT + 1)]


def times(segment: Segment) -> list[int]:
    """Return the offset of the first batch that is as late as each time, found by the index."""
    found = []
    for timestamp in range(500, 1_000 * COUNT + 1, 1_500):
        start = segment.position_of(segment.offset_before_timestamp(timestamp))
        found.append(next(h.base_offset for _, h in segment.headers(start) if h.max_timestamp >= timestamp))
    return found


@pytest.mark.parametrize("bit", BITS)
def test_whatever_bit_of_an_index_turns_round_offsets_are_found(
    tmp_path: Path, bit: int, caplog: pytest.LogCaptureFixture
) -> None:
    segment = written(tmp_path)
    expected, index = positions(segment), segment.index.path
    sound = index.read_bytes()
    assert len(sound) > 8 * 3
    with caplog.at_level(logging.WARNING, "odradek"):
        for position in range(len(sound)):
            index.write_bytes(turned(sound, position, bit))
            segment = opened(tmp_path)
            assert positions(segment) == expected
            assert segment.find_next_offset() == COUNT
            segment.forget()

    assert {record.getMessage().partition(":")[0] for record in caplog.records} == {str(index)}


@pytest.mark.parametrize("bit", BITS)
def test_whatever_bit_of_a_time_index_turns_round_times_are_found(
    tmp_path: Path, bit: int, caplog: pytest.LogCaptureFixture
) -> None:
    segment = written(tmp_path)
    expected, index = times(segment), segment.time_index.path
    sound = index.read_bytes()
    with caplog.at_level(logging.WARNING, "odradek"):
        for position in range(len(sound)):
            index.write_bytes(turned(sound, position, bit))
            segment = opened(tmp_path)
            assert times(segment) == expected
            assert segment.find_max_timestamp() == (1_000 * COUNT, COUNT - 1)
            segment.forget()

    assert {record.getMessage().partition(":")[0] for record in caplog.records} == {str(index)}


@pytest.mark.parametrize("byte", range(8))
@pytest.mark.parametrize("bit", range(8))
def test_a_log_is_cut_before_a_batch_whose_offset_is_not_what_was_written(tmp_path: Path, byte: int, bit: int) -> None:
    segment = written(tmp_path)
    damaged = 9
    position = segment.position_of(damaged)
    segment.path.write_bytes(turned(segment.path.read_bytes(), position + byte, bit))
    segment.recover(INTERVAL, INDEX_BYTES, EpochCache())

    assert [header.base_offset for _, header in segment.headers(0)] == [*range(damaged)]


def test_gaps_that_compaction_left_stay(tmp_path: Path) -> None:
    segment = written(tmp_path)
    kept = [0, 3, 4, 9, 30]
    segment.path.write_bytes(b"".join(make_batch(offset) for offset in kept))
    segment = opened(tmp_path)
    segment.recover(INTERVAL, INDEX_BYTES, EpochCache())

    assert [header.base_offset for _, header in segment.headers(0)] == kept


@pytest.mark.parametrize("bit", range(8))
def test_a_checkpoint_with_a_bit_turned_round_says_something_or_is_none(bit: int) -> None:
    for text, decode in ((b"0\n1\n3 17\n", decode_epochs), (b"0\n1\norders 3 -1\n", decode_offsets)):
        for position in range(len(text)):
            with suppress(CorruptionError):
                assert len(decode(turned(text, position, bit))) == 1
