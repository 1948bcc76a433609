"""Pure core: a record as policies see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

NEVER_DUE: Final = (1 << 63) - 1
"""When a record is to go that stays for ever."""


class RecordView(Protocol):
    """A record as policies see it; timestamps in epoch milliseconds, -1 without one; a value of None is a tombstone."""

    @property
    def offset(self) -> int:
        """Where it stands."""
        ...

    @property
    def timestamp(self) -> int:
        """The producer's, or the broker's where the topic has `LogAppendTime`."""
        ...

    @property
    def key(self) -> bytes | None:
        """The key."""
        ...

    @property
    def value(self) -> bytes | None:
        """The value."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """Names and values, in their order; names may repeat."""
        ...
