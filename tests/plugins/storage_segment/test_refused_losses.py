"""A log whose owner cannot spare a record: a torn tail is cut, any other damage is refused and nothing is touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.api import CorruptionError
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.batches import make_batch
from odradek.testing.contracts.storage_base import PARTITION, SMALL, all_bytes, fill, make_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from odradek.kernel.api import PartitionLog

COUNT = 10
SEGMENT = 6
"""Batches in a segment."""
FLUSHED = 2
SIZE = len(make_batch(0))


def started(directory: Path) -> SegmentEngine:
    engine = SegmentEngine(make_context(directory))
    engine.start()
    return engine


def crashed(directory: Path, flushed: int = FLUSHED) -> list[bytes]:
    """Leave a log of two segments behind whose first batches are known to be flushed; return its batches."""
    engine = started(directory)
    log = engine.open_log(PARTITION, SMALL)
    written = fill(log, 0, flushed)
    log.flush()
    engine.checkpoint({})
    written += fill(log, flushed, COUNT)
    engine.abandon()
    return written


def opened(directory: Path, known_end: int = 0) -> PartitionLog:
    engine = started(directory)
    try:
        return engine.open_log(PARTITION, SMALL, known_end=lambda _directory: known_end)
    except CorruptionError:
        engine.abandon()
        raise


def segments(directory: Path) -> list[Path]:
    return sorted((directory / "logs0" / str(PARTITION.topic_partition)).glob("*.log"))


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in segments(directory)}


def turn_over(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x55
    path.write_bytes(data)


def zero_from(path: Path, position: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:position] + bytes(len(data) - position))


def keep(first: Path, last: Path, count: int) -> None:
    """Leave so many batches in one file, or no file."""
    last.unlink()
    if count:
        os.truncate(first, count * SIZE)
    else:
        first.unlink()


TORN: dict[str, tuple[Callable[[Path, Path], object], int]] = {
    "untouched": (lambda first, last: None, COUNT),
    "the end torn off": (lambda first, last: os.truncate(last, 4 * SIZE - 3), COUNT - 1),
    "the last batch damaged": (lambda first, last: turn_over(last, -2), COUNT - 1),
    "the last batches zeros": (lambda first, last: zero_from(last, 2 * SIZE + 9), COUNT - 2),
    "the last segment empty": (lambda first, last: os.truncate(last, 0), SEGMENT),
    "everything behind the flushed ones gone": (lambda first, last: keep(first, last, FLUSHED), FLUSHED),
}
"""What a crash may leave of batches that nobody was told of, and how many are left."""


@pytest.mark.parametrize(("spoil", "left"), TORN.values(), ids=TORN)
def test_a_torn_tail_is_cut(spoil: Callable[[Path, Path], object], left: int, tmp_path: Path) -> None:
    written = crashed(tmp_path)
    spoil(*segments(tmp_path))

    assert written[:left] == all_bytes(opened(tmp_path))


REFUSED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a batch before others damaged": (lambda first, last: turn_over(last, SIZE + 70), f"06.log: .* at byte {SIZE} "),
    "an offset before others damaged": (lambda first, last: turn_over(last, SIZE + 2), f"06.log: .* at byte {SIZE} "),
    "the last offset damaged": (lambda first, last: turn_over(last, 3 * SIZE), f"06.log: .* at byte {3 * SIZE} "),
    "a closed segment damaged": (
        lambda first, last: turn_over(first, 5 * SIZE + 70),
        f"00.log: .* at byte {5 * SIZE} ",
    ),
    "a closed segment cut": (lambda first, last: os.truncate(first, 5 * SIZE), f"00.log: .* at byte {5 * SIZE} "),
    "a batch lost within": (
        lambda first, last: last.write_bytes(last.read_bytes()[7:]),
        "06.log: .* at byte 0 ",
    ),
    "flushed batches lost": (
        lambda first, last: keep(first, last, FLUSHED - 1),
        f"00.log: .* at byte {(FLUSHED - 1) * SIZE} .* up to offset {FLUSHED}$",
    ),
    "all segments lost": (lambda first, last: keep(first, last, 0), f"up to offset {FLUSHED}$"),
}
"""What no crash leaves, and what is said of it."""


@pytest.mark.parametrize(("spoil", "said"), REFUSED.values(), ids=REFUSED)
def test_other_damage_is_refused_and_nothing_is_touched(
    spoil: Callable[[Path, Path], object], said: str, tmp_path: Path
) -> None:
    crashed(tmp_path)
    spoil(*segments(tmp_path))
    before = content(tmp_path)

    with pytest.raises(CorruptionError, match=said) as caught:
        opened(tmp_path)

    assert "\n" not in str(caught.value)
    assert {name: data for name, data in content(tmp_path).items() if data} == before


def test_nothing_is_cut_below_what_the_owner_knows_to_be_whole(tmp_path: Path) -> None:
    crashed(tmp_path)
    os.truncate(segments(tmp_path)[-1], 3 * SIZE + 5)
    before = content(tmp_path)

    with pytest.raises(CorruptionError, match=r"up to offset 10$"):
        opened(tmp_path, known_end=10)

    assert content(tmp_path) == before
    assert opened(tmp_path, known_end=9).log_end_offset == 9


def test_records_lost_after_a_clean_end_are_missed(tmp_path: Path) -> None:
    engine = started(tmp_path)
    fill(engine.open_log(PARTITION, SMALL), 0, COUNT)
    engine.close({})
    os.truncate(segments(tmp_path)[-1], 3 * SIZE)

    with pytest.raises(CorruptionError, match=r"ends at offset 9, .* up to offset 10$"):
        opened(tmp_path)
    for path in segments(tmp_path):
        path.unlink()
    with pytest.raises(CorruptionError, match=r"no segment .* up to offset 10$"):
        opened(tmp_path)


def test_a_new_log_has_nothing_to_lose(tmp_path: Path) -> None:
    assert opened(tmp_path, known_end=5).log_end_offset == 0
