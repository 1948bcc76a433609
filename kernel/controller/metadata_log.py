"""Shell: the metadata log: runs the controller's operations, one after the other, and makes them durable together.

    submit(operation)    from any task: waits for its answer
        |  bounded channel
    run                  takes all that wait, runs them, appends their records, replays them into the controller
        |  one flush, on a worker thread
        +- publishes image and delta to the listeners, in order
        +- gives the answers

All of it is done in slices, as it may be about thousands of partitions: clients are served in between, and see the
image of before. The next operation begins when the one before it has ended, so none sees half of another.

An answer is given only when everything it rests on is flushed: an operation without records waits too, since it may
have seen what operations before it did. A snapshot is written when the log has grown enough or the interval is over;
also when `metadata.version` was lowered, before that is answered, and all that is older is given up: an older broker
then begins with it, and finds no record of before. What a crash left undone of that is done at the next start.

*Source:* the form of Kafka's `QuorumController`, its event queue and `SnapshotGenerator`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import trio

from ..errors import ConfigError, CorruptionError, ErrorCode, KafkaError, StorageError
from ..machine.turnstile import Slices
from ..metadata.features import supported_ranges, unreadable_feature
from ..metadata.image import MetadataImage
from ..metadata.image_listeners import ImageListeners
from ..metadata.partition_counts import MIN_INSYNC_REPLICAS, PartitionCounts
from ..metadata.records import NEWEST_WRITTEN_LEVEL, FormatRecord, decode_record, encode_record, is_newer
from ..purgatory.histogram import Histogram
from ..types import id_text
from .controller import Controller
from .snapshots import KEPT_SNAPSHOTS, SnapshotStore, check_format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..contracts.coordinator import CoordinatorResult
    from ..machine.clock import Clock
    from ..machine.files import Files
    from ..machine.threads import Workers
    from ..metadata.image_listeners import MetadataListener
    from ..metadata.records import MetadataRecord
    from ..wire.message import Message
    from .brokers import Registration
    from .local_log import ReplicatedLog
    from .rules import ControllerRules, Steps
    from .snapshots import SnapshotSettings

R = TypeVar("R")

ControllerOperation: TypeAlias = "Callable[[Controller, int], CoordinatorResult[MetadataRecord, R] | Steps[R]]"
"""An operation: takes the controller and the wall clock in milliseconds. Must be pure; it runs on the log's task."""

log = logging.getLogger(__name__)

WAITING_OPERATIONS_MAX: Final = 1000
"""How many operations may wait; more callers wait for their turn to wait."""

_CLOSED: Final = "The metadata log is closed."

GROUP_MAX: Final = 500
"""How many operations share one flush at most."""

STEPS_PER_SLICE: Final = 50
"""How many steps are made before others come: a partition's state chosen, a record replayed, a topic's configs checked.

They take ten microseconds to a hundred.
"""


class _Submission(Generic[R]):
    """An operation on its way, and its outcome."""

    __slots__ = ("done", "error", "operation", "response", "since_ms")

    def __init__(self, operation: ControllerOperation[R], since_ms: int) -> None:
        self.operation = operation
        self.since_ms = since_ms
        self.done = trio.Event()
        self.response: Any = None
        self.error: Exception | None = None


