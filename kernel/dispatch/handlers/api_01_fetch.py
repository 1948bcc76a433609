"""Shell: Fetch (key 1): reads what a consumer or follower asks for, or waits for it.

Records are never copied here: an answer holds slices of files, which the network sends with sendfile.

Version 13 addresses topics by id. *Source:* KIP-74 (limits), KIP-98 (isolation), KIP-227 (sessions), KIP-320 (epochs),
KIP-516 (ids), KIP-951 (current leader).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import trio

from ...contracts.api_handler import AS_TASK, PENDING
from ...contracts.election import NO_BROKER_EPOCH
from ...errors import ErrorCode, KafkaError
from ...machine.turnstile import run_in_slices
from ...purgatory.timing_wheel import until_beat_ms
from ...types import CONSUMER_REPLICA_ID, ISOLATION_LEVELS
from ...wire.messages.api_01_fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ...wire.records import records_size
from ..fetch_operation import (
    FIRST_VERSION_WITH_IDS,
    FetchLimits,
    FetchOperation,
    FetchResult,
    begin_cold_read,
    find_watched,
    nothing_new,
    read_targets,
)
from ..fetch_throttling import throttled_bytes
from ..follower_notes import note_in_slices, note_positions
from ..repeated_fetch import RepeatedFetches
from ..wide_fetch import (
    AT_ONCE_IN_SESSION_MAX,
    AT_ONCE_MAX,
    HUGE_FROM,
    HUGE_MAX,
    WideFetchOperation,
    build_in_slices,
    read_in_slices,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from uuid import UUID

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.election import KnownBroker
    from ...machine.clock import Clock
    from ...partitions.replicas import Replicas
    from ...partitions.topic_replicas import TopicReplicas
    from ...purgatory.purgatory import Purgatory
    from ...replication.throttling import ReplicationQuota
    from ...replication.traffic import ReplicationTraffic
    from ...wire.messages.api_01_fetch import FetchRequest
    from ..current_leaders import CurrentLeaders
    from ..fetch_context import FetchContext
    from ..fetch_session import FetchSessionCache
    from ..fetch_target import FetchTarget
    from ..repeated_fetch import RepeatedFetch


def _do_nothing() -> None:
    pass


def _named_count(request: FetchRequest) -> int:
    return sum([len(topic.partitions) for topic in request.topics])


class FetchHandler:
    """Answers Fetch. Owned by the reactor's task."""

    api_key = 1
    elements_max = 250_000
    """A follower's full fetch of all that a broker may lead; what it makes of them takes some hundred megabytes."""
    long_frame_bytes = 8192
    """From some hundred partitions on a request is decoded in slices."""

    def __init__(
        self,
        *,
        replicas: Replicas,
        sessions: FetchSessionCache,
        purgatory: Purgatory,
        clock: Clock,
        max_bytes: int,
        cold_wait_ms: Callable[[], int],
        broker: Callable[[int], KnownBroker | None],
        leaders: CurrentLeaders,
        quota: ReplicationQuota | None = None,
        traffic: ReplicationTraffic | None = None,
    ) -> None:
        """Make the handler.

        Args:
            replicas: Where to read.
            sessions: The broker's fetch sessions.
            purgatory: Where long polls wait.
            clock: The monotonic one is used.
            max_bytes: `fetch.max.bytes`: what an answer holds at most, whatever the client asks for.
            cold_wait_ms: `remote.fetch.max.wait.ms`: how long is waited for a remote store, whatever the client asks.
            broker: Returns a broker as it is known now: an earlier process of a follower gets nothing.
            leaders: Tells who leads what this broker does not, and which replica a consumer reads from.
            quota: How much throttled followers may have; None where no other broker holds replicas.
            traffic: Counts what followers are given; None there, too.
        """
        self._replicas = replicas
        self._sessions = sessions
        self._purgatory = purgatory
        self._clock = clock
        self._max_bytes = max_bytes
        self._cold_wait_ms = cold_wait_ms
        self._broker = broker
        self._leaders = leaders
        self._quota = quota
        self._traffic = traffic
        self.repeats = RepeatedFetches()
        self._huge = trio.Semaphore(HUGE_MAX)

    def handle(self, request: FetchRequest, context: RequestContext) -> Answer:
        """Answer at once if there is enough, else wait for `max_wait_ms`, or for what is in a remote store."""
        if (
            _named_count(request) > AT_ONCE_MAX
            or self._sessions.targets_count(request.session_id) > AT_ONCE_IN_SESSION_MAX
        ):
            return AS_TASK
        limits = self._limits(request, context)
        return self._answer(request, context, limits, self._open(request, limits))

    async def handle_async(self, request: FetchRequest, context: RequestContext) -> Answer:
        """Answer a Fetch of very many partitions. Cancelled: the client is gone, or the broker ends."""
        is_huge = _named_count(request) + self._sessions.targets_count(request.session_id) >= HUGE_FROM
        limiter: trio.Semaphore | nullcontext[None] = self._huge if is_huge else nullcontext()
        async with limiter:
            limits = self._limits(request, context)
            session = await run_in_slices(self._open_in_steps(request, limits))
            targets = session.targets
            if limits.is_follower:
                limits.is_stale = self._is_stale(limits)
                await note_in_slices(self._replicas, targets, limits, session.stamp)
            is_incremental = session.is_incremental and limits.max_bytes >= 0
            result = await read_in_slices(self._replicas, targets, limits, is_incremental=is_incremental)
            wait_ms = self._wait_ms(request, limits, targets, result)
            if not wait_ms:
                for target in result.cold:
                    begin_cold_read(target, limits, _do_nothing)
                return await self._wide_response(session, result, context, limits)
            operation = WideFetchOperation(
                deadline_ms=limits.now_ms + wait_ms,
                context=context,
                replicas=self._replicas,
                session=session,
                limits=limits,
                found=result,
            )
            self._purgatory.watch(operation, find_watched(self._replicas, targets, limits.version))
            operation.ask_for(result.cold)
            for replica in operation.changed_since(result):
                if self._purgatory.check_one(operation, replica):
                    break
            del result
        await context.wait_aside(operation.ended.wait)
        if not operation.is_answered:
            return None
        async with limiter:
            return await self._wide_response(session, await operation.read_again(), context, limits)

    def _wait_ms(
        self, request: FetchRequest, limits: FetchLimits, targets: Sequence[FetchTarget], result: FetchResult
    ) -> int:
        """Return how long is waited for more than was read, 0 where there is enough, or nothing to wait for."""
        is_enough = result.is_final or result.size_bytes >= limits.min_bytes or result.ready_bytes >= limits.min_bytes
        wait_ms = request.max_wait_ms
        if result.cold and not result.size_bytes and not result.is_final:
            is_enough, wait_ms = False, self._cold_wait_ms()
        return 0 if is_enough or not targets else max(wait_ms, 0)

    def handle_repeated(
        self, repeated: RepeatedFetch, numbers: tuple[int, ...], context: RequestContext
    ) -> Answer | None:
        """Answer a request that was recognised; None when it must be decoded, as its session is wide."""
        request = repeated.request
        limits = repeated.limits
        if limits is None:
            limits = repeated.limits = self._limits(request, context)
        else:
            limits.now_ms = self._clock.monotonic_ms()
        known = repeated.go_on(numbers)
        if known is not None:
            return self._answer(request, context, limits, known, repeated)
        if self._sessions.targets_count(request.session_id) > AT_ONCE_IN_SESSION_MAX:
            return None
        session = self._open(request, limits)
        repeated.keep(session)
        return self._answer(request, context, limits, session)

    def _limits(self, request: FetchRequest, context: RequestContext) -> FetchLimits:
        isolation = ISOLATION_LEVELS.get(request.isolation_level)
        if isolation is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {request.isolation_level}")
        state = request.replica_state
        replica_id = state.replica_id if state is not None else request.replica_id
        max_bytes = min(request.max_bytes, self._max_bytes)
        is_follower = replica_id > CONSUMER_REPLICA_ID
        return FetchLimits(
            max_bytes=max_bytes,
            min_bytes=min(request.min_bytes, max(max_bytes, 0)),
            isolation=isolation,
            replica_id=replica_id,
            is_follower=is_follower,
            version=context.api_version,
            now_ms=self._clock.monotonic_ms(),
            broker_epoch=state.replica_epoch if state is not None else NO_BROKER_EPOCH,
            selection=self._leaders.selection.of_consumer(request.rack_id, context.connection.listener_name),
            quota=self._quota if is_follower else None,
            keeps_positions=is_follower and self._leaders.selection.selector is not None,
        )

    def _is_stale(self, limits: FetchLimits) -> bool:
        """Return whether an earlier process of a follower asks; one that says no epoch may read (KIP-903)."""
        known = self._broker(limits.replica_id)
        return known is not None and NO_BROKER_EPOCH < limits.broker_epoch < known.broker_epoch

    def _is_known(self, limits: FetchLimits) -> bool:
        """Return whether who calls itself a follower is a broker, as it is registered now: anybody may say a number."""
        known = self._broker(limits.replica_id)
        return known is not None and known.broker_epoch == limits.broker_epoch

    def _open(self, request: FetchRequest, limits: FetchLimits) -> FetchContext:
        is_privileged = limits.is_follower and self._is_known(limits)
        return self._sessions.open(request, limits.version, limits.now_ms, is_privileged=is_privileged)

    def _open_in_steps(self, request: FetchRequest, limits: FetchLimits) -> Generator[None, None, FetchContext]:
        is_privileged = limits.is_follower and self._is_known(limits)
        return self._sessions.open_in_steps(request, limits.version, limits.now_ms, is_privileged=is_privileged)

    def _answer(
        self,
        request: FetchRequest,
        context: RequestContext,
        limits: FetchLimits,
        session: FetchContext,
        repeated: RepeatedFetch | None = None,
    ) -> Answer:
        targets = session.targets
        is_quiet = False
        if limits.is_follower:
            limits.is_stale = self._is_stale(limits)
            is_quiet = note_positions(self._replicas, targets, limits, session.stamp)
        is_incremental = session.is_incremental and limits.max_bytes >= 0
        if is_quiet and is_incremental:
            result = nothing_new(targets)
        else:
            result = read_targets(self._replicas, targets, limits, is_incremental=is_incremental)
        wait_ms = self._wait_ms(request, limits, targets, result)
        if not wait_ms:
            for target in result.cold:
                begin_cold_read(target, limits, _do_nothing)
            is_counted = limits.quota is not None and limits.quota.is_set
            frame = repeated.frame(result, context.correlation_id) if repeated is not None and not is_counted else None
            if frame is None:
                return self._response(session, result, context, limits)
            (target,) = targets
            self._count(target.topic, target.topic_id, result.answers, limits)
            context.reply_frame(frame)
            return PENDING
        operation = FetchOperation(
            deadline_ms=limits.now_ms + (until_beat_ms(limits.now_ms, wait_ms) if is_quiet else wait_ms),
            context=context,
            replicas=self._replicas,
            session=session,
            limits=limits,
            found=result,
            reply=lambda read: context.reply(self._response(session, read, context, limits)),
        )
        context.hold()  # what the connection repeats is read from the same targets
        self._purgatory.watch(operation, find_watched(self._replicas, targets, limits.version))
        operation.ask_for(result.cold)
        return PENDING

    def _response(
        self, session: FetchContext, result: FetchResult, context: RequestContext, limits: FetchLimits
    ) -> FetchResponse:
        quota = limits.quota
        if quota is not None and quota.is_set:
            quota.record(throttled_bytes(session.targets, result.answers))
        response = session.build(result.answers)
        if result.is_final:
            self._leaders.tell_reader(response, context, is_follower=limits.is_follower)
        for topic in response.responses:
            self._count(topic.topic, topic.topic_id, topic.partitions, limits)
        return response

    async def _wide_response(
        self, session: FetchContext, result: FetchResult, context: RequestContext, limits: FetchLimits
    ) -> FetchResponse:
        """Do as `_response`, a slice at a time."""
        response = await build_in_slices(session, result.answers, limits.quota)
        if result.is_final:
            told = self._leaders.tell_reader_in_steps(response, context, is_follower=limits.is_follower)
            await run_in_slices(told)
        await run_in_slices(self._count_in_steps(response, limits))
        return response

    def _count(self, topic: str, topic_id: UUID, answers: Iterable[PartitionData | None], limits: FetchLimits) -> None:
        replicas = self._replicas.topics.get(topic) or self._replicas.topics_by_id.get(topic_id)
        if replicas is None:
            return
        replicas.counters.fetch_requests += 1
        for answer in answers:
            if answer is not None and answer.records:
                self._count_records(replicas, answer, limits)

    def _count_in_steps(self, response: FetchResponse, limits: FetchLimits) -> Generator[None, None, None]:
        for topic in response.responses:
            replicas = self._replicas.topics.get(topic.topic) or self._replicas.topics_by_id.get(topic.topic_id)
            if replicas is not None:
                replicas.counters.fetch_requests += 1
                for answer in topic.partitions:
                    if answer.records:
                        self._count_records(replicas, answer, limits)
                    yield
            yield

    def _count_records(self, replicas: TopicReplicas, answer: PartitionData, limits: FetchLimits) -> None:
        size_bytes = records_size(answer.records)
        if not limits.is_follower:
            replicas.counters.bytes_out += size_bytes
        elif self._traffic is not None:
            replica = replicas.partitions.get(answer.partition_index)
            self._traffic.went(replica, limits.replica_id, size_bytes)

    def error_response(self, request: FetchRequest, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that gives everything this error; from version 13 on without topics, as Kafka."""
        topics = request.topics if context.api_version < FIRST_VERSION_WITH_IDS else ()
        return FetchResponse(
            error_code=code,
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[
                        PartitionData(
                            partition_index=part.partition,
                            error_code=code,
                            high_watermark=-1,
                            aborted_transactions=[],
                            records=b"",
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in topics
            ],
        )
