"""Pure core: elections that are left alone, by the time at which they cannot be any more: one heap for all of a broker.

    heard at 100, calm for 2000 ──> due at 2100 ── heard at 1900 meanwhile ──> due at 3900, and the election saw nothing
                                                └─ not heard ────────────────> it is woken

An election in which nothing happens waits: a follower until its leader was not heard for a while, a leader until a
follower was not. Who hears whom is known to the shell, by broker and not by partition. So it looks an election's
neighbours up when it is due, and puts it off; that they were heard once more costs nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..partitions.replica import Replica


class _Calm:
    """One that is left alone."""

    __slots__ = ("heard_ms", "length_ms")

    def __init__(self, length_ms: int, heard_ms: int) -> None:
        self.length_ms, self.heard_ms = length_ms, heard_ms


class CalmVoters:
    """Those that are left alone. Owned by `VotingReplicas`."""

    def __init__(self) -> None:
        """Begin with none."""
        self._calm: dict[Replica, _Calm] = {}
        self._due: list[tuple[int, int, Replica, _Calm]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._calm)

    def __contains__(self, replica: Replica) -> bool:
        return replica in self._calm

    def begin(self, replica: Replica, length_ms: int, heard_ms: int) -> None:
        """Leave one alone that is not, until nobody was heard for so long.

        Args:
            replica: Whose election.
            length_ms: How long that is.
            heard_ms: When whoever it hears was heard last, each of them.
        """
        calm = self._calm[replica] = _Calm(length_ms, heard_ms)
        self._push(replica, calm)

    def end(self, replica: Replica) -> int | None:
        """Leave one alone no more; return when it was heard last, as far as was looked, None for one that was not."""
        calm = self._calm.pop(replica, None)
        return None if calm is None else calm.heard_ms

    def due(self, now_ms: int, heard: Callable[[Replica], int | None]) -> Iterator[Replica | None]:
        """Put off whoever was heard, and give those that were not, which are to be ended; None for one put off.

        Args:
            now_ms: The monotonic clock.
            heard: Returns when whoever a replica hears was heard last, None where somebody is not.
        """
        while self._due and self._due[0][0] <= now_ms:
            _due_ms, _number, replica, calm = heappop(self._due)
            if self._calm.get(replica) is not calm:
                continue  # it was woken since
            heard_ms = heard(replica)
            if heard_ms is not None and heard_ms + calm.length_ms > now_ms:
                calm.heard_ms = heard_ms
                self._push(replica, calm)
                yield None
            else:
                yield replica

    def _push(self, replica: Replica, calm: _Calm) -> None:
        self._number += 1
        heappush(self._due, (calm.heard_ms + calm.length_ms, self._number, replica, calm))
