"""Pure core: of each key the record that wins, in bounded memory: what compaction keeps of a log.

A table of fixed size with open addressing, 24 bytes a slot: 16 bytes of the key's hash, 8 of the winner's offset; where
not the offset decides, 8 more of what does, its *version*. Keys themselves are not kept; two keys of one hash would be
taken for one, which 128 bits of BLAKE2 make as likely as in Kafka, which does the same with MD5.

| winner | the record that stays of a key | equal |
| --- | --- | --- |
| `OFFSET` | the last | cannot be |
| `TIMESTAMP` | that with the largest timestamp | the last of them |
| `HEADER` | that with the largest number in a header; one with a number beats those without | the last of them |

*Source:* Kafka 4.3: SkimpyOffsetMap; KIP-280.
"""

from __future__ import annotations

import re
import struct
from array import array
from enum import Enum
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from .batch import CorruptRecordsError
from .run import GOES, HAS_COMPILED_RUNS, STAYS, STAYS_FOR_NOW, compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .record_view import RecordView
    from .run import RecordRun

_HASH_BYTES: Final = 16
_OFFSET_BYTES: Final = 8
SLOT_BYTES: Final = _HASH_BYTES + _OFFSET_BYTES
VERSIONED_SLOT_BYTES: Final = SLOT_BYTES + 8
SLOTS_MIN: Final = 16
NO_VERSION: Final = -(1 << 63)
"""What a record without a usable number has: less than any number, but for the least one itself."""
_VERSION_MAX: Final = (1 << 63) - 1
_BINARY_BYTES: Final = 8

_offset_at = struct.Struct("=q").unpack_from
_put_offset = struct.Struct("=q").pack_into
_version_at = struct.Struct("=qq").unpack_from
_put_version = struct.Struct("=qq").pack_into
_number_at = struct.Struct("=Q").unpack_from
_DECIMAL: Final = re.compile(rb"[+-]?[0-9]{1,19}")
_DIGITS: Final = re.compile(rb"[0-9]{1,19}")


class Winner(Enum):
    """What decides which record of a key stays."""

    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    HEADER = "header"


def number_of(value: bytes | None) -> int | None:
    """Return the number that a header's value stands for, None if it stands for none.

    Decimal digits with a sign or without one, at most 19 of them, are read as they look. Other values are numbers when
    they have eight bytes: big endian, signed. (Eight digits are decimal: as a binary number they would be 3.5e18, more
    than the nanoseconds since 1970.)
    """
    if value is None:
        return None
    if _DECIMAL.fullmatch(value):
        number = int(value)
        return number if NO_VERSION <= number <= _VERSION_MAX else None
    return int.from_bytes(value, "big", signed=True) if len(value) == _BINARY_BYTES else None


def digits_of(value: bytes | None) -> int | None:
    """Return the number that a header's value is in decimal digits, at most 19 of them; None if it is none."""
    if value is None or not _DIGITS.fullmatch(value):
        return None
    number = int(value)
    return number if number <= _VERSION_MAX else None


def last_header(headers: Sequence[tuple[str, bytes | None]], name: str) -> bytes | None:
    """Return the value of the last header of a name, None without one."""
    for key, value in reversed(headers):
        if key == name:
            return value
    return None


def numbers_in(run: RecordRun, header: str, *, takes_binary: bool, missing: int, is_compiled: bool) -> memoryview:
    """Return the number in a header of each record of a batch, as numbers of 8 bytes.

    Args:
        run: The batch.
        header: The header's name; of several the last counts.
        takes_binary: Whether a sign, and eight bytes big endian, are taken: see `number_of`; only digits otherwise.
        missing: What stands for no number.
        is_compiled: Whether the compiled function does the work.

    Raises:
        CorruptRecordsError: A record is malformed.
    """
    if is_compiled:
        name = header.encode("utf-8", "surrogateescape")
        try:
            return memoryview(compiled.header_numbers(run.payload, run.count, name, takes_binary, missing)).cast("q")
        except ValueError as exc:
            raise CorruptRecordsError(str(exc)) from exc
    read = number_of if takes_binary else digits_of
    numbers = (read(last_header(record.headers, header)) for record in run.records())
    return memoryview(array("q", [missing if number is None else number for number in numbers]))


def _wrapped(number: int) -> int:
    """Return a number as 64 bits hold it."""
    return (number - NO_VERSION & (1 << 64) - 1) + NO_VERSION


