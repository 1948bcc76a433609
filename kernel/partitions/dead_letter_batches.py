"""Pure core: the batches in which dead letters are appended, each with the note of how far they were taken.

The note is a companion that is a delivery (`kernel/delay/companion.py`): it counts only with the batch behind it. Its
only entry says where the retry topic's partition is fetched from next (in the place of the due time), which was the
last dead letter, and of which topic: a namesake that is made later is read from its begin.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..delay.companion import Companion, WaitingEntry, build_companion
from ..records.batch import read_header
from ..records.builder import BatchBuilder
from ..records.compression import CompressionType
from ..retry.dead_reader import BEGIN, Position
from ..retry.headers import DEAD_FROM

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator

    from ..records.record import Record
    from ..retry.dead_reader import DeadGroup


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
        bytes_max: Of a batch, about.
    """
    for group in groups:
        for records, is_last in _parts(group.records, bytes_max):
            builder = BatchBuilder(compression=compression or CompressionType.NONE)
            for record in records:
                headers = [*record.headers, (DEAD_FROM, b"%d:%d" % (partition, record.offset))]
                builder.append(record.key, record.value, timestamp=now_ms, headers=headers)
            built = builder.build()
            position = Position(group.next_offset if is_last else group.companion_offset, records[-1].offset)
            crc = read_header(built).crc
            note = note_of(position, topic_id, crc=crc, epoch=epoch, now_ms=now_ms)
            yield TakenLetters(note, built, len(records), position)


def _parts(records: tuple[Record, ...], bytes_max: int) -> Iterator[tuple[list[Record], bool]]:
    """Cut records into parts of about so many bytes; tell the last."""
    part: list[Record] = []
    part_bytes = 0
    for record in records:
        size_bytes = len(record.key or b"") + len(record.value or b"")
        if part and part_bytes + size_bytes > bytes_max:
            yield part, False
            part, part_bytes = [], 0
        part.append(record)
        part_bytes += size_bytes
    yield part, True
