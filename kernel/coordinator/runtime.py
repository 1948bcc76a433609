"""Shell: the runtime of one coordinator: its shards by partition, and what the plugin asks of the kernel."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import trio

from ..contracts.coordinator import NO_PRODUCER, ProducerIdentity
from ..contracts.coordinator_keys import coordinator_partition
from ..errors import ErrorCode, KafkaError
from ..partitions.append_check import NOT_NEEDED
from ..purgatory.timing_wheel import CallTimer
from ..records.compression import CompressionType
from .answers import CallbackWaiter, gathered_for
from .hosted_shard import MARKER_CODES, HostedShard
from .loader import Load, LoadCounters
from .open_batch import Sender
from .shard_host import ShardHost, ShardState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..contracts.coordinator import Coordinator, Decided, Waiter
    from ..contracts.services import ConfigView
    from ..contracts.transactions import TransactionMarker
    from ..machine.clock import Clock
    from ..partitions.append_check import Verification
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..partitions.staged_writes import StagedWrites
    from ..purgatory.timing_wheel import TimingWheel
    from .loader import Loader
    from .shard_queue import ShardQueue
    from .shard_timers import Computation

log = logging.getLogger(__name__)

RELOAD_PAUSE_MS_MIN: Final = 100
RELOAD_PAUSE_MS_MAX: Final = 10_000
_NO_SEQUENCE: Final = 0
"""Of what coordinators write: it is verified, but in no order."""
LEFT_OUT: Final = frozenset({ErrorCode.NOT_COORDINATOR})


class Place:
    """A replica of the coordinator's topic on this broker, and the shard in it while this broker leads."""

    def __init__(self, runtime: Runtime, replica: Replica) -> None:
        """Take a place in which nothing is coordinated yet."""
        self.replica = replica
        self.hosted: HostedShard | None = None
        self._runtime = runtime
        self._failures_count = 0
        self._reload = CallTimer(0, self.check)

    def check(self) -> None:
        """Take note that leadership, high watermark or health of the replica may have changed."""
        replica, hosted = self.replica, self.hosted
        if not replica.is_leader or replica.offline_reason is not None:
            self.leave()
        elif hosted is None:
            if self._reload.slot is None:
                self._lead()
        else:
            hosted.epoch = replica.leader_epoch
            hosted.progressed()

    def leave(self) -> None:
        """Stop coordinating here."""
        self._reload.cancel_timer()
        hosted, self.hosted = self.hosted, None
        if hosted is not None:
            hosted.close()

    def _lead(self) -> None:
        try:
            hosted = self.hosted = HostedShard(self._runtime.host, self.replica)
        except Exception:
            log.exception("the coordinator of %s cannot be made", self.replica.partition)
            self.note_failed()
            return
        if self.replica.log.log_start_offset == self.replica.log.log_end_offset:
            self._note_read(hosted)
        else:
            self._runtime.load_soon(hosted, self._note_read)

    def _note_read(self, hosted: HostedShard) -> None:
        hosted.note_read(self.replica.log.log_end_offset)

    def note_failed(self) -> None:
        """Take note that the shard is closed, or cannot be loaded: try again after a pause, longer each time."""
        hosted, self.hosted = self.hosted, None
        if hosted is not None:
            hosted.close()
            self._failures_count *= not hosted.has_served
        pause_ms = min(RELOAD_PAUSE_MS_MIN << self._failures_count, RELOAD_PAUSE_MS_MAX)
        self._failures_count = min(self._failures_count + 1, 10)
        self._reload.cancel_timer()
        self._reload.deadline_ms = self._runtime.clock.monotonic_ms() + pause_ms
        self._runtime.wheel.add(self._reload)


class _Caller:
    """A waiter that is a task."""

    __slots__ = ("_error", "_is_told", "_response")

    def __init__(self) -> None:
        self._is_told = trio.Event()
        self._response: Any = None
        self._error: KafkaError | None = None

    def answer(self, response: Any) -> None:
        """Take the response."""
        self._response = response
        self._is_told.set()

    def fail(self, error: KafkaError) -> None:
        """Take the error."""
        self._error = error
        self._is_told.set()

    async def wait(self) -> Any:
        """Wait for the response. If cancelled, it is dropped.

        Raises:
            KafkaError: What it was failed with.
        """
        await self._is_told.wait()
        if self._error is not None:
            raise self._error
        return self._response


