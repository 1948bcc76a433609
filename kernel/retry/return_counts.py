"""Pure core: how often the same record came to a retry topic as if for the first time: its client drops the headers.

Such a record goes round for ever, since what counts its attempts is a header. A record is known by its key and value;
so many are kept as fit a bound, those that came first are forgotten first.

.. versionadded:: 0.1
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..records.record import Record

KNOWN_MAX: Final = 4_096
_DIGEST_BYTES: Final = 16


class ReturnCounts:
    """Counts; owned by a stage. It may be asked by any thread: at worst one is counted too little.

    So nothing iterates over what is kept, which another thread may alter meanwhile.
    """

    def __init__(self, known_max: int = KNOWN_MAX) -> None:
        """Begin with none; keep `known_max` at most."""
        self._known_max = known_max
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def note(self, record: Record) -> int:
        """Count a record that says it never failed before; return how often it said so."""
        digest = hashlib.blake2b(record.value or b"", digest_size=_DIGEST_BYTES, key=_short(record.key)).digest()
        count = self._counts.pop(digest, 0) + 1
        if len(self._counts) >= self._known_max:
            with contextlib.suppress(KeyError):  # others took the last ones
                self._counts.popitem(last=False)
        self._counts[digest] = count
        return count


def _short(key: bytes | None) -> bytes:
    """Return a record's key as a key of a hash, which is not as long."""
    return hashlib.blake2b(key or b"", digest_size=_DIGEST_BYTES).digest()
