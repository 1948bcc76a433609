"""Pure core: how a classic group gets from one generation to the next, and every timer that drives it there.

==================  ============================  ===============================================================
timer               armed                         when it is due
==================  ============================  ===============================================================
session (a member)  by every sign of life         the member is out
seen (a group)      when thousands are answered   the sessions of some more of them begin anew
join (a group)      when a rebalance begins       whoever has not joined is out; the generation begins
sync (a group)      when a generation begins      whoever has not synced is out; the group rebalances again
==================  ============================  ===============================================================

*Source:* KIP-62, KIP-134 (initial delay), KIP-345, KIP-394, KIP-559; the behaviour of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ErrorCode, run_at_once

from ..group import Effects
from .answers import join_refused, joined, sync_refused, synced
from .states import COMPLETING, EMPTY, PREPARING, STABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping

    from odradek.kernel.api import TimerKey, Waiter

    from ..group import Decided, ShardContext
    from .group import ClassicGroup
    from .member import ClassicMember

NEW_MEMBER_TIMEOUT_MS: Final = 300_000
"""How long a member that does not know its id yet may wait for its first generation: it cannot heartbeat."""

SEEN_AT_ONCE: Final = 100
"""So many sessions are begun anew at once, when all members of a group are answered."""

AT_ONCE_MAX: Final = 500
"""A group of so many members begins a generation, and hands out its shares, in one go; a larger one in steps."""

INITIAL_DELAY_KEY: Final = "group.initial.rebalance.delay.ms"


def _session_key(group: ClassicGroup, member_id: str) -> TimerKey:
    return "session", group.group_id, member_id


def _seen_key(group: ClassicGroup) -> TimerKey:
    return "seen", group.group_id


def _join_key(group: ClassicGroup) -> TimerKey:
    return "join", group.group_id


def _sync_key(group: ClassicGroup) -> TimerKey:
    return "sync", group.group_id


class Rebalances:
    """Moves the classic groups of one shard through their states. Every method adds what it decides to `effects`."""

    def __init__(self, context: ShardContext) -> None:
        """Make it; nothing is armed."""
        self._context = context
        self._timers = context.timers

    def _schedule(
        self, group: ClassicGroup, key: TimerKey, delay_ms: int, operation: Callable[[int, Effects], None]
    ) -> None:
        """Arm a timer of a group, which does nothing if the group is no longer, or never came to be, the one of its id.

        The records that make a group what its id stands for may be refused after its members' timers are armed.
        """

        def due(now_ms: int) -> Decided:
            effects = Effects()
            if self._context.groups.get(group.group_id) is group:
                operation(now_ms, effects)
            return effects.decided(None)

        self._timers.schedule(key, delay_ms, due)

    # --------------------------------------------------------------------------------------------------------- sessions

    def watch_session(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Expect a sign of life within a time; replaces what was expected before."""
        key = _session_key(group, member_id)
        self._schedule(group, key, timeout_ms, partial(self._session_expired, group, member_id))

    def saw(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Take a sign of life."""
        self.watch_session(group, member.member_id, member.session_timeout_ms)

    def saw_all(self, group: ClassicGroup, members: Iterable[ClassicMember]) -> None:
        """Take a sign of life of many members; of no more than some at once."""
        group.unseen.update((member.member_id, None) for member in members)
        self._see_some(group)

    def _see_some(self, group: ClassicGroup) -> None:
        for member_id in list(islice(group.unseen, SEEN_AT_ONCE)):
            del group.unseen[member_id]
            self.saw(group, group.members[member_id])
        if group.unseen:
            self._schedule(group, _seen_key(group), 0, lambda now_ms, effects: self._see_some(group))

    def keep(self, group: ClassicGroup, member_ids: Collection[str]) -> None:
        """Take it that members have just spoken; what they have still to do they have their whole time for.

        Members that wait for their first answer wait on: they do not know yet who they are.
        """
        for member_id in group.pending_joins.intersection(member_ids):
            self.watch_session(group, member_id, NEW_MEMBER_TIMEOUT_MS)
        kept = [group.members[member_id] for member_id in member_ids if member_id in group.members]
        for member in kept:
            self.saw(group, member)
        for member in group.members.values():
            if member.is_new:
                self.watch_session(group, member.member_id, NEW_MEMBER_TIMEOUT_MS)
        is_joined_again = group.state is PREPARING and group.previous_state is not EMPTY
        if is_joined_again and not all(member.is_awaiting_join for member in kept):
            self._arm_join(group, group.rebalance_timeout_ms)
        if not group.pending_syncs.isdisjoint(member_ids):
            self._arm_sync(group)

    def forget_session(self, group: ClassicGroup, member_id: str) -> None:
        """Expect nothing of a member that is gone."""
        self._timers.cancel(_session_key(group, member_id))

    def _session_expired(self, group: ClassicGroup, member_id: str, now_ms: int, effects: Effects) -> None:
        member = group.members.get(member_id)
        if member_id in group.pending_joins:
            self.remove_pending(group, member_id, now_ms, effects)
        elif member is not None and not member.may_be_silent and member_id not in group.unseen:
            self.remove_member(group, member, effects)
            self.member_left(group, now_ms, effects)

    # ---------------------------------------------------------------------------------------------- members come and go

    def remove_pending(self, group: ClassicGroup, member_id: str, now_ms: int, effects: Effects) -> None:
        """Let a member go that never joined with the id it was given; the others may have waited for it alone."""
        self.forget_session(group, member_id)
        group.remove(member_id)
        if group.state is PREPARING and group.have_all_joined:
            self.complete_join(group, now_ms, effects)

    def remove_member(self, group: ClassicGroup, member: ClassicMember, effects: Effects) -> None:
        """Let a member go; if it waits for an answer it is told that it is unknown, and may come back as a new one."""
        self.forget_session(group, member.member_id)
        self.answer_join(group, member, join_refused(ErrorCode.UNKNOWN_MEMBER_ID), effects)
        self.answer_sync(member, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID), effects)
        group.remove(member.member_id)

    def member_left(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Go on without a member that a session's end has removed."""
        if group.state in (STABLE, COMPLETING):
            self.prepare(group, now_ms, effects)
        elif group.state is PREPARING and group.have_all_joined:
            self.complete_join(group, now_ms, effects)

    # ----------------------------------------------------------------------------------------------- a rebalance begins

    def prepare_or_complete(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Begin a rebalance; if one is on, see whether all have joined now."""
        if group.may_rebalance:
            self.prepare(group, now_ms, effects)
        else:
            self.complete_join_if_all_joined(group, now_ms, effects)

    def prepare(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Begin a rebalance. A group that was empty waits a while for more members before its first generation."""
        if group.state is COMPLETING:
            for member in group.members.values():
                member.assignment = b""
            self.refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, effects)
        group.pending_syncs.clear()
        self._timers.cancel(_sync_key(group))
        is_initial = group.state is EMPTY
        group.become(PREPARING, now_ms)
        if is_initial:
            delay_ms = self._context.broker.config.get_int(INITIAL_DELAY_KEY)
            self._arm_initial(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.have_all_joined:
            self.complete_join(group, now_ms, effects)
        else:
            self._arm_join(group, group.rebalance_timeout_ms)

    def _arm_join(self, group: ClassicGroup, delay_ms: int) -> None:
        def due(now_ms: int, effects: Effects) -> None:
            if group.state is PREPARING:
                self.complete_join(group, now_ms, effects)

        self._schedule(group, _join_key(group), delay_ms, due)

    def _arm_initial(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Wait before the first generation, and again while new members come, within the rebalance time-out."""

        def due(now_ms: int, effects: Effects) -> None:
            if group.state is not PREPARING:
                return
            if group.has_new_member and remaining_ms:
                group.has_new_member = False
                initial_ms = self._context.broker.config.get_int(INITIAL_DELAY_KEY)
                self._arm_initial(group, min(initial_ms, remaining_ms), max(remaining_ms - delay_ms, 0))
            else:
                self.complete_join(group, now_ms, effects)

        self._schedule(group, _join_key(group), delay_ms, due)

    # ---------------------------------------------------------------------------------------------- a generation begins

    def complete_join_if_all_joined(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Begin the generation if nobody is waited for; the delay of a group's first one is kept all the same."""
        if group.state is PREPARING and group.previous_state is not EMPTY and group.have_all_joined:
            self.complete_join(group, now_ms, effects)

    def complete_join(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Begin the generation with those who have joined, and answer them all: the end of an operation.

        Static members that have not joined stay. If nobody at all has joined, the group waits once more: whoever is
        gone will run out of session time.
        """
        self._timers.cancel(_join_key(group))
        self._end(group, self._complete_join_in_steps(group, now_ms, effects), effects)

    def _end(self, group: ClassicGroup, steps: Generator[None, None, None], effects: Effects) -> None:
        """End an operation, at once or, where the group is large, in steps: nothing else of the shard comes between."""
        if len(group.members) > AT_ONCE_MAX:
            assert effects.steps is None, "an operation ends once"
            effects.steps = steps
        else:
            run_at_once(steps)

    def _complete_join_in_steps(
        self, group: ClassicGroup, now_ms: int, effects: Effects
    ) -> Generator[None, None, None]:
        for member in list(group.members.values()):
            if not member.is_awaiting_join and not member.is_static:
                self.remove_member(group, member, effects)
            yield
        if not group.elect_joined_leader() and group.members:
            self._arm_join(group, group.rebalance_timeout_ms)
            return
        yield from group.begin_generation(now_ms)
        if group.state is EMPTY:
            effects.records.append(group.record())
            return
        for member in group.members.values():
            self.answer_join(group, member, joined(group, member), effects)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
            yield
        self.saw_all(group, group.members.values())
        self._arm_sync(group)

    def answer_join(self, group: ClassicGroup, member: ClassicMember, response: object, effects: Effects) -> None:
        """Answer the JoinGroup that a member waits for, if it does."""
        waiter = group.take_join_waiter(member)
        if waiter is not None:
            effects.answers.append((waiter, response))

    def answer_sync(self, member: ClassicMember, response: object, effects: Effects) -> bool:
        """Answer the SyncGroup that a member waits for; return whether it did."""
        waiter, member.sync_waiter = member.sync_waiter, None
        if waiter is not None:
            effects.answers.append((waiter, response))
        return waiter is not None

    def park_join(self, group: ClassicGroup, member: ClassicMember, waiter: Waiter, effects: Effects) -> None:
        """Let a member's JoinGroup wait; an older one of it, whose connection is lost most likely, waits no longer."""
        self.answer_join(group, member, join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id), effects)
        group.park_join(member, waiter)

    def park_sync(self, member: ClassicMember, waiter: Waiter, effects: Effects) -> None:
        """Let a member's SyncGroup wait; as `park_join`."""
        self.answer_sync(member, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS), effects)
        member.sync_waiter = waiter

    # ------------------------------------------------------------------------------------------ a generation is stable

    def _arm_sync(self, group: ClassicGroup) -> None:
        generation_id = group.generation_id

        def due(now_ms: int, effects: Effects) -> None:
            if group.generation_id == generation_id and group.state in (COMPLETING, STABLE) and group.pending_syncs:
                for member_id in sorted(group.pending_syncs):
                    self.forget_session(group, member_id)
                    group.remove(member_id)
                self.prepare(group, now_ms, effects)

        self._schedule(group, _sync_key(group), group.rebalance_timeout_ms, due)

    def has_synced(self, group: ClassicGroup, member_id: str) -> None:
        """Wait for a member's SyncGroup no longer."""
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self._timers.cancel(_sync_key(group))

    def stabilize(self, group: ClassicGroup, assignments: Mapping[str, bytes], effects: Effects) -> None:
        """Have the leader's assignment written; each member that waits gets its share then: the end of an operation.

        The group is stable when the record is replayed. Should it be refused, the shares are nobody's: who waits is
        told so, and the leader may sync again.
        """
        self._end(group, self._stabilize_in_steps(group, assignments, effects), effects)

    def _stabilize_in_steps(
        self, group: ClassicGroup, assignments: Mapping[str, bytes], effects: Effects
    ) -> Generator[None, None, None]:
        effects.records.append((yield from group.record_in_steps(assignments)))
        answered = []
        for member in group.members.values():
            if self.answer_sync(member, synced(group, assignments.get(member.member_id, b"")), effects):
                answered.append(member)
            yield
        self.saw_all(group, answered)

    def refuse_syncs(self, group: ClassicGroup, code: ErrorCode, effects: Effects) -> None:
        """Answer every SyncGroup that waits with an error, and begin the sessions anew."""
        members = group.members.values()
        self.saw_all(group, [member for member in members if self.answer_sync(member, sync_refused(code), effects)])

    # ---------------------------------------------------------------------------------------------------------- the end

    def abandon(self, group: ClassicGroup, code: ErrorCode, effects: Effects) -> Generator[None, None, None]:
        """Tell `code` to whoever waits in a group that its tombstone is to end: it goes on under another protocol."""
        for member in group.members.values():
            self.answer_join(group, member, join_refused(code, member.member_id), effects)
            self.answer_sync(member, sync_refused(code), effects)
            yield

    def forget(self, group: ClassicGroup) -> None:
        """Disarm everything of a group that is gone."""
        for member_id in (*group.members, *group.pending_joins):
            self.forget_session(group, member_id)
        for key in (_seen_key(group), _join_key(group), _sync_key(group)):
            self._timers.cancel(key)
