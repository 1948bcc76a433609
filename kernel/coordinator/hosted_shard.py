"""Shell: one shard and the partition it lives in, from the moment this broker leads until it does not.

    LOADING   the log is read, records are replayed (`loader.py` drives this); nobody is served
    ACTIVE    operations run; their records are gathered, appended at the turn's end, answered once committed
    CLOSED    nothing any more; whoever waited was told NOT_COORDINATOR. A new object takes over, if any

Owned by the reactor's task. What an operation decides takes effect in this order: records are checked (size, in-sync
replicas), replayed with the offsets that they will get, gathered; at the turn's end `write_batch` appends them. Nobody
else appends to the partition, so the offsets hold.

What is long (a generator) does the same in slices: decided, encoded and replayed a step at a time, appended at its end.
Until then whatever else is asked of the shard, timers and markers among it, waits in `ShardQueue`; whoever asked for it
is parked. A shard that is closed in between has appended nothing of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..contracts.coordinator import NO_PRODUCER, CoordinatorResult, CoordinatorShard, ProducerIdentity
from ..errors import ErrorCode, KafkaError
from ..machine.turnstile import run_at_once
from ..partitions.append_check import NOT_NEEDED
from ..partitions.leading import ACKS_ALL, AppendOrigin, append_as_leader
from ..partitions.marker_writer import marker_batch
from ..plugin_system.offers import check_made
from ..purgatory.timing_wheel import CallTimer
from ..records.batch import HEADER_SIZE, read_header
from ..types import NO_PRODUCER_ID
from .answers import AnswerQueue, CallbackWaiter, Settlement
from .open_batch import NOBODY, OpenBatch, record_size_max, transactional_batch
from .refusals import Refusals
from .sent_away import ANSWERS_AT_ONCE, SentAway
from .shard_host import ShardState
from .shard_queue import ShardQueue
from .shard_timers import RETRY_PAUSE_MS, ShardTimers
from .waiting_room import WaitingRoom

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ..contracts.coordinator import CoordinatorSteps, Decided, TimerKey, Waiter
    from ..contracts.transactions import TransactionMarker
    from ..partitions.append_check import Verification
    from ..partitions.replica import Replica
    from ..records.batch import BatchHeader
    from .open_batch import Encoded, Sender
    from .shard_host import ShardHost
    from .shard_timers import TimerOperation

log = logging.getLogger(__name__)

LOST: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR})
"""Errors of an append after which this broker no longer coordinates."""
MARKER_CODES: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.REQUEST_TIMED_OUT,
}
"""What a writer of markers is told instead of a coordinator's errors: codes that a partition leader answers."""


