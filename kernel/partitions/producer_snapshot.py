"""Pure core: the file that keeps a partition's producers, Kafka's `<offset>.snapshot`, version 1.

    | version | crc    | count | entries ...
    | int16   | uint32 | int32 |

    an entry, 46 bytes:
    | producer | producer | last     | last   | offset | timestamp | coordinator | first offset of the  |
    | id       | epoch    | sequence | offset | delta  |           | epoch       | open transaction     |
    | int64    | int16    | int32    | int64  | int32  | int64     | int32       | int64, -1 for none   |

The CRC-32C covers everything behind it. The name's offset says up to where the log was read.

*Source:* Kafka's ProducerSnapshot schema and ProducerStateManager.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from ..errors import CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..types import Buffer

SNAPSHOT_KIND: Final = "snapshot"
"""The file's extension."""

_VERSION: Final = 1
_HEADER: Final = struct.Struct(">hIi")
_CRC_END: Final = 6
_ENTRY: Final = struct.Struct(">qhiqiqiq")


class ProducerSnapshotEntry(NamedTuple):
    """One producer; -1 stands for "none" in sequence, offsets and coordinator epoch."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int


def pack_entry(entry: ProducerSnapshotEntry) -> bytes:
    """Return one producer as it stands in the file."""
    return _ENTRY.pack(*entry)


def snapshot_of(packed: Buffer) -> bytes:
    """Return the file of these packed producers."""
    body = struct.pack(">i", len(packed) // _ENTRY.size)
    return b"".join((struct.pack(">hI", _VERSION, crc32c(packed, crc32c(body))), body, packed))


def encode_snapshot(entries: Iterable[ProducerSnapshotEntry]) -> bytes:
    """Return the file of these producers, in this order."""
    return snapshot_of(b"".join(map(pack_entry, entries)))


def decode_snapshot(data: Buffer) -> list[ProducerSnapshotEntry]:
    """Return the producers of a file; see `snapshot_entries`."""
    return list(snapshot_entries(data))


def snapshot_entries(data: Buffer) -> Iterator[ProducerSnapshotEntry]:
    """Return what iterates over the producers of a file, which is sound.

    Raises:
        CorruptionError: At once: it is of another version, damaged, or cut off.
    """
    view = memoryview(data)
    if len(view) < _HEADER.size:
        raise CorruptionError(f"producer snapshot of {len(view)} bytes is cut off")
    version, crc, count = _HEADER.unpack_from(view)
    if version != _VERSION:
        raise CorruptionError(f"producer snapshot of version {version}, {_VERSION} was expected")
    if crc != crc32c(view[_CRC_END:]):
        raise CorruptionError("producer snapshot fails its CRC")
    if len(view) != _HEADER.size + count * _ENTRY.size:
        raise CorruptionError(f"producer snapshot of {len(view)} bytes cannot hold {count} producers")
    return map(ProducerSnapshotEntry._make, _ENTRY.iter_unpack(view[_HEADER.size :]))
