"""Pure core: when leaders have answered those who follow them here, and to which of them nobody listens any more.

A leader that answers its followers may be one whom the controllers have taken for dead, as it does not reach them:
clients are not told of it then, so its followers leave it when it has been fenced for a while.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from ..classes import frozen
from .calm_voters import Heard

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..contracts.election import KnownBroker
    from ..partitions.replica import Replica
    from .leaders_heard import HeardLeader

FENCED_MS: Final = 2000
"""So long a leader may be fenced, and answer: longer than a broker that begins needs to be taken for alive."""
SILENT_MS_MAX: Final = 60_000
"""So long what was heard of a leader is remembered."""
_HEARD_MS: Final = itemgetter(0)


class HeardLeaders:
    """Owned by `VotingReplicas`.

    Attributes:
        lost: Those to which nobody listens.
    """

    def __init__(self, broker_id: int, broker: Callable[[int], KnownBroker | None]) -> None:
        """Begin with nothing heard; `broker` returns a broker as the metadata knows it now."""
        self._broker_id, self._broker = broker_id, broker
        self._heard_ms: dict[HeardLeader, int] = {}
        self._fenced_since_ms: dict[int, int] = {}
        self._looked_ms = 0
        self.lost: frozenset[int] = frozenset()

    def note(self, leader: HeardLeader, now_ms: int) -> None:
        """Take note that a leader has answered a fetch."""
        self._heard_ms[leader] = now_ms

    def look(self, now_ms: int) -> list[HeardLeader]:
        """Look who is fenced; return those who have answered since the last look and are lost from now on."""
        heard = [leader for leader, heard_ms in self._heard_ms.items() if heard_ms >= self._looked_ms]
        self._looked_ms = now_ms
        for leader in [each for each, heard_ms in self._heard_ms.items() if heard_ms < now_ms - SILENT_MS_MAX]:
            del self._heard_ms[leader]
        lost_before = self.lost
        self.lost = self._fenced_for_long({leader.leader_id for leader in heard}, now_ms)
        return [leader for leader in heard if leader.leader_id in self.lost - lost_before]

    def of(self, replica: Replica) -> Heard | None:
        """Return when a follower's leader has answered a fetch of it last; None where its last fetch was without it."""
        if replica.leader_id in self.lost:
            return None
        heard = [
            (heard_ms, leader)
            for leader, heard_ms in self._heard_ms.items()
            if leader.leader_id == replica.leader_id and leader.hears(replica)
        ]
        if not heard:
            return None
        heard_ms, leader = max(heard, key=_HEARD_MS)
        return Heard(heard_ms, _Answers(self, leader))

    def heard_ms(self, leader: HeardLeader) -> int | None:
        """Return when one was heard last, None where it was not, or is not listened to."""
        return None if leader.leader_id in self.lost else self._heard_ms.get(leader)

    def _fenced_for_long(self, leader_ids: set[int], now_ms: int) -> frozenset[int]:
        """Return which leaders are fenced, and have been for a while, where this broker is not."""
        fenced = {each for each in leader_ids | self._fenced_since_ms.keys() if self._is_fenced(each)}
        self._fenced_since_ms = {each: self._fenced_since_ms.get(each, now_ms) for each in sorted(fenced)}
        if self._is_fenced(self._broker_id):
            return frozenset()
        return frozenset(each for each, since_ms in self._fenced_since_ms.items() if now_ms - since_ms >= FENCED_MS)

    def _is_fenced(self, broker_id: int) -> bool:
        known = self._broker(broker_id)
        return known is None or known.is_fenced


@frozen
class _Answers:
    """What a leader answers to one who asks it: a `Source`."""

    leaders: HeardLeaders
    leader: HeardLeader

    def heard_ms(self) -> int | None:
        """See `Source.heard_ms`: who is not heard any more is told to be so one by one."""
        return self.leaders.heard_ms(self.leader)
