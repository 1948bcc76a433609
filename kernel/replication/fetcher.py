"""Shell: one fetcher: a task that asks one leader for the partitions it follows, over a connection of its own.

::

    plan ──> Fetch (incremental session, long poll) ──> answers ──> staged ──> one write a replica
      ^                                                                           │
      └──── watermarks, pauses, where to ask next <───────────────────────────────┘

A partition that comes to be followed while a long poll is on its way is not to wait until that is over: it is given up,
and the next request goes over the fetcher's other connection, in a session of its own.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

import attrs
import trio

from ..errors import KafkaError
from ..machine.turnstile import take_turn
from ..partitions.following import note_leader, rebuild_after_cut
from ..partitions.replica import Replica
from ..partitions.staged_writes import FIRST_BATCHES_MAX
from ..peers.errors import ClientError
from ..peers.fetch_session_handler import FetchSessionHandler
from ..types import NO_EPOCH, NO_OFFSET, TopicPartition
from ..wire.messages.api_01_fetch import ReplicaState
from ..wire.special_timestamps import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
)
from .fetch_planning import Followed, Plan, asked_slowly, fetch_request, offset_request
from .fetched import KnownOffset, Taken, go_to, take_answer, tells_of_leader
from .follower_flushes import FollowerFlushes, wants_flush

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ..machine.clock import Clock
    from ..machine.threads import Threads
    from ..partitions.replica_lifecycle import ReplicaLifecycle
    from ..partitions.replicas import Replicas
    from ..partitions.staged_writes import StagedWrites
    from ..peers.backoff import Backoff
    from ..peers.fetch_session_handler import Wish
    from ..types import Buffer
    from ..wire.message import Message
    from ..wire.messages.api_01_fetch import FetchResponse, PartitionData
    from .leaders_heard import LeadersHeard
    from .settings import FetcherSettings
    from .throttling import ReplicationQuota
    from .tier_starts import TierStarts
    from .traffic import ReplicationTraffic

log = logging.getLogger(__name__)

BYTES_BETWEEN_TURNS: Final = 256 * 1024
"""After so many bytes of an answer others get their turn."""
_NOWHERE: Final = KnownOffset(NO_OFFSET, NO_EPOCH)
IDLE_WAIT_MS: Final = 1000
"""How long is waited where everything that is followed is offline."""


class BrokerRequests(Protocol):
    """Who brings requests to other brokers."""

    async def request(self, node_id: int, message: Message, *, timeout_ms: int, purpose: str = "") -> Any:
        """Ask a broker and return its answer; requests of one purpose wait for each other.

        Raises:
            ClientError: It was not reached, or did not answer.
            KafkaError: UNSUPPORTED_VERSION.
        """
        ...


@attrs.frozen
class FetcherParts:
    """What all fetchers of a broker share.

    Attributes:
        brokers: Brings requests to leaders.
        replicas: Told of progress and of failures.
        lifecycle: Has replicas served again that were truncated.
        writes: The way to the disk.
        state: Returns who asks: this broker, and its epoch.
        settings: Returns the settings as they are now.
        backoff: Pauses after what failed.
        clock: Both clocks.
        threads: Flush what a topic wants flushed.
        tier_starts: Have logs begin at the remote store's part.
        quota: How much is taken for replicas that are throttled.
        traffic: Counts what is taken.
        voting: Told of answers for replicas that vote; None where none does.
    """

    brokers: BrokerRequests
    replicas: Replicas
    lifecycle: ReplicaLifecycle
    writes: StagedWrites
    state: Callable[[], ReplicaState]
    settings: Callable[[], FetcherSettings]
    backoff: Callable[[], Backoff]
    clock: Clock
    threads: Threads
    tier_starts: TierStarts
    quota: ReplicationQuota
    traffic: ReplicationTraffic
    voting: LeadersHeard | None = None


class _Told(NamedTuple):
    """What a leader told of a partition whose records were taken, and in which epoch it led."""

    replica: Replica
    leader_epoch: int
    answer: PartitionData
    is_still: bool


class Fetcher:
    """Life: made, `follow`, then `run` until it follows nothing. Owned by `Fetchers`; all on one task's run.

    Attributes:
        followed: What is asked for.
        lags: How many records followers lack of what is committed, those that lack any.
    """

    def __init__(self, leader_id: int, number: int, parts: FetcherParts) -> None:
        """Make one that follows nothing.

        Args:
            leader_id: Whom it asks.
            number: Which of the fetchers of this leader it is.
            parts: What it works with.
        """
        self.leader_id = leader_id
        self.number = number
        self.followed: dict[TopicPartition, Followed] = {}
        self.lags: dict[TopicPartition, int] = {}
        self._plan = Plan(self.followed)
        self._voters: dict[TopicPartition, Replica] = {}
        self._answered_last: tuple[Mapping[TopicPartition, Wish], Collection[Replica]] = ({}, ())
        self._parts = parts
        self._told: Collection[_Told] = ()
        self._session = FetchSessionHandler()
        self._failures_count = self._lane = 0
        self._poll: trio.CancelScope | None = None
        self._wake = trio.Event()
        self._flushes = FollowerFlushes(parts.writes, parts.threads)
        self._cut: trio.MemorySendChannel[Replica]

    def __repr__(self) -> str:
        return f"<Fetcher {self.number} of leader {self.leader_id}: {len(self.followed)} partitions>"

    def follow(self, replica: Replica) -> None:
        """Ask for a partition from now on, at once: a long poll under way is given up."""
        self._plan.is_stale = True
        self.followed[replica.topic_partition] = Followed(replica, self._parts.state().replica_id)
        if replica.voting is not None:
            self._voters[replica.topic_partition] = replica
        self._ask_at_once()

    def _ask_at_once(self) -> None:
        self._wake.set()
        if self._poll is not None and self._session.is_settled:
            self._poll.cancel()

    def forget(self, partition: TopicPartition) -> None:
        """Do not ask for a partition any more; what is under way of it is dropped."""
        self.lags.pop(partition, None)
        self._lose(partition)
        self._voters.pop(partition, None)
        self._plan.is_stale = True
        followed = self.followed.pop(partition, None)
        if followed is not None:
            self._flushes.forget(followed.replica)
            self._wake.set()

    async def run(self) -> None:
        """Fetch until nothing is followed. If it is cancelled, what was staged is written by the turn's end."""
        async with trio.open_nursery() as nursery:
            self._cut, cut = trio.open_memory_channel[Replica](math.inf)
            nursery.start_soon(self._rebuild, cut)
            with self._cut:
                nursery.start_soon(self._flushes.run)
                while self.followed or self._flushes.is_busy:
                    await self._fetch()
            self._flushes.end()

    async def _rebuild(self, cut: trio.MemoryReceiveChannel[Replica]) -> None:
        """Have replicas served again that were truncated, one after the other; others are fetched meanwhile.

        Cancelled: it goes on to its end, as each of them does.
        """
        with trio.CancelScope(shield=True):
            async for replica in cut:
                await rebuild_after_cut(self._parts.lifecycle, replica, self._parts.clock.now_ms())
                self._ask_at_once()

    async def _fetch(self) -> None:
        parts, settings = self._parts, self._parts.settings()
        self._wake = trio.Event()
        now_ms = parts.clock.monotonic_ms()
        wanted, next_due_ms = self._plan.now(
            now_ms, settings.partition_bytes_max, is_throttling=parts.quota.is_exceeded()
        )
        if len(wanted) < len(self.followed):
            self._forget_gone()
        if self._plan.has_slow and await self._flush([each.replica for each in self.followed.values()]):
            return  # what another fetcher took last, of this leader or of the one before
        if not wanted:
            await self._pause(IDLE_WAIT_MS if next_due_ms is None else next_due_ms - now_ms)
            return
        if self._voters:
            settings = attrs.evolve(settings, wait_ms_max=min(settings.wait_ms_max, settings.voters_wait_ms_max))
        if next_due_ms is not None:  # whoever is due first is not to wait for a long poll
            settings = attrs.evolve(settings, wait_ms_max=min(settings.wait_ms_max, max(next_due_ms - now_ms, 1)))
        named, forgotten = self._session.plan(wanted)
        if not self._session.is_settled:  # it names everything, and more may come: answered at once
            settings = attrs.evolve(settings, wait_ms_max=0)
        session = (self._session.session_id, self._session.epoch)
        response = await self._ask(fetch_request(settings, parts.state(), session, named, forgotten), settings)
        if response is None:
            return
        if not self._session.answered(response):
            await self._failed("session")
            return
        self._failures_count = 0
        await self._take(response, wanted)

    def _forget_gone(self) -> None:
        """Forget what was deleted, or opened anew, as another replica."""
        for partition, followed in list(self.followed.items()):
            if self._parts.replicas.find(partition.topic, partition.partition) is not followed.replica:
                self.forget(partition)

    async def _ask(self, request: Message, settings: FetcherSettings) -> Any:
        """Return the leader's answer; None where it was given up, or failed, after the pause that follows."""
        failure: Exception | None = None
        with trio.CancelScope() as scope:
            self._poll = scope
            try:
                return await self._parts.brokers.request(
                    self.leader_id,
                    request,
                    timeout_ms=settings.timeout_ms,
                    purpose=f"fetcher {self.number}.{self._lane}",
                )
            except (ClientError, KafkaError) as error:
                failure = error
            finally:
                self._poll = None
        self._session.failed()
        if failure is None:  # given up: what the leader may still answer there is not waited for
            self._lane ^= 1
        else:
            await self._failed(str(failure))
        return None

    async def _failed(self, reason: str) -> None:
        self._failures_count += 1
        if self._failures_count == 1:
            log.info("fetching from broker %d failed (%s); it is tried again", self.leader_id, reason)
        await self._pause(self._parts.backoff().pause_ms(self._failures_count))

    async def _pause(self, duration_ms: int) -> None:
        with trio.move_on_after(max(duration_ms, 1) / 1000):
            await self._wake.wait()

    # ---------------------------------------------------------------------------------------------------- the answer

    async def _take(self, response: FetchResponse, wanted: Mapping[TopicPartition, Wish]) -> None:
        """Do what an answer asks for, partition by partition; what it brought is written once for each."""
        told: list[_Told] = []
        lost: list[tuple[Followed, Taken]] = []
        staged: list[Replica] = []
        size_bytes = firsts_count = 0
        refused: dict[Replica, PartitionData] = {}
        for followed, answer, is_still in self._answered(response, wanted):
            records = cast("Buffer", answer.records if is_still and answer.records is not None else b"")  # in memory
            outcome = take_answer(followed.replica, answer, records, self._parts.clock.now_ms(), is_still=is_still)
            if outcome.taken is Taken.APPENDED:
                followed.failures_count = 0
                self._plan.moved.add(followed.replica.topic_partition)
                self._note_lag(followed, answer.high_watermark)
                told.append(_Told(followed.replica, followed.replica.leader_epoch, answer, is_still))
                if len(records):
                    self._note_bytes(followed, len(records))
                    firsts_count += not followed.replica.appended_offset
                    self._parts.writes.stage(followed.replica)
                    staged.append(followed.replica)
            elif outcome.taken is Taken.TRUNCATED:
                self._parts.writes.write_now(staged)  # other partitions' records do not wait
                await self._after_cut(followed.replica)
            elif outcome.taken is Taken.REFUSED:
                self._hold_back(followed, outcome.reason)
                refused[followed.replica] = answer
            else:
                lost.append((followed, outcome.taken))
            size_bytes += len(records)
            if size_bytes >= BYTES_BETWEEN_TURNS or firsts_count >= FIRST_BATCHES_MAX:
                if firsts_count:
                    self._parts.writes.write_now(staged)  # so that no turn makes more logs than these
                size_bytes = firsts_count = 0
                await take_turn()
        self._plan.is_stale |= len(told) < sum([len(topic.partitions) for topic in response.responses])
        self._parts.writes.write_now(staged)
        if self._voters and self._parts.voting is not None:
            self._tell_voting(self._parts.voting, wanted, told, refused)
        await self._flush(staged)
        told = [each for each in told if each.is_still]  # nothing is said of what others have behind where they asked
        self._note_leader({each.replica: each for each in (*self._told, *told)}.values() if self._told else told)
        for followed, taken in lost:
            await (self._find_range if taken is Taken.OUT_OF_RANGE else self._find_store_start)(followed)

    def _answered(
        self, response: FetchResponse, wanted: Mapping[TopicPartition, Wish]
    ) -> Iterator[tuple[Followed, PartitionData, bool]]:
        """Give the answers that still mean anything, and whether the replica stands where it asked from."""
        replicas = self._parts.replicas
        for topic in response.responses:
            known = replicas.topics_by_id.get(topic.topic_id)
            if known is None:
                continue
            for answer in topic.partitions:
                partition = TopicPartition(known.name, answer.partition_index)
                followed, asked = self.followed.get(partition), wanted.get(partition)
                if (
                    followed is not None
                    and asked is not None
                    and asked.topic_id == topic.topic_id
                    and followed.may_take(asked)
                ):
                    is_still = followed.replica.log.log_end_offset == asked.partition.fetch_offset
                    if is_still or tells_of_leader(answer):
                        yield followed, answer, is_still

    async def _after_cut(self, replica: Replica) -> None:
        """Have put right what a truncation leaves, and let others come in between: a cut takes its time as well."""
        self._parts.replicas.changed.note((replica,))
        self._cut.send_nowait(replica)
        await take_turn()

    def _note_bytes(self, followed: Followed, size_bytes: int) -> None:
        self._parts.traffic.came(followed.replica, followed.broker_id, size_bytes)
        if self._parts.quota.is_set and followed.is_throttled:
            self._parts.quota.record(size_bytes)

    def _note_lag(self, followed: Followed, high_watermark: int) -> None:
        replica = followed.replica
        lag = high_watermark - replica.log.log_end_offset
        followed.is_in_sync = lag <= 0
        if lag > 0:
            self.lags[replica.topic_partition] = lag
        elif self.lags:
            self.lags.pop(replica.topic_partition, None)

    def _hold_back(self, followed: Followed, reason: str) -> None:
        self._plan.is_stale = True
        followed.failures_count += 1
        if reason and followed.failures_count == 1:
            log.warning("%s is not fetched from broker %d: %s", followed.replica.partition, self.leader_id, reason)
        pause_ms = self._parts.backoff().pause_ms(followed.failures_count)
        followed.due_ms = self._parts.clock.monotonic_ms() + pause_ms

    async def _flush(self, replicas: list[Replica]) -> bool:
        """Flush where the topic wants it, and wait for it unless it takes long; return whether there was any."""
        new = self._flushes.ask(replicas)
        if new:
            await self._flushes.wait(new, self._parts.settings().voters_wait_ms_max)
        return bool(new)

    def voters_heard(self) -> list[Replica]:
        """See `HeardLeader.voters_heard`: all that were asked for, named in the answer or not, but who was refused."""
        return [replica for replica in self._voters.values() if self.hears(replica)]

    def hears(self, replica: Replica) -> bool:
        """See `HeardLeader.hears`."""
        wanted, refused = self._answered_last
        partition = replica.topic_partition
        asked = wanted.get(partition)
        return (
            asked is not None
            and asked.partition.current_leader_epoch == replica.leader_epoch
            and self._voters.get(partition) is replica
            and replica not in refused
        )

    def _lose(self, partition: TopicPartition) -> None:
        voter = self._voters.get(partition)
        if voter is not None and self._parts.voting is not None and self.hears(voter):
            self._parts.voting.unheard(voter)

    def _tell_voting(
        self,
        voting: LeadersHeard,
        wanted: Mapping[TopicPartition, Wish],
        told: list[_Told],
        refused: Mapping[Replica, PartitionData],
    ) -> None:
        if wanted is not (before := self._answered_last[0]):
            for partition in before:
                if partition not in wanted:
                    self._lose(partition)
        self._answered_last = (wanted, refused)
        slow = [each for each in self.voters_heard() if asked_slowly(wanted, each)] if self._plan.has_slow else []
        voting.heard(self, (each.replica for each in told if each.replica.voting is not None), slow)
        for replica, answer in refused.items():
            if replica.voting is not None:
                voting.refused(self.leader_id, replica, answer)

    def _note_leader(self, told: Collection[_Told]) -> None:
        """Take note of what leaders tell, as far as it counts here; of what is not flushed yet once more when it is."""
        progressed = []
        self._told = [each for each in told if wants_flush(each.replica)] if self._flushes.is_busy else ()
        for replica, leader_epoch, answer, _ in told:
            if replica.offline_reason is not None or replica.is_leader or replica.leader_epoch != leader_epoch:
                continue
            before = (replica.high_watermark, replica.log.log_start_offset)
            try:
                note_leader(replica, answer.high_watermark, answer.log_start_offset)
            except KafkaError:
                continue  # its log failed, which was told
            if before != (replica.high_watermark, replica.log.log_start_offset):
                progressed.append(replica)
        if progressed:
            self._parts.replicas.changed.note(progressed)
            self._parts.replicas.progressed(progressed)

    async def _find_range(self, followed: Followed) -> None:
        """Ask where the leader's log begins and ends, and go there."""
        replica = followed.replica
        stands = _where(replica)
        found: list[KnownOffset] = []
        for timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP):
            offset = await self._offset_at(replica, timestamp)
            if offset is None or not self._is_still(followed, stands):
                self._hold_back(followed, "")
                return
            found.append(offset)
        start, end = found
        try:
            if go_to(replica, start, end.offset, self._parts.clock.now_ms()):
                log.warning("%s follows from offset %d on", replica.partition, replica.log.log_end_offset)
                await self._after_cut(replica)
            else:
                self._hold_back(followed, "")
        except KafkaError as error:
            self._hold_back(followed, error.code.name)

    async def _find_store_start(self, followed: Followed) -> None:
        """Ask where the leader's local log begins, and have this one begin there or behind."""
        replica = followed.replica
        stands = _where(replica)
        begins_at_end = self._parts.tier_starts.begins_at_end(replica, self._parts.settings())
        at = await self._offset_at(replica, EARLIEST_PENDING_UPLOAD_TIMESTAMP) if begins_at_end else _NOWHERE
        if at is not None and at.offset == NO_OFFSET:
            at = await self._offset_at(replica, EARLIEST_LOCAL_TIMESTAMP)
        if at is None or not self._is_still(followed, stands):
            self._hold_back(followed, "")
            return
        followed.is_beginning = self._plan.is_stale = True
        self._parts.tier_starts.ask(replica, at.offset, partial(self._has_begun, followed))

    def _has_begun(self, followed: Followed, reason: str | None) -> None:
        followed.is_beginning, self._plan.is_stale = False, True
        if reason is None:
            self._parts.replicas.changed.note((followed.replica,))
        else:
            self._hold_back(followed, reason)
        if self.followed.get(followed.replica.topic_partition) is followed and reason is None:
            self.follow(followed.replica)
        self._wake.set()

    def _is_still(self, followed: Followed, stands: tuple[int, int]) -> bool:
        """Return whether a replica stands where it did when its leader was asked, and no other fetcher has it by now.

        In one leader epoch a partition goes to another fetcher where their number changes: what that one took counts.
        """
        is_followed = self.followed.get(followed.replica.topic_partition) is followed
        return is_followed and _where(followed.replica) == stands

    async def _offset_at(self, replica: Replica, timestamp: int) -> KnownOffset | None:
        request = offset_request(replica, self._parts.state().replica_id, timestamp)
        response = await self._ask(request, self._parts.settings())
        if response is None:
            return None
        ((answer,),) = (topic.partitions for topic in response.topics)
        return None if answer.error_code else KnownOffset(answer.offset, answer.leader_epoch)


def _where(replica: Replica) -> tuple[int, int]:
    return replica.leader_epoch, replica.log.log_end_offset
