"""Pure core: the batches in which dead letters are appended, each with the note of how far they were taken.

The note is a companion that is a delivery (`kernel/delay/companion.py`): it counts only with the batch behind it. Its
only entry says where the retry topic's partition is fetched from next (in the place of the due time), which was the
last dead letter, and of which topic: a namesake that is made later is read from its begin.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..delay.companion import Companion, WaitingEntry, build_companion
from ..records.batch import HEADER_SIZE, read_header
from ..records.builder import BatchBuilder
from ..records.compression import CompressionType
from ..retry.dead_reader import BEGIN, Position
from ..retry.headers import DEAD_FROM

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator

    from ..records.record import Record
    from ..retry.dead_reader import DeadGroup


LETTERS_MAX: Final = 500
"""Of one batch: more take long to write."""
_RECORD_BYTES: Final = 32
"""At most, of a record without its key, its value and its headers."""
_HEADER_BYTES: Final = 10
"""At most, of a header without its name and its value."""


class TakenLetters(NamedTuple):
    """One append: the note, and the dead letters, how many they are, and where the reader stands then."""

    note: bytearray
    records: bytearray
    records_count: int
    position: Position


def position_in(last_note: WaitingEntry | None, topic_id: uuid.UUID) -> Position:
    """Return where the last note of a dead-letter partition says that its reader stands; at the begin without one."""
    if last_note is None or last_note.id_digest != topic_id.bytes:
        return BEGIN
    return Position(last_note.due_ms, last_note.origin)


def note_of(position: Position, topic_id: uuid.UUID, *, crc: int | None, epoch: int, now_ms: int) -> bytearray:
    """Return a note, alone where `crc` is None, else to be appended before the batch of that CRC."""
    entry = WaitingEntry(position.offset, position.last_origin, epoch, topic_id.bytes)
    return build_companion(Companion((entry,), b"", crc, is_delivery=True), timestamp=now_ms)


def batches_of(
    groups: Iterable[DeadGroup],
    *,
    partition: int,
    topic_id: uuid.UUID,
    epoch: int,
    now_ms: int,
    compression: CompressionType | None,
    bytes_max: int,
) -> Iterator[TakenLetters]:
    """Iterate over what is to be appended, in order.

    Args:
        groups: The dead letters.
        partition: The number of the retry topic's partition.
        topic_id: The retry topic's id.
        epoch: Of the leader that appends.
        now_ms: The wall clock: a dead letter's timestamp, so that it is kept from its death on.
        compression: The dead-letter topic's codec; None leaves them uncompressed.
        bytes_max: Of a batch, before compression, but for a letter that is larger alone.
    """
    for group in groups:
        letters = (_letter(record, partition, now_ms) for record in group.records)
        for records, is_last in _parts(letters, bytes_max):
            builder = BatchBuilder(compression=compression or CompressionType.NONE)
            for record in records:
                builder.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers)
            built = builder.build()
            position = Position(group.next_offset if is_last else group.companion_offset, records[-1].offset)
            crc = read_header(built).crc
            note = note_of(position, topic_id, crc=crc, epoch=epoch, now_ms=now_ms)
            yield TakenLetters(note, built, len(records), position)


def _letter(record: Record, partition: int, now_ms: int) -> Record:
    """Return a dead letter as it is to stand in its topic, still at the offset that it was failed at."""
    return record._replace(
        timestamp=now_ms, headers=(*record.headers, (DEAD_FROM, b"%d:%d" % (partition, record.offset)))
    )


def _parts(letters: Iterable[Record], bytes_max: int) -> Iterator[tuple[list[Record], bool]]:
    """Cut letters into parts that are no more than so many bytes, nor too many; tell the last."""
    part: list[Record] = []
    part_bytes = HEADER_SIZE
    for letter in letters:
        size_bytes = _size_bytes(letter)
        if part and (part_bytes + size_bytes > bytes_max or len(part) == LETTERS_MAX):
            yield part, False
            part, part_bytes = [], HEADER_SIZE
        part.append(letter)
        part_bytes += size_bytes
    yield part, True


def _size_bytes(letter: Record) -> int:
    """Return how many bytes a letter takes in a batch, at most."""
    size_bytes = _RECORD_BYTES + len(letter.key or b"") + len(letter.value or b"")
    for name, value in letter.headers:
        size_bytes += _HEADER_BYTES + len(name.encode(errors="surrogateescape")) + len(value or b"")
    return size_bytes
