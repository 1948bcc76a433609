"""Pure core: the newest offset of each key, in bounded memory: what compaction keeps of a log.

A table of fixed size with open addressing, 24 bytes a slot: 16 bytes of the key's hash, 8 bytes of offset. Keys
themselves are not kept; two keys of one hash would be taken for one, which 128 bits of BLAKE2 make as likely as in
Kafka, which does the same with MD5.

*Source:* Kafka 4.3: SkimpyOffsetMap.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import Final

_HASH_BYTES: Final = 16
SLOT_BYTES: Final = _HASH_BYTES + 8
SLOTS_MIN: Final = 16

_offset_at = struct.Struct(">q").unpack_from
_put_offset = struct.Struct(">q").pack_into
_number_at = struct.Struct(">Q").unpack_from


class NewestOffsets:
    """Keeps of each key the record with the largest offset. A `RecordSelection`; owned by one pass."""

    __slots__ = ("_keys_count", "_keys_max", "_slots", "_table")

    def __init__(self, memory_bytes: int, records_max: int, load_factor: float = 0.9) -> None:
        """Make an empty one.

        Args:
            memory_bytes: What it may take.
            records_max: How many records it will be told of at most: it takes no more than these need.
            load_factor: How full it may get, above 0; one slot stays free.
        """
        wanted = int(records_max / load_factor) + 2
        self._slots = max(min(memory_bytes // SLOT_BYTES, wanted), SLOTS_MIN)
        self._keys_max = min(int(self._slots * load_factor), self._slots - 1)
        self._keys_count = 0
        # An offset is kept with 1 added: a slot of zeros is free.
        self._table = bytearray(self._slots * SLOT_BYTES)

    def __len__(self) -> int:
        return self._keys_count

    def _find(self, digest: bytes) -> int:
        """Return where the slot of a hash is, or the free one that it would take."""
        table, end = self._table, len(self._table)
        position: int = _number_at(digest)[0] % self._slots * SLOT_BYTES
        while True:
            if table[position : position + _HASH_BYTES] == digest or not _offset_at(table, position + _HASH_BYTES)[0]:
                return position
            position += SLOT_BYTES
            if position == end:
                position = 0

    def note(self, key: bytes, offset: int) -> bool:
        """See `RecordSelection.note`."""
        if self._keys_count >= self._keys_max:
            return False
        digest = blake2b(key, digest_size=_HASH_BYTES).digest()
        table, position = self._table, self._find(digest)
        if not _offset_at(table, position + _HASH_BYTES)[0]:
            table[position : position + _HASH_BYTES] = digest
            self._keys_count += 1
        _put_offset(table, position + _HASH_BYTES, offset + 1)
        return True

    def keeps(self, key: bytes, offset: int) -> bool:
        """See `RecordSelection.keeps`."""
        position = self._find(blake2b(key, digest_size=_HASH_BYTES).digest())
        newest: int = _offset_at(self._table, position + _HASH_BYTES)[0]
        return offset + 1 >= newest
