"""Pure core: finds sound batches behind damaged ones, so that damage costs what it hit and little behind it.

A batch is *sound* when it is whole, its CRC is right and its offsets are those of the run that it lies in. What a
damaged one says of its own length is not believed: the bytes behind it are searched for the next sound one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..records.batch import HEADER_SIZE, MAGIC, MAGIC_POSITION, is_crc_valid, read_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..records.batch import BatchHeader
    from ..types import Buffer

_MAGIC_BYTE: Final = bytes((MAGIC,))


def sound_batch(data: Buffer, position: int, offsets: range) -> BatchHeader | None:
    """Return the header of the sound batch at a position, None if there is none.

    Args:
        data: A run of batches.
        position: In bytes.
        offsets: Of the run; its first batch may begin below, where the run was asked for from within it.
    """
    return None if damage_at(data, position, offsets) else read_header(data, position)


def damage_at(data: Buffer, position: int, offsets: range) -> str:
    """Return why there is no sound batch at a position; empty if there is one. Arguments as in `sound_batch`."""
    if len(data) - position < HEADER_SIZE:
        return f"{len(data) - position} bytes that are no batch"
    header = read_header(data, position)
    if header.magic != MAGIC:
        return f"a batch of magic {header.magic}"
    if not HEADER_SIZE <= header.length_bytes <= len(data) - position:
        return f"a batch of {header.length_bytes} bytes where there are {len(data) - position}"
    if not is_crc_valid(data, position, header):
        return "a batch whose CRC is wrong"
    if header.last_offset < offsets.start or header.last_offset >= offsets.stop:
        return f"a batch that ends at offset {header.last_offset}"
    return ""


def find_sound_batch(data: Buffer, position: int, limit: int, offsets: range) -> int | None:
    """Return where the first sound batch begins in `[position, limit)`, None if none does.

    Costs about a microsecond for each byte there that could be a magic.
    """
    end = min(limit + MAGIC_POSITION, len(data))
    window = bytes(memoryview(data)[position:end])
    at = window.find(_MAGIC_BYTE, MAGIC_POSITION)
    while at >= 0:
        found = position + at - MAGIC_POSITION
        if sound_batch(data, found, offsets) is not None:
            return found
        at = window.find(_MAGIC_BYTE, at + 1)
    return None


def first_readable(is_readable: Callable[[int], bool], start: int, end: int) -> int:
    """Return an offset from which on a log can be read again, close behind one from which it cannot; `end` if none.

    A storage finds its way by sparse indexes and by headers: from some offset behind the damage on it need not pass it.

    Args:
        is_readable: Says whether a log can be read from an offset on.
        start: From where it cannot.
        end: The log's end.
    """
    damaged, step = start, 1
    while damaged + step < end and not is_readable(damaged + step):
        damaged += step
        step *= 2
    readable = min(damaged + step, end)
    while readable - damaged > 1:
        middle = (damaged + readable) // 2
        if is_readable(middle):
            readable = middle
        else:
            damaged = middle
    return readable
