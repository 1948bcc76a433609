"""Pure core: names whose records are withdrawn, each until all is over that waited when its withdrawal came.

.. versionadded:: 0.1
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_CANCEL: Final = struct.Struct(">16sqq")
ENTRY_BYTES: Final = _CANCEL.size


class Withdrawals:
    """The withdrawals of one partition. Owned by its ledger.

    Attributes:
        latest_due_ms: The latest due time of all that has waited, or may come to; -1 before the first.
    """

    __slots__ = ("_known", "latest_due_ms")

    def __init__(self, latest_due_ms: int = -1) -> None:
        """Begin without any."""
        self.latest_due_ms = latest_due_ms
        self._known: dict[bytes, tuple[int, int]] = {}  # name: origin, latest due time before it; by the latter

    def __len__(self) -> int:
        return len(self._known)

    def note_due(self, due_ms: int) -> None:
        """Take note of a record that waits, or may when its transaction is committed."""
        if due_ms > self.latest_due_ms:
            self.latest_due_ms = due_ms

    def add(self, id_digest: bytes, origin: int) -> None:
        """Take note that the records of a name that were produced before an offset are withdrawn."""
        known = self._known.pop(id_digest, None)
        if known is not None:  # one of a transaction comes when that is committed, perhaps behind a later one
            origin = max(origin, known[0])
        if self.latest_due_ms >= 0:
            self._known[id_digest] = origin, self.latest_due_ms

    def has(self, id_digest: bytes | None, origin: int) -> bool:
        """Return whether the record of a name, produced at an offset, was withdrawn."""
        known = None if id_digest is None else self._known.get(id_digest)
        return known is not None and origin < known[0]

    def forget(self, due_ms: int, pending_origin: int | None) -> None:
        """Forget those that cannot concern anything any more.

        Args:
            due_ms: All that was due before has been delivered.
            pending_origin: Records from this offset on may still come to wait; None when no transaction is open.
        """
        while self._known:
            id_digest, (origin, latest_due_ms) = next(iter(self._known.items()))
            if latest_due_ms >= due_ms or (pending_origin is not None and pending_origin < origin):
                return
            del self._known[id_digest]

    def encode(self) -> Iterator[bytes]:
        """Write them, `ENTRY_BYTES` each, in their order."""
        for id_digest, (origin, latest_due_ms) in self._known.items():
            yield _CANCEL.pack(id_digest, origin, latest_due_ms)

    def restore(self, data: bytes) -> None:
        """Take what `encode` has written."""
        for id_digest, origin, latest_due_ms in _CANCEL.iter_unpack(data):
            self._known[id_digest] = origin, latest_due_ms
