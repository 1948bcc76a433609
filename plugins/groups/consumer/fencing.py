"""Pure core: how members go: they leave, their session ends, they do not let go of partitions in time.

*Source:* KIP-848; the behaviour of Kafka 4.3's GroupMetadataManager.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from ..group import Effects
from . import records
from .group import ConsumerGroup
from .member import MemberState
from .settings import SESSION_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from odradek.kernel.api import CoordinatorSteps

    from ..group import Decided, ShardContext
    from .member import Member
    from .migration import Migration
    from .rebalancing import Rebalancing
    from .settings import Settings

_SESSION: Final = "consumer session"
_REBALANCE: Final = "consumer rebalance"
_JOIN: Final = "consumer join"
_SYNC: Final = "consumer sync"


class Fencing:
    """The ends of memberships in the groups of a shard, and the timers that bring them about.

    A heartbeat moves a deadline; its timer, when due, looks whether the deadline has moved and is armed again. So a
    heartbeat costs an entry in a table, not a timer.
    """

    def __init__(
        self, context: ShardContext, settings: Settings, rebalancing: Rebalancing, migration: Migration
    ) -> None:
        """Make it."""
        self._context = context
        self._timers = context.timers
        self._settings = settings
        self._rebalancing = rebalancing
        self._migration = migration
        self._session_ends_ms: dict[tuple[str, str], int] = {}

    # ---------------------------------------------------------------------------------------------------- memberships

    def without(self, group: ConsumerGroup, members: Sequence[Member], response: object, now_ms: int) -> Decided:
        """Return what is decided when members go: a new epoch begins or, if it may, the group becomes a classic one.

        Args:
            group: Their group.
            members: Who goes.
            response: For whoever asks for it.
            now_ms: The wall clock.
        """
        effects = Effects()
        if not members:
            return effects.result(response)
        if self._migration.may_downgrade_without(group, members):
            return self._downgraded_without(group, members, response, now_ms)
        for member in members:
            self._forget(group.group_id, member.member_id)
        for member in members:
            effects.records += records.removal(group.group_id, member.member_id)
        regexes = Counter(member.regex for member in members if member.regex)
        gone = [regex for regex, count in regexes.items() if group.regexes.get(regex) == count]
        effects.records += (records.regex_tombstone(group.group_id, regex) for regex in gone)
        metadata_hash = self._rebalancing.hash_of(group.topics_if(members, gone_regexes=gone))
        self._rebalancing.begin_epoch(group, metadata_hash, effects)
        return effects.result(response)

    def _downgraded_without(
        self, group: ConsumerGroup, members: Sequence[Member], response: object, now_ms: int
    ) -> CoordinatorSteps:
        effects = Effects()
        yield from self.forget_all(group)
        yield from self._migration.downgrade(group, effects, now_ms, leaving=members)
        return effects.result(response)

    def forget_all(self, group: ConsumerGroup) -> Generator[None, None, None]:
        """Ask for nothing any more of the members of a group that becomes a classic one: that watches them itself."""
        for member_id in group.members:
            self._forget(group.group_id, member_id)
            yield

    def _forget(self, group_id: str, member_id: str) -> None:
        """Ask for nothing any more of a member that goes.

        Its session stays, and finds nobody when it ends: should the records that remove the member be refused, it is a
        member still, and nobody may ever hear of it again.
        """
        for kind in (_REBALANCE, _JOIN, _SYNC):
            self._timers.cancel((kind, group_id, member_id))

    def _fence(self, group_id: str, member_id: str, now_ms: int) -> Decided:
        group = self._context.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and member_id in group.members:
            return self.without(group, (group.members[member_id],), None, now_ms)
        return Effects().result(None)

    # ------------------------------------------------------------------------------------------------------- sessions

    def loaded(self, group: ConsumerGroup) -> Generator[None, None, None]:
        """Give every member of a group its session time to show up, and its rebalance time to let go."""
        for member in group.members.values():
            self.saw(group.group_id, member.member_id)
            self.watch_revocation(group.group_id, member)
            yield

    def expect_all(self, group: ConsumerGroup) -> Generator[None, None, None]:
        """Begin the sessions of members of the classic protocol whose group has changed its protocol."""
        for member in group.members.values():
            if member.classic is not None:
                self.saw(group.group_id, member.member_id, member.classic.session_timeout_ms)
            yield

    def saw(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """Begin a member's session anew.

        Args:
            group_id: Of its group.
            member_id: Its id.
            timeout_ms: How long the session lasts; None for the group's setting.
        """
        if timeout_ms is None:
            timeout_ms = self._settings.of_group(group_id, SESSION_TIMEOUT)
        key = (group_id, member_id)
        before_ms = self._session_ends_ms.get(key)
        end_ms = self._session_ends_ms[key] = self._timers.monotonic_ms() + timeout_ms
        if before_ms is None or end_ms < before_ms:
            self._watch_session(key, timeout_ms)

    def keep(self, group_id: str, member: Member) -> None:
        """Take it that a member has just spoken; what it has still to do it has its whole time for."""
        self.saw(group_id, member.member_id, None if member.classic is None else member.classic.session_timeout_ms)
        self.watch_revocation(group_id, member)
        for kind in (_JOIN, _SYNC):
            key = (kind, group_id, member.member_id)
            if self._timers.is_scheduled(key):
                fence = partial(self._fence, group_id, member.member_id)
                self._timers.schedule(key, member.rebalance_timeout_ms, fence)

    def _watch_session(self, key: tuple[str, str], delay_ms: int) -> None:
        self._timers.schedule((_SESSION, *key), delay_ms, partial(self._session_due, key))

    def _session_due(self, key: tuple[str, str], now_ms: int) -> Decided:
        left_ms = self._session_ends_ms.get(key, 0) - self._timers.monotonic_ms()
        if left_ms > 0:
            self._watch_session(key, left_ms)
            return Effects().result(None)
        self._session_ends_ms.pop(key, None)
        return self._fence(*key, now_ms)

    # ------------------------------------------------------------------------------------------------ other deadlines

    def watch_revocation(self, group_id: str, member: Member) -> None:
        """Give a member of the consumer protocol its rebalance time to let go of partitions, if it has to.

        The time of one that has let go stays, and finds that when it is over: should the records that say so be
        refused, it has not.
        """
        if not member.is_classic and member.state is MemberState.UNREVOKED_PARTITIONS:
            key = (_REBALANCE, group_id, member.member_id)
            fence = partial(self._revocation_due, group_id, member.member_id, member.member_epoch)
            self._timers.schedule(key, member.rebalance_timeout_ms, fence)

    def _revocation_due(self, group_id: str, member_id: str, member_epoch: int, now_ms: int) -> Decided:
        group = self._context.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is None or member.member_epoch != member_epoch:
            return Effects().result(None)
        if member.is_classic or member.state is not MemberState.UNREVOKED_PARTITIONS:
            return Effects().result(None)
        return self._fence(group_id, member_id, now_ms)

    def expect_join(self, group_id: str, member: Member) -> None:
        """Give a member of the classic protocol its rebalance time to join again, from the first time it was told."""
        key = (_JOIN, group_id, member.member_id)
        if not self._timers.is_scheduled(key):
            self._timers.schedule(key, member.rebalance_timeout_ms, partial(self._fence, group_id, member.member_id))

    def has_joined(self, group_id: str, member_id: str) -> None:
        """A member of the classic protocol has joined again."""
        self._timers.cancel((_JOIN, group_id, member_id))

    def expect_sync(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Give a member of the classic protocol time to ask for its assignment."""
        self._timers.schedule((_SYNC, group_id, member_id), timeout_ms, partial(self._fence, group_id, member_id))

    def has_synced(self, group_id: str, member_id: str) -> None:
        """A member of the classic protocol has asked for its assignment."""
        self._timers.cancel((_SYNC, group_id, member_id))
