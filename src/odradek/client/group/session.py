"""Shell: a consumer's membership: the task that keeps it, and what a poll does for it.

`run` lives in the consumer's nursery: it sends what the member wants sent, heartbeats above all, however long the user
takes between polls; the member itself leaves its group when that is longer than `max.poll.interval.ms`. Listeners are
told by `attend`, which runs within `poll`.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

import trio

from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import id_text

from ..brokers import now_ms
from .assigning import assign
from .assignors import resolve_assignors
from .classic_member import ClassicMember
from .committing import Committer
from .consumer_member import ConsumerMember
from .coordinator import CoordinatorLink, KeyType
from .listener import RebalanceListener, tell
from .member import Assign, Call, CallKind, Rest, Send

if TYPE_CHECKING:
    import random

    from odradek.kernel.peers.backoff import Backoff
    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire import Message

    from ..brokers import Brokers
    from .committed import OffsetAndMetadata
    from .member import GroupMetadata, GroupSettings, Member
    from .subscription import Subscription

_log = logging.getLogger(__name__)

_LEAVE_TIMEOUT_MS = 5_000
"""How long a consumer that ends waits for its coordinator to hear of it, at most."""


class Positions(Protocol):
    """What a membership asks of its consumer."""

    def give(self, partitions: frozenset[TopicPartition]) -> None:
        """Begin to read these, from what is committed."""
        ...

    def take(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop to read these."""
        ...

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return up to where records of the assigned partitions were handed to the user."""
        ...

    def announce(self) -> None:
        """Wake whoever polls."""
        ...


class GroupSession:
    """A consumer's life in its group, from its opening to its end; it may be in and out of it in between."""

    def __init__(
        self,
        settings: GroupSettings,
        brokers: Brokers,
        positions: Positions,
        backoff: Backoff,
        random_source: random.Random,
        *,
        api_timeout_ms: int,
    ) -> None:
        """Remember; nothing is asked yet.

        Args:
            settings: The group's.
            brokers: The cluster.
            positions: The consumer.
            backoff: Pauses between attempts.
            random_source: For the member's id.
            api_timeout_ms: How long a commit on the way may take.
        """
        self.link = CoordinatorLink(brokers, settings.group_id, KeyType.GROUP, backoff)
        self.committer = Committer(settings, self.link, None, backoff)
        self.subscription: Subscription | None = None
        self._settings = settings
        self._brokers = brokers
        self._positions = positions
        self._backoff = backoff
        self._random = random_source
        self._api_timeout_ms = api_timeout_ms
        self._listener: RebalanceListener | None = None
        self._member: Member | None = None
        self._last_metadata: GroupMetadata | None = None
        self._wake = trio.Event()
        self._in_flight: trio.CancelScope | None = None
        self._next_auto_commit_ms = 0.0

    @property
    def metadata(self) -> GroupMetadata | None:
        """Who commits now; None before the group was joined.

        Of a member that is out of it, or on its way into the next generation, who it was: that is refused. As nobody it
        might commit for what others own by now, since coordinators ask nobody who commits in a transaction.
        """
        self._note_metadata()
        return self._last_metadata

    def _note_metadata(self) -> None:
        if self._member is None:
            self._last_metadata = None
        elif self._member.metadata is not None:
            self._last_metadata = self._member.metadata

    @property
    def member(self) -> Member | None:
        """The membership; None while nothing is subscribed to."""
        return self._member

    # Subscribing.

    def subscribe(self, subscription: Subscription, listener: RebalanceListener | None) -> None:
        """Join the group, or tell it what is wanted now.

        Raises:
            ConfigError: An assignor cannot be had.
        """
        if self._member is None:
            self._member = self.committer.member = self._new_member()
            self._next_auto_commit_ms = now_ms() + self._settings.auto_commit_interval_ms
        self.subscription = subscription
        self._listener = listener
        self._brokers.want_all(subscription.needs_all_topics)
        self._resubscribe()
        self._wake.set()

    def _new_member(self) -> Member:
        cluster = self._brokers.cluster
        if self._settings.is_consumer_protocol:
            return ConsumerMember(self._settings, id_text(RandomIds(self._random).new_id()), cluster, self._backoff)
        return ClassicMember(self._settings, resolve_assignors(self._settings.assignor_names), cluster, self._backoff)

    def _resubscribe(self) -> None:
        """Tell the member what the subscription means now."""
        assert self._member is not None
        assert self.subscription is not None
        topics = self.subscription.resolve(
            self._brokers.cluster, excludes_internal=self._settings.excludes_internal_topics
        )
        self._brokers.want(topics)
        self._member.subscribe(topics, self.subscription.regex, now_ms())

    def metadata_changed(self) -> None:
        """Take note that the client's image of the cluster is new."""
        if self._member is None or self.subscription is None:
            return
        if self.subscription.needs_all_topics:
            self._resubscribe()
        self._member.topics_changed(now_ms())
        self._wake.set()

    def wake(self) -> None:
        """Have the membership task look again."""
        self._wake.set()

    # What the membership task does.

    async def run(self) -> None:
        """Keep the membership until cancelled."""
        while True:
            self._wake = trio.Event()
            member = self._member
            self._note_metadata()
            if member is None:
                await self._wake.wait()
                continue
            action = member.action(now_ms())
            if member.error is not None or member.ownership.calls:
                self._positions.announce()
            if isinstance(action, Rest):
                with trio.move_on_at(action.until_ms / 1_000):
                    await self._wake.wait()
            elif isinstance(action, Assign):
                await self._assign(member, action)
            else:
                await self._send(member, action)

    async def _send(self, member: Member, action: Send) -> None:
        with trio.CancelScope() as self._in_flight:
            try:
                response = await self.link.request(action.request, timeout_ms=action.timeout_ms)
            except ClientError as error:
                _log.debug("%r: %s failed: %s", member, type(action.request).__name__, error)
                member.on_failure(action.request, error, now_ms())
            else:
                if member.on_response(action.request, response, now_ms()):
                    self.link.forget()
        self._in_flight = None
        if isinstance(member, ConsumerMember):
            self._brokers.want_ids(member.unnamed_topics)
        if member.ownership.calls or member.error is not None:
            self._positions.announce()

    async def _assign(self, member: Member, action: Assign) -> None:
        """Do the leader's work, by metadata that is as new as the members' wishes."""
        self._brokers.want(action.topics)
        with trio.CancelScope() as self._in_flight:
            try:
                await self._brokers.update(timeout_ms=self._settings.session_timeout_ms, is_urgent=True)
            except ClientError as error:
                _log.debug("assigning by the metadata at hand: %s", error)
            given, counts = assign(action.assignor, action.members, action.topics, self._brokers.cluster)
            member.assigned({} if action.skips else given, counts)
        self._in_flight = None

    # What a poll does.

    async def attend(self) -> None:
        """Do what is due: tell the listener, commit before partitions go, commit by the clock.

        Raises:
            ClientError: The member has failed for good.
            Exception: What the listener raises.

        Cancelled within a listener, its call counts as done; before, nothing is.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        member = self._member
        if member is None:
            self.auto_commit()
            return
        if member.polled(now_ms()):
            self._wake.set()
        while (call := member.ownership.first) is not None:
            await self._do(member, call)
        if member.error is not None:
            raise member.error
        self.auto_commit()

    def waits(self, is_waiting: bool) -> None:
        """Take note that a poll waits for records, or no longer."""
        if self._member is not None:
            self._member.waits(is_waiting, now_ms())
            self._wake.set()

    async def _do(self, member: Member, call: Call) -> None:
        member.ownership.begin(call)
        try:
            if call.kind is CallKind.ASSIGNED:
                self._positions.give(call.partitions)
            elif call.commits and self._settings.is_auto_commit:
                await self._commit_consumed(self._settings.poll_interval_ms_max)
            await tell(self._listener, call)
        finally:
            if call.kind is not CallKind.ASSIGNED:
                self._positions.take(call.partitions)
            member.call_done(call, now_ms())
            self._wake.set()

    # Commits by the clock.

    def auto_commit(self) -> None:
        """Commit what was consumed if it is time for that; only polls do, for what they returned is then processed."""
        settings, time_ms = self._settings, now_ms()
        if not settings.is_auto_commit or time_ms < self._next_auto_commit_ms:
            return
        self._next_auto_commit_ms = time_ms + settings.auto_commit_interval_ms
        offsets = self._positions.consumed()
        if offsets and (self._member is None or self._member.metadata is not None):
            self.committer.commit_nowait(offsets, self._on_auto_commit)

    def _on_auto_commit(self, offsets: object, error: ClientError | None) -> None:
        if error is None:
            return
        _log.warning("the automatic commit failed: %s", error)
        if error.retriable:
            self._next_auto_commit_ms = now_ms() + self._settings.retry_backoff_ms

    async def _commit_consumed(self, timeout_ms: int) -> None:
        """Commit before partitions go; a failure is logged, for the partitions go all the same."""
        offsets = self._positions.consumed()
        if not offsets:
            return
        try:
            await self.committer.commit(offsets, timeout_ms=min(timeout_ms, self._api_timeout_ms))
        except ClientError as error:
            _log.warning("the commit before partitions go failed: %s", error)

    # The end of a membership.

    async def end(self, *, is_peaceful: bool) -> None:
        """Leave with the consumer; by an exception or a cancellation nothing is committed, and nobody hears of it."""
        if is_peaceful:
            await self.leave("the consumer was closed", is_for_good=False)
            return
        member, self._member = self._member, None
        request = None if member is None else member.leave("the consumer failed", is_for_good=False)
        if request is not None:
            await self._say_goodbye(request, is_urgent=True)

    async def leave(self, reason: str, *, is_for_good: bool) -> None:
        """Commit, have the listener know, and leave the group; a member that was not in it just ends.

        Args:
            reason: For the broker's log.
            is_for_good: Whether a static member gives up its place.

        Raises:
            Exception: What the listener raises; the group is left all the same.

        Cancelled, the group is left, too: at once, whether or not the commit is done, and no listener is told any more.
        """
        member, self.subscription = self._member, None
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            with trio.move_on_after(_LEAVE_TIMEOUT_MS / 1_000):
                await self.committer.settle()
            if self._settings.is_auto_commit and (member is None or member.metadata is not None):
                await self._commit_consumed(_LEAVE_TIMEOUT_MS)
            if member is not None:
                kind = CallKind.LOST if member.metadata is None else CallKind.REVOKED
                await tell(self._listener, Call(kind, member.ownership.owned))
        finally:
            if member is not None:
                await self._go(member, reason, is_for_good=is_for_good)

    async def _go(self, member: Member, reason: str, *, is_for_good: bool) -> None:
        """Be no member from now on, and tell the coordinator, also in a task that is cancelled."""
        self._positions.take(member.ownership.owned)
        was_waiting = self._in_flight is not None
        if self._in_flight is not None:
            self._in_flight.cancel()
        request = member.leave(reason, is_for_good=is_for_good)
        self._member = self.committer.member = None
        self._wake.set()
        if request is not None:
            await self._say_goodbye(request, is_urgent=was_waiting)

    async def _say_goodbye(self, request: Message, *, is_urgent: bool) -> None:
        """Tell the coordinator; one that is not known, or does not hear it, finds out by the session's time-out."""
        if self.link.node_id is None:
            return
        with trio.move_on_after(_LEAVE_TIMEOUT_MS / 1_000, shield=True):
            try:
                await self.link.request(request, timeout_ms=_LEAVE_TIMEOUT_MS, is_urgent=is_urgent)
            except ClientError as error:
                _log.debug("leaving group %r failed: %s", self._settings.group_id, error)

    def __repr__(self) -> str:
        return f"<GroupSession {self._member or self._settings.group_id!r}>"
