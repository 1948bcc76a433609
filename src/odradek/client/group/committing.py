"""Shell: commits offsets, one commit after the other: an older one never overtakes a newer one.

Commits wait in a line; one task does them. A synchronous commit tries again until it succeeds, fails for good, or its
time is up; an asynchronous one is tried once, as in Java, for a newer one may be right behind it.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import attrs
import trio

from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ClientError

from ..brokers import now_ms
from ..errors import BrokerError, ClientClosedError, ClientTimeoutError, CommitFailedError, RebalanceInProgressError
from .committed import (
    MEMBERSHIP_REFUSALS,
    VERSION_WITHOUT_IDS,
    OffsetAndMetadata,
    Outcome,
    commit_outcome,
    commit_request,
    fetch_outcome,
    fetch_request,
    ids_of,
)
from .member import GroupMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias
    from uuid import UUID

    from odradek.kernel.peers.backoff import Backoff
    from odradek.kernel.types import TopicPartition

    from .coordinator import CoordinatorLink
    from .member import GroupSettings, Member

    Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
    OnCommit: TypeAlias = Callable[[Offsets, "ClientError | None"], object]

_log = logging.getLogger(__name__)


@attrs.define(eq=False)
class _Commit:
    """One commit in the line.

    Attributes:
        offsets: What.
        deadline_ms: Until when it is tried again; None for one attempt.
        on_done: Called at the end.
        done: Set at the end.
        error: Why it failed.
        is_given_up: Whether nobody waits for it any more, so that it need not begin.
    """

    offsets: Offsets
    deadline_ms: float | None
    on_done: OnCommit | None
    done: trio.Event = attrs.field(factory=trio.Event)
    error: ClientError | None = None
    is_given_up: bool = False


class Committer:
    """Commits and looks up a group's offsets; `run` is the one task that commits."""

    def __init__(self, settings: GroupSettings, link: CoordinatorLink, member: Member | None, backoff: Backoff) -> None:
        """Remember.

        Args:
            settings: The group's.
            link: Its coordinator.
            member: Who commits; None while partitions are assigned by hand.
            backoff: Pauses between attempts.
        """
        self.member = member
        self._settings = settings
        self._link = link
        self._backoff = backoff
        self._line: deque[_Commit] = deque()
        self._has_work = trio.Event()
        self.committed_count = 0

    async def commit(self, offsets: Offsets, *, timeout_ms: float) -> None:
        """Commit, and wait until that and everything before it in the line is done.

        Raises:
            CommitFailedError, RebalanceInProgressError: The membership does not allow it.
            BrokerError: The coordinator refuses for another reason.
            ClientTimeoutError: No success in time.

        Cancelled before its turn, it is not begun; cancelled later, whether it is done is unknown.
        """
        entry = _Commit(offsets, now_ms() + timeout_ms, None)
        self._append(entry)
        try:
            await entry.done.wait()
        except trio.Cancelled:
            entry.is_given_up = True
            raise
        if entry.error is not None:
            raise entry.error

    def commit_nowait(self, offsets: Offsets, on_done: OnCommit | None) -> None:
        """Commit without waiting; `on_done(offsets, error)` is called at the end, by the committing task."""
        self._append(_Commit(offsets, None, on_done))

    def _append(self, entry: _Commit) -> None:
        self._line.append(entry)
        self._has_work.set()

    async def settle(self) -> None:
        """Wait until all commits that are in the line now are done."""
        if self._line:
            await self._line[-1].done.wait()

    async def run(self) -> None:
        """Commit what is in the line until cancelled; then what is left ends with `ClientClosedError`."""
        try:
            while True:
                await self._has_work.wait()
                self._has_work = trio.Event()
                while self._line:
                    entry = self._line[0]
                    if not entry.is_given_up:
                        await self._do(entry)
                    self._line.popleft()
                    self._finish(entry)
        finally:
            while self._line:
                entry = self._line.popleft()
                entry.error = ClientClosedError("the consumer was closed before the commit")
                self._finish(entry)

    def _finish(self, entry: _Commit) -> None:
        entry.done.set()
        if entry.on_done is None:
            return
        try:
            entry.on_done(entry.offsets, entry.error)
        except Exception:
            _log.exception("the callback of a commit failed")

    async def _do(self, entry: _Commit) -> None:
        """Do one commit; the entry tells how it went."""
        failures_count = 0
        while True:
            deadline_ms = now_ms() + self._once_ms if entry.deadline_ms is None else entry.deadline_ms
            entry.error = ClientTimeoutError("the coordinator did not answer the commit in time")
            with trio.move_on_at(deadline_ms / 1_000):
                entry.error = await self._attempt(entry.offsets)
            if entry.error is None or not entry.error.retriable or entry.deadline_ms is None:
                return
            failures_count += 1
            pause_ms = self._backoff.pause_ms(failures_count)
            if entry.is_given_up or now_ms() + pause_ms >= entry.deadline_ms:
                return
            await trio.sleep(pause_ms / 1_000)

    @property
    def _once_ms(self) -> int:
        return self._settings.session_timeout_ms

    async def _attempt(self, offsets: Offsets) -> ClientError | None:
        metadata = GroupMetadata(self._settings.group_id, instance_id=self._settings.instance_id)
        if self.member is not None:
            current = self.member.metadata
            if current is None:
                return self._no_member(self.member)
            metadata = current
        ids = self._ids_of(offsets)
        try:
            response = await self._link.request(
                commit_request(metadata, offsets, ids), version_max=None if ids else VERSION_WITHOUT_IDS
            )
        except ClientError as error:
            return error
        outcome = commit_outcome(response, metadata.group_id, ids)
        self._heed(outcome)
        if outcome.code in MEMBERSHIP_REFUSALS and self.member is not None:
            self.member.on_commit_refused(metadata, outcome.code, now_ms())
        if outcome.error is None:
            self.committed_count += 1
        return outcome.error

    def _ids_of(self, partitions: Iterable[TopicPartition]) -> Mapping[str, UUID]:
        topics = dict.fromkeys(partition.topic for partition in partitions)
        return ids_of(topics, self._link.brokers.cluster.topic_id)

    def _heed(self, outcome: Outcome) -> None:
        """Doubt what an answer says is out of date."""
        if outcome.must_find:
            self._link.forget()
        if outcome.code is ErrorCode.UNKNOWN_TOPIC_ID:
            self._link.brokers.request_update()

    def _no_member(self, member: Member) -> ClientError:
        """Say why somebody who is not in the group cannot commit."""
        if member.is_rebalancing:
            return RebalanceInProgressError(
                ErrorCode.REBALANCE_IN_PROGRESS,
                f"group {self._settings.group_id!r} is rebalancing: poll, and commit again what is still owned",
            )
        return CommitFailedError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"this consumer is not in group {self._settings.group_id!r} now: it was not polled within "
            "max.poll.interval.ms, or was taken for dead",
        )

    async def fetch(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has committed; None where that is nothing.

        Raises:
            BrokerError: The coordinator refuses.
            ClientTimeoutError: No answer in time.
        """
        wanted = list(partitions)
        failures_count = 0
        last: ClientError | None = None
        with trio.move_on_after(timeout_ms / 1_000):
            while True:
                last, found = await self._fetch_once(wanted)
                if last is None:
                    return {partition: found.get(partition) for partition in wanted}
                if not last.retriable:
                    raise last
                failures_count += 1
                await trio.sleep(self._backoff.pause_ms(failures_count) / 1_000)
        raise ClientTimeoutError(f"no committed offsets within {timeout_ms:.0f} ms: {last or 'no coordinator'}")

    async def _fetch_once(
        self, wanted: list[TopicPartition]
    ) -> tuple[ClientError | None, dict[TopicPartition, OffsetAndMetadata | None]]:
        group_id = self._settings.group_id
        asking = self.member if self._settings.is_consumer_protocol else None
        member = asking.metadata if asking is not None else None
        ids = self._ids_of(wanted)
        try:
            response = await self._link.request(
                fetch_request(group_id, wanted, member, ids), version_max=None if ids else VERSION_WITHOUT_IDS
            )
        except ClientError as error:
            return error, {}
        outcome, found = fetch_outcome(response, group_id, ids)
        self._heed(outcome)
        if isinstance(outcome.error, BrokerError) and outcome.code in MEMBERSHIP_REFUSALS and member is not None:
            if asking is not None and asking is self.member:  # it may have left meanwhile
                asking.on_commit_refused(member, outcome.code, now_ms())
            outcome.error.retriable = True  # the member's next heartbeat settles who it is
        return outcome.error, found
