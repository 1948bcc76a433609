"""Pure core: which replicas regular work has to look at: those that changed since it looked last, and no others.

    opened, written, told otherwise   `note`, at once or at a turn's end
    a look at what changed            `take`; what is not settled is put back by `again`

So a broker with thousands of partitions that nobody uses does nothing for them. A log that changes by itself, as by a
flush, tells its engine, which keeps offsets; what changes a replica in another way has to say so here.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .replica import Replica


class Look(Enum):
    """What looks at replicas now and then; each sees every change once."""

    HIGH_WATERMARK = auto()
    PRODUCERS = auto()
    ROLLED_SNAPSHOTS = auto()
    CLOSED_SEGMENTS = auto()
    DELETED_RECORDS = auto()
    TIMED_FLUSH = auto()


class ChangedReplicas:
    """Owned by the reactor's task, as the replicas are. In the order of the changes, so that a seed is one run."""

    __slots__ = ("_fresh", "_waiting")

    def __init__(self) -> None:
        """Begin without any."""
        self._fresh: list[Replica] = []
        self._waiting: dict[Look, dict[Replica, None]] = {look: {} for look in Look}

    def note(self, replicas: Iterable[Replica]) -> None:
        """Take note of replicas that changed. Hot: once a turn, for all that it has written."""
        for replica in replicas:
            if not replica.is_change_noted:
                replica.is_change_noted = True
                self._fresh.append(replica)

    def take(self, look: Look) -> list[Replica]:
        """Return what changed since this look, and what it has put back; it may have gone offline or away since."""
        if self._fresh:
            for waiting in self._waiting.values():
                waiting.update(dict.fromkeys(self._fresh))
            for replica in self._fresh:
                replica.is_change_noted = False
            self._fresh.clear()
        taken, self._waiting[look] = self._waiting[look], {}
        return list(taken)

    def again(self, look: Look, replica: Replica) -> None:
        """Have this look see a replica the next time, too."""
        self._waiting[look][replica] = None