class Runtime:
    """A `CoordinatorRuntime`. Owned by the reactor's task."""

    def __init__(
        self,
        coordinator: Coordinator[Any, Any],
        *,
        replicas: Replicas,
        writes: StagedWrites,
        loader: Loader,
        clock: Clock,
        wheel: TimingWheel,
        config: Callable[[], ConfigView],
        topic_partitions: Callable[[str], int | None],
        compute: Callable[[Computation], None],
        note_busy: Callable[[ShardQueue], None],
        note_dirty: Callable[[HostedShard], None],
    ) -> None:
        """Make a runtime that coordinates nothing yet.

        Args:
            coordinator: The plugin's.
            replicas: The broker's.
            writes: Where batches are staged.
            loader: Loads shards.
            clock: Both clocks.
            wheel: The broker's, advanced by the monotonic clock.
            config: Returns the newest configuration.
            topic_partitions: Returns how many partitions a topic has, None when it is not there.
            compute: Has something computed on a thread for a shard.
            note_busy: Called with the queue of a shard in which something long is under way.
            note_dirty: Called with a shard whose `write_batch` is to be called when the turn ends.
        """
        self.coordinator = coordinator
        self.clock = clock
        self.wheel = wheel
        self.counters = LoadCounters()
        self.places: dict[int, Place] = {}
        self._loader = loader
        self._config = config
        self._topic_partitions = topic_partitions
        self.host = ShardHost(
            coordinator=coordinator,
            replicas=replicas,
            writes=writes,
            clock=clock,
            wheel=wheel,
            write_timeout_ms=lambda: config().get_int(coordinator.write_timeout_key),
            compression=self._compression,
            compute=compute,
            note_busy=note_busy,
            note_dirty=note_dirty,
            note_failed=self._note_failed,
        )

    def __repr__(self) -> str:
        return f"<Runtime {self.coordinator.name}: {sum(1 for _ in self._active())} of {len(self.places)} active>"

    def _compression(self) -> CompressionType:
        key = self.coordinator.topic_settings.compression_key
        return CompressionType(self._config().get_int(key)) if key else CompressionType.NONE

    # ------------------------------------------------------------------------------------------------------ leadership

    def place_of(self, replica: Replica) -> Place:
        """Return the place of a replica, a new one if it has none, or another replica had it."""
        place = self.places.get(replica.partition.partition)
        if place is None or place.replica is not replica:
            if place is not None:
                place.leave()
            place = self.places[replica.partition.partition] = Place(self, replica)
        return place

    def load_soon(self, hosted: HostedShard, done: Callable[[HostedShard], None]) -> None:
        """Have a shard loaded in the background."""

        def note_loaded(loaded: HostedShard) -> None:
            self.counters.note_loaded(self.clock.monotonic_ms() - loaded.started_ms)
            done(loaded)

        def buffer_bytes() -> int:
            return self._config().get_int(self.coordinator.load_buffer_key)

        self._loader.load_soon(
            Load(hosted, self.coordinator, self.counters, buffer_bytes, note_loaded, self._note_failed)
        )

    def _note_failed(self, hosted: HostedShard) -> None:
        place = self.places.get(hosted.partition)
        if place is not None and place.hosted is hosted:
            self.counters.failed_count += 1
            place.note_failed()

    def _hosted(self, partition: int) -> HostedShard | None:
        place = self.places.get(partition)
        return place.hosted if place is not None else None

    def _active(self) -> Iterator[HostedShard]:
        for place in self.places.values():
            if place.hosted is not None and place.hosted.is_active:
                yield place.hosted

    # ------------------------------------------------------------------------------------------- what plugins ask

    @property
    def partitions_count(self) -> int:
        """How many partitions the topic has, or will have when it is created."""
        count = self._topic_partitions(self.coordinator.topic)
        return count or self._config().get_int(self.coordinator.topic_settings.partitions_key)

    def partition_for(self, key: str) -> int:
        """Return the partition that coordinates a key."""
        return coordinator_partition(key, self.partitions_count)

    def submit(
        self,
        partition: int,
        operation: Callable[[Any, int], Decided],
        waiter: Waiter,
        *,
        producer: ProducerIdentity = NO_PRODUCER,
        verified: Verification | None = NOT_NEEDED,
    ) -> None:
        """Run an operation; see `CoordinatorRuntime.submit`."""
        hosted = self._hosted(partition)
        if hosted is None:
            waiter.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
        else:
            hosted.submit(operation, waiter, Sender(producer, verified))

    def begin_verification(self, partition: int, producer: ProducerIdentity, *, may_add: bool) -> Verification | None:
        """Note that the coordinator of a transaction is about to be asked; see the contract. None where it is open."""
        hosted = self._hosted(partition)
        if hosted is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return hosted.replica.producers.begin_verification(
            producer.producer_id,
            producer.producer_epoch,
            _NO_SEQUENCE,
            supports_epoch_bump=may_add,
            now_ms=self.clock.monotonic_ms(),
        )

    def submit_all(self, operation: Callable[[Any, int], Decided], waiter: Waiter) -> None:
        """Run an operation on every active shard; see `CoordinatorRuntime.submit_all`."""
        active = list(self._active())
        gathered = gathered_for(waiter, [hosted.partition for hosted in active], LEFT_OUT)
        for hosted in active:

            def tell(response: Any, error: KafkaError | None, partition: int = hosted.partition) -> None:
                gathered.note(partition, (response, error))

            hosted.submit(operation, CallbackWaiter(tell))

    def is_loading(self) -> bool:
        """Return whether some shard of this broker is still loading."""
        return any(
            place.hosted is not None and place.hosted.state is ShardState.LOADING for place in self.places.values()
        )

    async def call(
        self,
        partition: int,
        operation: Callable[[Any, int], Decided],
        *,
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> Any:
        """Run an operation and wait for its response. If cancelled, the operation stands and its response is dropped.

        Raises:
            KafkaError: What a waiter would have been failed with.
        """
        caller = _Caller()
        self.submit(partition, operation, caller, producer=producer)
        return await caller.wait()

    async def call_all(self, operation: Callable[[Any, int], Decided]) -> list[Any]:
        """Run an operation on every active shard and wait. If cancelled, what it did stands.

        Raises:
            KafkaError: What a waiter would have been failed with.
        """
        caller = _Caller()
        self.submit_all(operation, caller)
        responses: list[Any] = await caller.wait()
        return responses

    def shards(self) -> Iterator[tuple[int, Any]]:
        """Iterate over the active shards with their partitions."""
        for hosted in self._active():
            yield hosted.partition, hosted.shard

    def coordinator_epoch(self, partition: int) -> int:
        """Return the leader epoch in which this broker coordinates a partition, -1 when it does not."""
        hosted = self._hosted(partition)
        return hosted.epoch if hosted is not None and hosted.is_active else -1

    # --------------------------------------------------------------------------------------------------------- markers

    def write_marker(self, partition: int, marker: TransactionMarker, done: Callable[[ErrorCode], None]) -> None:
        """Write, commit and replay the end of a transaction; see `MarkerOwner`."""
        hosted = self._hosted(partition)
        if hosted is None:
            done(MARKER_CODES[ErrorCode.NOT_COORDINATOR])
        else:
            hosted.write_marker(marker, done)

    def states(self) -> dict[str, int]:
        """Return how many partitions are in which state, for metrics."""
        states = [place.hosted.state.value if place.hosted else "failed" for place in self.led_places()]
        return {state: states.count(state) for state in ("loading", "active", "failed")}

    def led_places(self) -> Iterator[Place]:
        """Iterate over the partitions that this broker leads."""
        return (place for place in self.places.values() if place.replica.is_leader)