class KeyTable:
    """Keeps of each key the record that wins. A `WeighingSelection`, also for whole batches; owned by one pass."""

    __slots__ = ("_header", "_is_compiled", "_keys_count", "_keys_max", "_slot_bytes", "_slots", "_table", "_winner")

    def __init__(
        self,
        memory_bytes: int,
        records_max: int,
        load_factor: float = 0.9,
        *,
        winner: Winner = Winner.OFFSET,
        header: str = "",
        is_compiled: bool = HAS_COMPILED_RUNS,
    ) -> None:
        """Make an empty one.

        Args:
            memory_bytes: What it may take.
            records_max: How many records it will be told of at most: it takes no more than these need.
            load_factor: How full it may get, above 0; one slot stays free.
            winner: What decides.
            header: Whose number, where a header decides.
            is_compiled: Whether the compiled functions do the work.
        """
        self._is_compiled = is_compiled
        self._winner = winner
        self._header = header
        self._slot_bytes = SLOT_BYTES if winner is Winner.OFFSET else VERSIONED_SLOT_BYTES
        wanted = int(records_max / load_factor) + 2
        self._slots = max(min(memory_bytes // self._slot_bytes, wanted), SLOTS_MIN)
        self._keys_max = min(int(self._slots * load_factor), self._slots - 1)
        self._keys_count = 0
        # An offset is kept with 1 added: a slot of zeros is free.
        self._table = bytearray(self._slots * self._slot_bytes)

    def __len__(self) -> int:
        return self._keys_count

    @property
    def weighs(self) -> bool:
        """Whether records that stayed earlier must be weighed: an older one may win, unless the offset decides."""
        return self._winner is not Winner.OFFSET

    # ------------------------------------------------------------------------------------------------- single records

    def note(self, key: bytes, record: RecordView) -> bool:
        """See `RecordSelection.note`."""
        return self._note(key, record.offset, self._version_of(record))

    def weigh(self, key: bytes, record: RecordView) -> None:
        """See `WeighingSelection.weigh`."""
        self._weigh(key, record.offset, self._version_of(record))

    def keeps(self, key: bytes, record: RecordView) -> bool:
        """See `RecordSelection.keeps`."""
        return self._flag(key, record.offset, self._version_of(record), may_go=False) != GOES

    def _version_of(self, record: RecordView) -> int:
        if self._winner is Winner.OFFSET:
            return 0
        if self._winner is Winner.TIMESTAMP:
            return _wrapped(record.timestamp)
        number = number_of(last_header(record.headers, self._header))
        return NO_VERSION if number is None else number

    # --------------------------------------------------------------------------------------------------- whole batches

    def note_run(self, run: RecordRun, start_offset: int) -> int | None:
        """Take note of records with keys from an offset on.

        Returns:
            The offset of the first that there was no room for, None when there was room for all.

        Raises:
            CorruptRecordsError: One is malformed.
        """
        versions = self._versions(run)
        if self._is_compiled:
            try:
                self._keys_count, full_at = compiled.note_keys(
                    self._table,
                    self._slot_bytes,
                    self._keys_count,
                    self._keys_max,
                    run.payload,
                    run.count,
                    run.base_offset,
                    start_offset,
                    versions,
                )
            except ValueError as exc:
                raise CorruptRecordsError(str(exc)) from exc
            return full_at if full_at >= 0 else None
        for index, record in enumerate(run.raw()):
            offset = run.base_offset + record.offset_delta
            if offset >= start_offset and record.key is not None:
                version = versions[index] if versions else 0
                if not self._note(record.key, offset, version):
                    return offset
        return None

    def weigh_run(self, run: RecordRun, end_offset: int) -> None:
        """Take note of records below an offset, which stayed earlier; see `weigh`.

        Raises:
            CorruptRecordsError: One is malformed.
        """
        versions = self._versions(run)
        if self._is_compiled:
            table, slot_bytes = self._table, self._slot_bytes
            try:
                compiled.weigh_keys(table, slot_bytes, run.payload, run.count, run.base_offset, end_offset, versions)
            except ValueError as exc:
                raise CorruptRecordsError(str(exc)) from exc
            return
        for index, record in enumerate(run.raw()):
            offset = run.base_offset + record.offset_delta
            if offset < end_offset and record.key is not None:
                self._weigh(record.key, offset, versions[index] if versions else 0)

    def keep_run(self, run: RecordRun, end_offset: int, *, keeps_tombstones: bool) -> bytes:
        """Return a flag for each record (see `run.py`). What is not below `end_offset` stays.

        A record that has won over others of this pass stays for now, even a tombstone whose time has come: were it gone
        first, and the pass cut short by a crash, one of the others would win next time. It goes with a later pass.

        Raises:
            CorruptRecordsError: One is malformed.
        """
        versions = self._versions(run)
        if self._is_compiled:
            try:
                return compiled.keep_keys(
                    self._table,
                    self._slot_bytes,
                    run.payload,
                    run.count,
                    run.base_offset,
                    end_offset,
                    versions,
                    keeps_tombstones,
                )
            except ValueError as exc:
                raise CorruptRecordsError(str(exc)) from exc
        flags = bytearray()
        for index, record in enumerate(run.raw()):
            offset = run.base_offset + record.offset_delta
            if offset >= end_offset:
                flags.append(STAYS)
            elif record.key is None:
                flags.append(GOES)
            else:
                may_go = not record.has_value and not keeps_tombstones
                flags.append(self._flag(record.key, offset, versions[index] if versions else 0, may_go=may_go))
        return bytes(flags)

    def _versions(self, run: RecordRun) -> memoryview | None:
        """Return the records' versions, as numbers of 8 bytes."""
        if self._winner is Winner.OFFSET:
            return None
        if self._winner is Winner.HEADER:
            return numbers_in(run, self._header, takes_binary=True, missing=NO_VERSION, is_compiled=self._is_compiled)
        if run.append_time_ms is not None:
            return memoryview(array("q", [run.append_time_ms]) * run.count)
        if self._is_compiled:
            try:
                return memoryview(compiled.record_times(run.payload, run.count, run.base_timestamp)).cast("q")
            except ValueError as exc:
                raise CorruptRecordsError(str(exc)) from exc
        return memoryview(array("q", [_wrapped(run.base_timestamp + record.timestamp_delta) for record in run.raw()]))

    # --------------------------------------------------------------------------------------------------------- slots

    def _find(self, digest: bytes) -> int:
        """Return where the slot of a hash is, or the free one that it would take."""
        table, end = self._table, len(self._table)
        position: int = _number_at(digest)[0] % self._slots * self._slot_bytes
        while True:
            if table[position : position + _HASH_BYTES] == digest or not _offset_at(table, position + _HASH_BYTES)[0]:
                return position
            position += self._slot_bytes
            if position == end:
                position = 0

    def _note(self, key: bytes, offset: int, version: int) -> bool:
        if self._keys_count >= self._keys_max:
            return False
        digest = blake2b(key, digest_size=_HASH_BYTES).digest()
        position = self._find(digest) + _HASH_BYTES
        table = self._table
        if not _offset_at(table, position)[0]:
            table[position - _HASH_BYTES : position] = digest
            self._keys_count += 1
            self._put(position, offset, version)
        elif self._winner is Winner.OFFSET:
            _put_offset(table, position, offset + 1)
        else:
            self._put_if_larger(position, offset, version)
        return True

    def _weigh(self, key: bytes, offset: int, version: int) -> None:
        position = self._find(blake2b(key, digest_size=_HASH_BYTES).digest()) + _HASH_BYTES
        if self._winner is not Winner.OFFSET and _offset_at(self._table, position)[0]:
            self._put_if_larger(position, offset, version)

    def _put(self, position: int, offset: int, version: int) -> None:
        if self._winner is Winner.OFFSET:
            _put_offset(self._table, position, offset + 1)
        else:
            _put_version(self._table, position, offset + 1, version)

    def _put_if_larger(self, position: int, offset: int, version: int) -> None:
        best_offset, best_version = _version_at(self._table, position)
        if (version, offset + 1) > (best_version, best_offset):
            _put_version(self._table, position, offset + 1, version)

    def _flag(self, key: bytes, offset: int, version: int, *, may_go: bool) -> int:
        position = self._find(blake2b(key, digest_size=_HASH_BYTES).digest()) + _HASH_BYTES
        best_offset: int = _offset_at(self._table, position)[0]
        if not best_offset:
            return GOES if may_go else STAYS
        if self._winner is Winner.OFFSET:
            return STAYS if offset + 1 >= best_offset and not may_go else GOES
        best_version = _version_at(self._table, position)[1]
        return STAYS_FOR_NOW if (version, offset + 1) >= (best_version, best_offset) else GOES
