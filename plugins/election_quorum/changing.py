"""Pure core: the change of voters that a leader is at: asked, appended, committed, answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from odradek.kernel.api import ErrorCode, KRaftVersion

from .timing import Timer
from .voter_changes import (
    KRAFT_VERSION_MAX,
    PendingChange,
    Refusal,
    Situation,
    VoterChange,
    answer_change,
    answers_at_once,
    asked_replica,
    decide,
    named_voters,
    wrong_epoch,
)

if TYPE_CHECKING:
    from odradek.kernel.api import KRaftVoters, PeerMessage, VotersChanged

    from .leadership import Leadership
    from .replica import Replica

NOT_LEADING: Final = Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this controller does not lead the quorum")
TIMED_OUT: Final = Refusal(ErrorCode.REQUEST_TIMED_OUT, "the change is appended and not committed in time")


class Changing:
    """At most one change. Owned by the election.

    A change that is not waited for any more, as its time is over or the leader is another, may be committed all the
    same: whoever asked looks, or asks again.
    """

    def __init__(self, replica: Replica) -> None:
        """Begin with none."""
        self._replica = replica
        self._pending: PendingChange | None = None
        self._timer = Timer()

    @property
    def is_under_way(self) -> bool:
        """Whether somebody waits for a change."""
        return self._pending is not None

    def ask(self, asked: PeerMessage, now_ms: int) -> None:
        """Begin a change, or refuse it."""
        replica, request = self._replica, cast("VoterChange", asked.message)
        wrong = wrong_epoch(asked.message, replica.standing.epoch)
        if wrong is not None or replica.leadership is None:
            self._answer(asked, wrong or NOT_LEADING)
            return
        has_caught_up = replica.leadership.has_caught_up(asked_replica(request), now_ms)
        self._begin(asked, decide(request, self._situation(replica.leadership, has_caught_up=has_caught_up)))

    def name_voters(self, asked: PeerMessage) -> None:
        """Begin to name the voters that the configuration names (`kraft.version` 1), or refuse it.

        What is asked is the record, without directories.
        """
        decided = self._named(asked)
        if decided is None:
            self._answer(asked, None)
        else:
            self._begin(asked, decided, KRaftVersion(version=0, k_raft_version=KRAFT_VERSION_MAX))

    def try_voters(self, asked: PeerMessage) -> None:
        """Answer whether `name_voters` would begin, and begin nothing."""
        decided = self._named(asked)
        self._answer(asked, decided if isinstance(decided, Refusal) else None)

    def _named(self, asked: PeerMessage) -> KRaftVoters | Refusal | None:
        leadership, known = self._replica.leadership, cast("KRaftVoters", asked.message)
        if leadership is None:
            return NOT_LEADING
        return named_voters(known, leadership.directories(), self._situation(leadership, has_caught_up=True))

    def _situation(self, leadership: Leadership, *, has_caught_up: bool) -> Situation:
        replica = self._replica
        return Situation(
            voters=replica.voters,
            has_committed=replica.high_watermark > leadership.epoch_start,
            is_changing=self._pending is not None or replica.voters.offset >= replica.high_watermark,
            has_caught_up=has_caught_up,
        )

    def _begin(self, asked: PeerMessage, decided: KRaftVoters | Refusal, *before: KRaftVersion) -> None:
        if isinstance(decided, Refusal):
            self._answer(asked, decided)
            return
        self._pending = PendingChange(asked, decided)
        self._timer.start(getattr(asked.message, "timeout_ms", self._replica.timeouts.fetch_ms))
        self._replica.effects.append((*before, decided))

    def appended(self, event: VotersChanged) -> None:
        """Take note that the log names these voters now."""
        pending = self._pending
        if pending is not None and event.record == pending.record:
            pending.offset = event.offset
            if answers_at_once(pending.asked.message):
                self._end(None)

    def settle(self) -> None:
        """Answer what is committed, or what this replica cannot bring to an end any more."""
        pending, replica = self._pending, self._replica
        if pending is None:
            return
        if replica.leadership is None:
            self._end(NOT_LEADING)
        elif 0 <= pending.offset < replica.high_watermark:
            self._end(None)

    def tick(self, now_ms: int) -> None:
        """Answer whoever has waited long enough."""
        if self._pending is not None and self._timer.is_due(now_ms):
            self._end(TIMED_OUT)

    def _end(self, refusal: Refusal | None) -> None:
        assert self._pending is not None, "there is a change to end"
        asked, self._pending = self._pending.asked, None
        self._answer(asked, refusal)

    def _answer(self, asked: PeerMessage, refusal: Refusal | None) -> None:
        response: Any = answer_change(asked.message, self._replica.standing, refusal)
        self._replica.effects.answer(asked, response)
