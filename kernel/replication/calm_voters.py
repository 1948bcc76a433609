"""Pure core: elections that are left alone, by the time at which they cannot be any more: one heap for all of a broker.

    heard at 100, calm for 2000 ──> due at 2100 ── heard at 1900 meanwhile ──> due at 3900, and the election saw nothing
                                                └─ not heard ────────────────> it is woken

An election in which nothing happens waits: a follower until its leader was not heard for a while, a leader until a
follower was not. Who hears whom is known to the shell, by broker and not by partition: all that hear the same are one
pile, which is due at once, and put off at once; that they were heard once more costs nothing, however many they are.
Now and then a pile is looked through: one of it may hear somebody else by now, and nobody has said so.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..partitions.replica import Replica

LOOK_THROUGH_MS: Final = 10_000
"""So long a pile is taken at its word."""


class Source(Protocol):
    """Whom elections hear: one leader, or the followers of a leader. Two are equal when they are the same brokers'."""

    def heard_ms(self) -> int | None:
        """Return when it was heard last, each of several; None where it may not be heard for all of its pile."""
        ...

    def __hash__(self) -> int: ...


class Heard(NamedTuple):
    """When whoever an election hears was heard last, each of them, and who that is."""

    heard_ms: int
    source: Source


class _Pile:
    """Those that are left alone as long as somebody is heard."""

    __slots__ = ("heard_ms", "length_ms", "replicas", "source", "sure_until_ms")

    def __init__(self, length_ms: int, heard: Heard) -> None:
        self.length_ms = length_ms
        self.heard_ms, self.source = heard
        self.sure_until_ms = self.heard_ms + LOOK_THROUGH_MS
        self.replicas: dict[Replica, None] = {}

    def is_heard(self, now_ms: int) -> bool:
        """Take note of when all of it was heard; return whether that is known, and puts it off."""
        heard_ms = self.source.heard_ms() if now_ms < self.sure_until_ms else None
        if heard_ms is None or heard_ms + self.length_ms <= now_ms:
            return False
        self.heard_ms = heard_ms
        return True


class CalmVoters:
    """Those that are left alone. Owned by `VotingReplicas`."""

    def __init__(self) -> None:
        """Begin with none."""
        self._pile_of: dict[Replica, _Pile] = {}
        self._piles: dict[tuple[Source, int], _Pile] = {}
        self._due: list[tuple[int, int, _Pile]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._pile_of)

    def __contains__(self, replica: Replica) -> bool:
        return replica in self._pile_of

    def begin(self, replica: Replica, length_ms: int, heard: Heard) -> None:
        """Leave one alone that is not, until nobody was heard for so long.

        Args:
            replica: Whose election.
            length_ms: How long that is.
            heard: Whoever it hears, and when.
        """
        key = (heard.source, length_ms)
        pile = self._piles.get(key)
        if pile is None:
            pile = self._piles[key] = _Pile(length_ms, heard)
            self._push(pile)
        pile.replicas[replica] = None
        self._pile_of[replica] = pile

    def end(self, replica: Replica) -> int | None:
        """Leave one alone no more; return when it was heard last, as far as was looked, None for one that was not."""
        pile = self._pile_of.pop(replica, None)
        if pile is None:
            return None
        del pile.replicas[replica]
        return pile.heard_ms

    def due(self, now_ms: int, heard: Callable[[Replica], Heard | None]) -> Iterator[Replica | None]:
        """Put off whoever was heard, and give those that were not, which are to be ended; None for what was put off.

        Others may begin and end in between. It is to be run to its end, or those that are due are left alone for ever.

        Args:
            now_ms: The monotonic clock.
            heard: Returns whom a replica hears and when, None where somebody is not.
        """
        while self._due and self._due[0][0] <= now_ms:
            pile = heappop(self._due)[2]
            if pile.is_heard(now_ms):
                self._push(pile)
                yield None
                continue
            del self._piles[pile.source, pile.length_ms]
            for replica in list(pile.replicas):
                if self._pile_of.get(replica) is not pile:
                    continue  # it was woken since
                found = heard(replica)
                if found is not None and found.heard_ms + pile.length_ms > now_ms:
                    self.end(replica)
                    self.begin(replica, pile.length_ms, found)
                    yield None
                else:
                    yield replica

    def _push(self, pile: _Pile) -> None:
        self._number += 1
        heappush(self._due, (pile.heard_ms + pile.length_ms, self._number, pile))