class HostedShard:
    """One shard in its partition; see the module."""

    def __init__(self, host: ShardHost, replica: Replica) -> None:
        """Make an empty shard, to be loaded."""
        self.partition = replica.partition.partition
        self.replica = replica
        self.epoch = replica.leader_epoch
        self.state = ShardState.LOADING
        self.is_read = False
        self.has_served = False
        self.started_ms = host.clock.monotonic_ms()
        self._host = host
        self._queue = ShardQueue(host.note_busy)
        self.timers = ShardTimers(host.wheel, host.clock.monotonic_ms, self._run_timer, host.compute, self._queue)
        self.shard: Any = host.coordinator.new_shard(self.partition, self.timers)
        check_made(self.shard, CoordinatorShard, f"a shard of {host.coordinator.topic}", host.coordinator)
        self._written_end = 0
        self._batch = OpenBatch()
        self._is_gathering = False
        self._batch_answers: list[Settlement] = []
        self._answers = AnswerQueue()
        self._commit_timer = CallTimer(0, self._commit_deadline_passed)
        self._tell_timer = CallTimer(0, self._tell_committed)
        self._room = WaitingRoom()
        self._refusals = Refusals()
        self.sent_away = SentAway(host.wheel, host.clock.monotonic_ms, self._settle)

    def __repr__(self) -> str:
        return (
            f"<HostedShard {self.replica.partition}, {self.state.value} in epoch {self.epoch}: {len(self._answers)} "
            f"wait for a commit, {len(self._room)} are parked, {len(self.timers)} timers>"
        )

    @property
    def is_active(self) -> bool:
        """Whether operations may run."""
        return self.state is ShardState.ACTIVE

    @property
    def waiting_count(self) -> int:
        """Answers that wait for their records to be committed."""
        return len(self._answers) + len(self._batch_answers)

    @property
    def parked_count(self) -> int:
        """Requests that are answered by a later operation."""
        return len(self._room)

    # ------------------------------------------------------------------------------------------------------------ life

    def note_read(self, end_offset: int) -> None:
        """Take note that the whole log is replayed; serves once all of that is committed."""
        self._written_end = end_offset
        self.is_read = True
        self.progressed()

    def progressed(self) -> None:
        """Take note that the high watermark may have moved."""
        is_loading = self.state is ShardState.LOADING and self.is_read and not self._queue.is_busy
        if is_loading and self.replica.high_watermark >= self._written_end:
            self._queue.begin(self._begin_in_steps())
        self._tell_committed()

    def _begin_in_steps(self) -> Generator[None, None, None]:
        try:
            steps = self.shard.loaded(self._host.clock.now_ms())
            if steps is not None:
                yield from steps
        except Exception:
            log.exception("coordinator of %s cannot begin", self.replica.partition)
            self._fail()
        else:
            self.state = ShardState.ACTIVE
            self.has_served = True

    def close(self) -> None:
        """Stop coordinating: whoever waits is told NOT_COORDINATOR."""
        if self.state is ShardState.CLOSED:
            return
        self.state = ShardState.CLOSED
        self.timers.close()
        self._commit_timer.cancel_timer()
        self._tell_timer.cancel_timer()
        waiting = [*self._answers.pop_all(), *self._batch_answers]
        waiting += [Settlement(waiter, None) for waiter in self._room.close()]
        self._batch.clear()
        self._batch_answers = []
        try:
            self.shard.unloaded()
        except Exception:
            log.exception("coordinator of %s failed when it was unloaded", self.replica.partition)
        error = KafkaError(ErrorCode.NOT_COORDINATOR)
        self.sent_away.tell([settlement._replace(error=error) for settlement in waiting])
        self._queue.close()

    def release_parked(self) -> None:
        """Tell NOT_COORDINATOR to whoever is parked; what the shard answers them later is dropped."""
        error = KafkaError(ErrorCode.NOT_COORDINATOR)
        self.sent_away.tell([Settlement(waiter, None, error) for waiter in self._room.send_away()])

    def _fail(self) -> None:
        self.close()
        self._host.note_failed(self)

    # ------------------------------------------------------------------------------------------------------ operations

    def refusal(self) -> KafkaError | None:
        """Return why no operation can run now, None when one can."""
        if self.state is ShardState.ACTIVE:
            return None
        is_loading = self.state is ShardState.LOADING
        return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR)

    def submit(self, operation: Callable[[Any, int], Decided], waiter: Waiter, sender: Sender = NOBODY) -> None:
        """Run an operation, once what is long before it has ended; see `CoordinatorRuntime.submit`."""
        if self._queue.is_busy:
            self._queue.put(partial(self._run, operation, waiter, sender))
        else:
            self._run(operation, waiter, sender)

    def _run(self, operation: Callable[[Any, int], Decided], waiter: Waiter, sender: Sender) -> None:
        if self.state is not ShardState.ACTIVE:
            self.sent_away.tell([Settlement(waiter, None, self.refusal())])
            return
        now_ms = self._host.clock.now_ms()
        try:
            decided = operation(self.shard, now_ms)
        except Exception as error:
            self._give([Settlement(waiter, None, self._refused_with(error))])
            return
        if isinstance(decided, CoordinatorResult):
            self._take(decided, waiter, sender, now_ms)
        else:
            self._room.park(waiter)
            self._queue.begin(self._run_in_steps(decided, waiter, sender, now_ms))

    def _refused_with(self, error: Exception) -> KafkaError:
        """Return what a waiter is told of an operation that raised."""
        if isinstance(error, KafkaError):
            return error
        log.error("an operation of the coordinator of %s failed", self.replica.partition, exc_info=error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _run_in_steps(
        self, decided: CoordinatorSteps, waiter: Waiter, sender: Sender, now_ms: int
    ) -> Generator[None, None, None]:
        try:
            result = yield from decided
            yield from self._take_in_steps(result, waiter, sender, now_ms)
        except Exception as error:
            if self._room.take(waiter):
                self._give([Settlement(waiter, None, self._refused_with(error))])

    def _run_timer(self, key: TimerKey, operation: TimerOperation) -> None:
        """Run a timer's operation; it is tried again when it fails, or is too early."""
        if self.state is not ShardState.ACTIVE:
            self.timers.try_again(key, operation)
            return
        now_ms = self._host.clock.now_ms()
        error: Exception | None
        try:
            decided = operation(now_ms)
            if not isinstance(decided, CoordinatorResult):
                self._queue.begin(self._run_timer_in_steps(key, operation, decided, now_ms))
                return
            error = self._take(decided, None, NOBODY, now_ms)
        except Exception as exc:
            error = exc
        self._timer_ended(key, operation, error)

    def _run_timer_in_steps(
        self, key: TimerKey, operation: TimerOperation, decided: CoordinatorSteps, now_ms: int
    ) -> Generator[None, None, None]:
        error: Exception | None
        try:
            result = yield from decided
            error = yield from self._take_in_steps(result, None, NOBODY, now_ms)
        except Exception as exc:
            error = exc
        self._timer_ended(key, operation, error)

    def _timer_ended(self, key: TimerKey, operation: TimerOperation, error: Exception | None) -> None:
        if error is None:
            return
        now_ms, pause_ms = self._host.clock.monotonic_ms(), RETRY_PAUSE_MS
        is_told = True
        if isinstance(error, KafkaError):
            is_told = self._refusals.note(error, now_ms)
            pause_ms = self._refusals.pause_ms(now_ms, pause_ms)
        if is_told:
            trace = None if isinstance(error, KafkaError) else error
            log.error("timer %r of the coordinator of %s: %s", key, self.replica.partition, error, exc_info=trace)
        self.timers.try_again(key, operation, pause_ms)

    def _take(
        self, result: CoordinatorResult[Any, Any], waiter: Waiter | None, sender: Sender, now_ms: int
    ) -> KafkaError | None:
        """Let a result take effect; return why its records were refused, None when they were not."""
        # Out of the lists first: whatever fails below tells everybody in them that there is no coordinator.
        answers = self._room.taken(result.answers) if result.answers else ()
        error = run_at_once(self._write(result, sender, now_ms)) if result.records else None
        may_park = error is None and self.is_active
        self._give(self._room.concluded(result.response, waiter, answers, error, may_park=may_park))
        return error

    def _take_in_steps(
        self, result: CoordinatorResult[Any, Any], waiter: Waiter | None, sender: Sender, now_ms: int
    ) -> Generator[None, None, KafkaError | None]:
        """Do the same in steps. Its waiter is parked until its end, so that whatever fails tells it, too."""
        self.write_batch()  # what was decided before is not held up
        error = (yield from self._write(result, sender, now_ms)) if result.records else None
        is_among = any(waiter is each for each, _ in result.answers)
        if waiter is not None and not is_among and self.is_active and not self._room.is_gone(waiter):
            self._room.take(waiter)
            self._give(self._room.concluded(result.response, waiter, (), error, may_park=error is None))
        for each, told in result.answers:
            if not self.is_active:
                return error  # who is not told yet is parked still, and was sent away
            if self._room.take(each):
                self._give([Settlement(each, told, error)])
            yield
        return error

    # --------------------------------------------------------------------------------------------------------- records

    def _write(
        self, result: CoordinatorResult[Any, Any], sender: Sender, now_ms: int
    ) -> Generator[None, None, KafkaError | None]:
        """Replay and gather, or append, the records of a result, a step each; return why that cannot be."""
        replica, encoded, sizes = self.replica, [], []
        try:
            for record in result.records:
                each = self._host.coordinator.encode(record)
                encoded.append(each)
                sizes.append(record_size_max(each))
                yield
        except Exception:
            log.exception("the coordinator of %s made a record that cannot be encoded", replica.partition)
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if not replica.election.can_acknowledge():
            return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "too few replicas are in sync")
        is_whole = result.is_atomic or sender.producer.producer_id != NO_PRODUCER_ID
        limit, size_bytes = self._batch_bytes_max, sum(sizes) if is_whole else max(sizes)
        if HEADER_SIZE + size_bytes > limit:
            # Kafka's code for it, too: no client asked for a record of this size.
            log.error("records for %s do not fit a batch of %d bytes and are refused", replica.partition, limit)
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            if sender.producer.producer_id != NO_PRODUCER_ID:
                return self._append_transactional(result.records, encoded, sender, now_ms)
            if is_whole and not self._batch.has_room(size_bytes, limit):
                self.write_batch()
            return (yield from self._gather(result.records, encoded, sizes, now_ms, limit))
        except Exception:
            log.exception("replaying into the coordinator of %s failed; it is loaded again", replica.partition)
            self._fail()
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    @property
    def _batch_bytes_max(self) -> int:
        topic = self._host.replicas.topics.get(self.replica.partition.topic)
        if topic is None:  # just deleted: the append will say so
            return self.replica.settings.rules.max_message_bytes
        return min(self.replica.settings.rules.max_message_bytes, topic.plan.log_config.segment_bytes)

    def _gather(
        self,
        records: Sequence[Any],
        encoded: Sequence[Encoded],
        sizes: Sequence[int],
        now_ms: int,
        batch_bytes_max: int,
    ) -> Generator[None, None, KafkaError | None]:
        """Replay records and add them to the open batch, appending it whenever it is full, and not before the end."""
        batch, host = self._batch, self._host
        compression, base_sequence = host.compression(), host.coordinator.topic_settings.base_sequence
        for record, each, size_bytes in zip(records, encoded, sizes, strict=True):
            if not batch.has_room(size_bytes, batch_bytes_max):
                self._is_gathering = False
                self.write_batch()
            if self.state is not ShardState.ACTIVE:
                return KafkaError(ErrorCode.NOT_COORDINATOR)
            self._is_gathering = True
            offset = self.replica.log.log_end_offset + batch.records_count
            batch.append(each, size_bytes, now_ms, compression, base_sequence)
            self.shard.replay(record, offset, NO_PRODUCER)
            yield
        self._is_gathering = False
        host.note_dirty(self)
        return None

    def write_batch(self) -> None:
        """Append what was gathered; called when a turn ends, and before anything else is appended."""
        if not self.is_active or not self._batch.records_count or self._is_gathering:
            return  # what is being gathered in slices is appended as a whole
        try:
            header = self._append(memoryview(self._batch.build()))
        except KafkaError as error:
            log.error("the coordinator of %s cannot write and is loaded again: %s", self.replica.partition, error)
            self._fail()
            return
        answers, self._batch_answers = self._batch_answers, []
        self._wait_for(header.next_offset, answers)

    def _append_transactional(
        self, records: Sequence[Any], encoded: Sequence[Encoded], sender: Sender, now_ms: int
    ) -> KafkaError | None:
        """Append records of a producer's transaction and replay them; they have a batch of their own."""
        self.write_batch()
        if not self.is_active:
            return KafkaError(ErrorCode.NOT_COORDINATOR)
        try:
            base_sequence = self._host.coordinator.topic_settings.base_sequence
            batch = transactional_batch(encoded, sender.producer, now_ms, self._host.compression(), base_sequence)
            header = self._append(memoryview(batch), sender.verified)
        except KafkaError as error:
            if error.code not in LOST:
                return error
            self._fail()
            return KafkaError(ErrorCode.NOT_COORDINATOR)
        self._written_end = header.next_offset
        for number, record in enumerate(records):
            self.shard.replay(record, header.base_offset + number, sender.producer)
        return None

    def write_marker(self, marker: TransactionMarker, done: Callable[[ErrorCode], None]) -> None:
        """Append the end of a transaction and replay it; `done` is called once it is committed, or cannot be."""
        if self._queue.is_busy:
            self._queue.put(partial(self._write_marker, marker, done))
        else:
            self._write_marker(marker, done)

    def _write_marker(self, marker: TransactionMarker, done: Callable[[ErrorCode], None]) -> None:
        def tell(_response: object, error: KafkaError | None) -> None:
            done(ErrorCode.NONE if error is None else MARKER_CODES.get(error.code, error.code))

        self.write_batch()
        refusal = self.refusal()
        if refusal is not None:
            tell(None, refusal)
            return
        try:
            self.replica.producers.check_marker(
                marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_version
            )
            header = self._append(marker_batch(marker, self._host.clock.now_ms()))
        except KafkaError as error:
            tell(None, error)
            if error.code in LOST:
                self._fail()
            return
        self._wait_for(header.next_offset, [Settlement(CallbackWaiter(tell), None)])
        try:
            identity = ProducerIdentity(marker.producer_id, marker.producer_epoch)
            self.shard.replay_marker(identity, is_commit=marker.is_commit)
        except Exception:
            log.exception("replaying a marker into the coordinator of %s failed", self.replica.partition)
            self._fail()

    def _append(self, batch: memoryview, verified: Verification | None = NOT_NEEDED) -> BatchHeader:
        """Stage a batch; return its header, which has its offsets.

        Raises:
            KafkaError: The partition cannot take it.
        """
        header = read_header(batch)
        append_as_leader(self.replica, batch, header, ACKS_ALL, origin=AppendOrigin.COORDINATOR, verified=verified)
        self._host.writes.stage(self.replica)
        self._refusals.has_written()
        counters = self._host.replicas.topics[self.replica.partition.topic].counters
        counters.messages_in += header.records_count
        counters.bytes_in += header.length_bytes
        return header

    # --------------------------------------------------------------------------------------------------------- answers

    def _give(self, settlements: list[Settlement]) -> None:
        """Tell waiters once everything that this shard has written so far is committed."""
        if not settlements:
            return
        if self.state is ShardState.CLOSED:
            error = KafkaError(ErrorCode.NOT_COORDINATOR)
            self.sent_away.tell([each._replace(error=each.error or error) for each in settlements])
        elif self._batch.records_count:
            self._batch_answers += settlements
        elif self._answers or self.replica.high_watermark < self._written_end or len(settlements) > ANSWERS_AT_ONCE:
            self._wait_for(self._written_end, settlements)
            self._tell_committed()
        else:
            for settlement in settlements:
                self._settle(settlement)

    def _tell_committed(self) -> None:
        """Tell those whose records are committed, at most so many in one go; the others soon."""
        if self._tell_timer.slot is not None:
            return  # whoever comes meanwhile does not have them told faster
        for settlement in self._answers.pop_committed(self.replica.high_watermark, ANSWERS_AT_ONCE):
            self._settle(settlement)
        if self._answers.has_committed(self.replica.high_watermark) and self._tell_timer.slot is None:
            self._tell_timer.deadline_ms = self._host.clock.monotonic_ms()
            self._host.wheel.add(self._tell_timer)

    def _wait_for(self, offset: int, settlements: list[Settlement]) -> None:
        self._written_end = offset
        deadline_ms = self._host.clock.monotonic_ms() + self._host.write_timeout_ms()
        self._answers.put(offset, deadline_ms, settlements)
        self._arm_commit_timer()

    def _arm_commit_timer(self) -> None:
        """Have the first deadline watched. Entries are mostly gone long before: the timer is left to find that out."""
        deadline_ms = self._answers.next_deadline_ms
        if deadline_ms is not None and self._commit_timer.slot is None:
            self._commit_timer.deadline_ms = deadline_ms
            self._host.wheel.add(self._commit_timer)

    def _commit_deadline_passed(self) -> None:
        """Fail those whose records are not committed in time; what was written stands, and may be committed yet."""
        error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the write was not committed in time")
        if self._answers.has_committed(self.replica.high_watermark):
            self._tell_committed()  # what is committed is told so, however late
        else:
            for settlement in self._answers.pop_expired(self._host.clock.monotonic_ms(), ANSWERS_AT_ONCE):
                self._settle(settlement._replace(error=settlement.error or error))
        if self.state is not ShardState.CLOSED:
            self._arm_commit_timer()

    def _settle(self, settlement: Settlement) -> None:
        """Tell a waiter; one that fails is its own trouble."""
        try:
            settlement.settle()
        except Exception:
            log.exception("a request of the coordinator of %s cannot be answered", self.replica.partition)