class MetadataLog:
    """The metadata log of one controller. Life: made, `load`, `run` as a task, `register`, operations; `close`.

    `load`, `run` and the listeners belong to one task at a time; `submit` may be called by any.
    Invariant: `image` holds what is flushed and nothing else; it never goes back.

    Attributes:
        partition_counts: Partitions that are not as they should be, and elections.
        queue_ms: How long operations waited for their turn.
        election_ms: How long changes took in which partitions got other leaders, until brokers may hear of them.
    """

    def __init__(
        self,
        *,
        log: ReplicatedLog,
        rules: ControllerRules,
        clock: Clock,
        files: Files,
        cluster_id: str,
        worker: Workers,
        snapshots: SnapshotSettings,
    ) -> None:
        """Make the metadata log over its partition; reads nothing yet.

        Args:
            log: The partition `__cluster_metadata-0`.
            rules: The controller's collaborators.
            clock: The wall clock stamps records, the other one measures the snapshot interval.
            files: Where snapshots are written.
            cluster_id: The cluster that the configuration wants; empty: what the log says, or a new id.
            worker: The thread that flushes and writes snapshots.
            snapshots: When to write them.
        """
        self._log = log
        self._rules = rules
        self._clock = clock
        self._cluster_id = cluster_id
        self._worker = worker
        self._settings = snapshots
        self._store = None if log.directory is None else SnapshotStore(directory=log.directory, files=files)
        self._controller = Controller(image=MetadataImage(), rules=rules)
        self._image = self._controller.image
        self.partition_counts = PartitionCounts(rules.node_id, rules.config.get_int(MIN_INSYNC_REPLICAS))
        self.queue_ms, self.election_ms = Histogram(), Histogram()
        self._listeners = ImageListeners()
        self._listeners.add(self.partition_counts.changed)
        self._send: trio.MemorySendChannel[_Submission[Any]]
        self._send, self._receive = trio.open_memory_channel[_Submission[Any]](WAITING_OPERATIONS_MAX)
        self._failure: Exception | None = None
        self._is_closed = False
        self._bytes_since_snapshot = 0
        self._snapshot_ms = clock.monotonic_ms()
        self._broker_epoch = -1
        self._is_lowering = False

    def __repr__(self) -> str:
        state = "failed" if self._failure else "closed" if self._is_closed else "open"
        return f"MetadataLog({state}, {self._image!r})"

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata. Hot: an attribute access."""
        return self._image

    @property
    def is_active(self) -> bool:
        """Whether changes are possible."""
        return self._failure is None and not self._is_closed

    @property
    def broker_epoch(self) -> int:
        """This broker's epoch, -1 before `register`."""
        return self._broker_epoch

    @property
    def end_offset(self) -> int:
        """The next offset of the log, for DescribeQuorum."""
        return self._log.end_offset

    @property
    def leader_epoch(self) -> int:
        """The epoch in which this controller leads."""
        return self._log.leader_epoch

    @property
    def replicated(self) -> ReplicatedLog:
        """The log itself, for who reads what is committed of it."""
        return self._log

    @property
    def snapshots(self) -> SnapshotStore | None:
        """Its snapshots; None without a disk."""
        return self._store

    def add_listener(self, listener: MetadataListener) -> None:
        """Tell `listener` of every image from now on; what is there already it finds in `image`."""
        self._listeners.add(listener)

    # -------------------------------------------------------------------------------------------------------- loading

    def load(self) -> MetadataImage:
        """Read the newest snapshot and what the log has after it. Blocks; once, before `run`.

        Raises:
            StorageError: It is of a newer format, or what is needed is gone.
            CorruptionError: The log is damaged.
            ConfigError: The log is another cluster's.
        """
        snapshot, problem = (None, "") if self._store is None else self._store.load_newest()
        start = 0
        if snapshot is not None:
            start = snapshot.image.offset + 1
            self._controller = Controller(image=snapshot.image, rules=self._rules)
        if self._log.start_offset > start:
            raise StorageError(
                f"{self._log.directory}: the metadata log begins at offset {self._log.start_offset}, and no snapshot "
                f"reaches that far{f' ({problem})' if problem else ''}: restore the directory from a backup"
            )
        if self._log.end_offset < start:
            raise StorageError(
                f"{self._log.directory}: the newest snapshot ends at offset {start}, the log at "
                f"{self._log.end_offset}: the log lost records; restore the directory from a backup"
            )
        self._replay_log(start)
        self._controller.take_delta()
        self._image = self._controller.image
        self._check_cluster()
        self._check_features()
        self._is_lowering = self._holds_newer_records()
        self.partition_counts.begin(self._image)
        return self._image

    def _replay_log(self, start: int) -> None:
        for offset, epoch, value in self._log.records(start):
            record = decode_record(value)
            if isinstance(record, FormatRecord):
                check_format(record, self._log.directory)
            elif offset == 0:
                raise CorruptionError(f"{self._log.directory}: the metadata log does not begin with its format")
            self._controller.replay(record)
            self._controller.note_position(offset, epoch)
            self._bytes_since_snapshot += len(value)

    def _holds_newer_records(self) -> bool:
        """Return whether records of a higher level are there: it was lowered, and a crash or the disk came between."""
        level = self._image.metadata_version
        if self._store is None or not self._image.format_version or level >= NEWEST_WRITTEN_LEVEL:
            return False
        try:
            logged = self._log.records(self._log.start_offset)
            return self._store.holds_newer(level) or any(is_newer(value, level) for _, _, value in logged)
        except CorruptionError:
            return True  # it stands before the snapshot: what is given up need not be whole

    def _check_cluster(self) -> None:
        found = self._image.cluster_id
        if self._cluster_id and found and self._cluster_id != found:
            raise ConfigError(
                f"the metadata in {self._log.directory} belongs to cluster {found}, the log directories to "
                f"{self._cluster_id}",
                hint=f"if meta.properties was lost, and written again: it must say cluster.id={found}",
            )

    def _check_features(self) -> None:
        found = unreadable_feature(self._image.features, supported_ranges(self._rules.config))
        if found is not None:
            name, level, (lowest, highest) = found
            raise StorageError(
                f"{self._log.directory}: {name} is finalized at level {level}, this version of odradek supports "
                f"{lowest} to {highest}: start the newer version that wrote it, and lower {name} with it before this "
                "one is started"
            )

    # ----------------------------------------------------------------------------------------------------- operations

    async def submit(self, operation: ControllerOperation[R]) -> R:
        """Run an operation and return its response once all it rests on is durable.

        If it is cancelled, the operation may or may not take place.

        Raises:
            KafkaError: The operation refused; or NOT_CONTROLLER: the log is closed or failed.
        """
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, _CLOSED)
        submission: _Submission[R] = _Submission(operation, self._clock.monotonic_ms())
        try:
            await self._send.send(submission)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, _CLOSED) from None
        await submission.done.wait()
        if submission.error is not None:
            raise submission.error
        response: R = submission.response
        return response

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `ControllerCalls.ask`."""
        with trio.move_on_after(math.inf if timeout_ms is None else max(timeout_ms, 0) / 1000):
            return await self.submit(lambda controller, _now_ms: controller.decide(request))
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    async def format(self) -> None:
        """Write what an empty log begins with, and what is new in this version of the one that there is.

        Raises:
            KafkaError: The log is closed.
        """
        cluster_id = self._cluster_id or id_text(self._rules.ids.new_id())
        await self.submit(lambda controller, _: controller.format_log(cluster_id))

    async def register(self, registration: Registration) -> int:
        """Write what an empty log begins with, register this broker, and return its broker epoch.

        Raises:
            KafkaError: The log is closed.
        """
        await self.format()
        self._broker_epoch = await self.submit(lambda controller, _: controller.register_broker(registration))
        return self._broker_epoch

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve operations until `close`. If it is cancelled, what is answered is durable, the rest may be.

        Raises:
            StorageError: The log cannot be written: no operation is possible any more.
        """
        try:
            if self._is_lowering:
                await self._worker.do(self._log.begin_flush())
                await self._finish_lowering()
            task_status.started()
            async for first in self._receive:
                await self._serve(self._group(first))
                await self._snapshot_if_due()
        except StorageError as error:
            self._failure = error
            log.error("the metadata log failed, no more changes are possible: %s", error)
            raise
        finally:
            self._is_closed = True
            self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        while True:
            try:
                submission = self._receive.receive_nowait()
            except (trio.WouldBlock, trio.EndOfChannel):
                break
            submission.error = KafkaError(ErrorCode.NOT_CONTROLLER, _CLOSED)
            submission.done.set()
        self._receive.close()

    async def close(self) -> None:
        """Serve what waits, then end `run`. Cancelled: it ends all the same."""
        self._is_closed = True
        await self._send.aclose()

    def _group(self, first: _Submission[Any]) -> list[_Submission[Any]]:
        group = [first]
        while len(group) < GROUP_MAX:
            try:
                group.append(self._receive.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        return group

    async def _serve(self, group: list[_Submission[Any]]) -> None:
        """Run operations, make them durable together, publish, answer; nobody gets an answer that is not durable."""
        error = KafkaError(ErrorCode.NOT_CONTROLLER, _CLOSED)
        is_durable = False
        now_ms, begin_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        elections_count = self.partition_counts.elections
        values: list[bytes] = []
        slices = Slices(STEPS_PER_SLICE)
        try:
            for submission in group:
                values += await self._execute(submission, now_ms, self._log.end_offset + len(values), slices)
            if values:
                # One batch: whatever a crash leaves of an unfinished flush, nothing sound stands behind a torn place.
                await slices.run(self._log.append_in_steps(values, now_ms))
                self._bytes_since_snapshot += sum(map(len, values))
                await self._worker.do(self._log.begin_flush())
                level = self._image.metadata_version
                await self._publish()
                if self.partition_counts.elections > elections_count:
                    self.election_ms.record(self._clock.monotonic_ms() - begin_ms)
                if self._image.metadata_version < level and self._store is not None:
                    await self._finish_lowering()
            is_durable = True
        except StorageError:
            error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The metadata log cannot be written.")
            raise
        finally:
            for submission in group:
                submission.error = submission.error if is_durable else error
                submission.done.set()

    async def _execute(self, submission: _Submission[Any], now_ms: int, offset: int, slices: Slices) -> list[bytes]:
        """Run one operation, whose first record gets this offset, and return its records. Cancelled: nobody is told."""
        self.queue_ms.record(self._clock.monotonic_ms() - submission.since_ms)
        try:
            decided = submission.operation(self._controller, now_ms)
            result = await slices.run(decided) if isinstance(decided, Generator) else decided
            level = self._controller.image.metadata_version
            values = await slices.run(_encode_in_steps(result.records, level))
        except Exception as error:  # also a record that cannot be written: nothing has changed yet
            submission.error = error
            return []
        submission.response = result.response
        await slices.run(self._replay_in_steps(result.records, offset))
        return values

    def _replay_in_steps(self, records: Sequence[MetadataRecord], offset: int) -> Generator[None, None, None]:
        for number, record in enumerate(records):
            self._controller.replay(record)
            self._controller.note_position(offset + number, self._log.leader_epoch)
            yield

    async def _publish(self) -> None:
        """Have the listeners follow. Cancelled: all the same, as what is committed is so; they wait for nobody."""
        self._image = self._controller.image
        await self._listeners.publish(self._controller.take_delta(), self._image, Slices(STEPS_PER_SLICE))

    # ------------------------------------------------------------------------------------------------------ snapshots

    async def _snapshot_if_due(self) -> None:
        elapsed_ms = self._clock.monotonic_ms() - self._snapshot_ms
        if self._store is not None and self._settings.is_due(self._bytes_since_snapshot, elapsed_ms):
            await self.write_snapshot()

    async def write_snapshot(self) -> None:
        """Write a snapshot of the current image and give up what it makes unnecessary; only from `run`'s task.

        A snapshot that cannot be written is logged and tried again later: the log itself has everything.
        """
        try:
            await self._write_snapshot(KEPT_SNAPSHOTS)
        except StorageError as error:
            log.error("the metadata snapshot could not be written: %s", error)

    async def _finish_lowering(self) -> None:
        """Write a snapshot at the level to which `metadata.version` was lowered, and give up all that is before it.

        Raises:
            StorageError: It cannot be written: who was told of the level could not rely on it.
        """
        await self._write_snapshot(1)
        self._is_lowering = False

    async def _write_snapshot(self, kept_count: int) -> None:
        assert self._store is not None, "only a log on a disk has snapshots"
        self._bytes_since_snapshot = 0
        self._snapshot_ms = self._clock.monotonic_ms()
        image, now_ms, store = self._image, self._clock.now_ms(), self._store

        def write() -> int:
            store.write(image, now_ms)
            return store.drop_old(kept_count)

        needed_from = await self._worker.run_sync(write)
        if needed_from > self._log.start_offset:
            self._log.drop_below(needed_from)


def _encode_in_steps(records: Sequence[MetadataRecord], metadata_version: int) -> Generator[None, None, list[bytes]]:
    values: list[bytes] = []
    for record in records:
        values.append(encode_record(record, metadata_version))
        yield
    return values
