"""Shell: the metadata log: runs the controller's operations, one after the other, and makes them durable together.

    submit(operation)    from any task: waits for its answer
        |  bounded channel
    run                  takes all that wait, runs them, appends their records, replays them into the controller
        |  one flush, on a worker thread
        +- publishes image and delta to the listeners, in order
        +- gives the answers

All of it is done in slices, as it may be about thousands of partitions: clients are served in between, and see the
image of before. The next operation begins when the one before it has ended, so none sees half of another.

An answer is given only when everything it rests on is committed: an operation without records waits too, since it may
have seen what operations before it did. Where `metadata.version` was lowered, that is when a snapshot stands for all
that is older (`snapshot_upkeep.py`).

A broker alone reads what it leads (`load`) and leads it for life. Among several controllers it is one term's: it begins
at the image of what is committed, which is published to who keeps that image (`CommittedImages`), snapshots too, and
ends when the lead is lost. Whoever waits then is told NOT_CONTROLLER; what had been appended is committed by who leads
next, or is gone, and nothing half of it. The next term begins at what is committed then.

*Source:* the form of Kafka's `QuorumController` and its event queue.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

import trio

from ..errors import ErrorCode, KafkaError, StorageError
from ..machine.turnstile import Slices
from ..metadata.image import MetadataImage
from ..metadata.image_listeners import ImageListeners
from ..metadata.partition_counts import MIN_INSYNC_REPLICAS, PartitionCounts
from ..metadata.records import decode_record, encode_record
from ..purgatory.histogram import Histogram
from ..types import id_text
from .controller import Controller
from .image_checks import check_cluster, check_features, check_next
from .snapshot_upkeep import SnapshotUpkeep
from .snapshots import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..contracts.coordinator import CoordinatorResult
    from ..machine.clock import Clock
    from ..machine.files import Files
    from ..machine.threads import Workers
    from ..metadata.image import MetadataDelta
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


class TermImages(Protocol):
    """Who has the image of what is committed, in every term of a quorum and between them."""

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata."""
        ...

    async def adopt(self, delta: MetadataDelta, image: MetadataImage, size_bytes: int) -> None:
        """Take what a term has committed, and have everybody follow; durable where an answer rests on more than that.

        Cancelled: it is taken all the same.

        Args:
            delta: What is new.
            image: The image that has it.
            size_bytes: Of its records.

        Raises:
            StorageError: The disk is full or failing.
        """
        ...


class MetadataLog:
    """The metadata log of one controller. Life: made, `load`, `run` as a task, `register`, operations; `close`.

    In a quorum it is made of the committed `images`, and not loaded; `end` when the lead is lost.

    `load`, `run` and the listeners belong to one task at a time; `submit` may be called by any.
    Invariant: `image` holds what is committed and nothing else; it never goes back.

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
        images: TermImages | None = None,
        partition_counts: PartitionCounts | None = None,
    ) -> None:
        """Make the metadata log over its partition; reads nothing yet.

        Args:
            log: The partition `__cluster_metadata-0`.
            rules: The controller's collaborators.
            clock: The wall clock stamps records, the other one measures the snapshot interval.
            files: Where snapshots are written.
            cluster_id: The cluster that the configuration wants; empty: what the log says, or a new id.
            worker: The thread that writes snapshots.
            snapshots: When to write them.
            images: Of what is committed, with snapshots of its own, where this is a term of a quorum.
            partition_counts: Of these images; who keeps them counts, too.
        """
        self._log = log
        self._rules = rules
        self._clock = clock
        self._cluster_id = cluster_id
        self._images = images
        directory = log.directory if images is None else None
        store = None if directory is None else SnapshotStore(directory=directory, files=files)
        self._upkeep = SnapshotUpkeep(store, log, snapshots, worker=worker, clock=clock)
        self._controller = Controller(image=MetadataImage() if images is None else images.image, rules=rules)
        self._image = self._controller.image
        self.queue_ms, self.election_ms = Histogram(), Histogram()
        self._listeners = ImageListeners()
        if partition_counts is None:
            partition_counts = PartitionCounts(rules.node_id, rules.config.get_int(MIN_INSYNC_REPLICAS))
            self._listeners.add(partition_counts.changed)
        self.partition_counts = partition_counts
        self._send: trio.MemorySendChannel[_Submission[Any]]
        self._send, self._receive = trio.open_memory_channel[_Submission[Any]](WAITING_OPERATIONS_MAX)
        self._failure: Exception | None = None
        self._is_closed = False
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
        """Its snapshots; None without a disk, and where others keep them."""
        return self._upkeep.store

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
        assert self._images is None, "a term begins at what is committed"
        store = self._upkeep.store
        snapshot, problem = (None, "") if store is None else store.load_newest()
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
        check_cluster(self._image, self._cluster_id, self._log.directory)
        check_features(self._image, self._rules.config, self._log.directory)
        logged = self._log.records(self._log.start_offset)
        self._is_lowering = self._upkeep.holds_newer(self._image, (record.value for record in logged))
        self.partition_counts.begin(self._image)
        return self._image

    def _replay_log(self, start: int) -> None:
        is_first = not self._controller.image.format_version
        for offset, epoch, value in self._log.records(start):
            record = decode_record(value)
            check_next(record, self._log.directory, is_first=is_first)
            is_first = False
            self._controller.replay(record)
            self._controller.note_position(offset, epoch)
            self._upkeep.note(len(value))

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

    async def format(self, features: Mapping[str, int] | None = None) -> None:
        """Write what an empty log begins with, and what is new in this version of the one that there is.

        Args:
            features: What is finalized at other levels than those of a new log, by name.

        Raises:
            KafkaError: The log is closed.
        """
        cluster_id = self._cluster_id or id_text(self._rules.ids.new_id())
        await self.submit(lambda controller, _: controller.format_log(cluster_id, features or {}))

    async def register(self, registration: Registration) -> int:
        """Write what an empty log begins with, register this broker, and return its broker epoch.

        Raises:
            KafkaError: The log is closed.
        """
        await self.format()
        self._broker_epoch = await self.submit(lambda controller, _: controller.register_broker(registration))
        return self._broker_epoch

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve operations until `close`, or the lead is lost. If it is cancelled, what is answered is committed.

        Raises:
            StorageError: The log cannot be written: no operation is possible any more.
        """
        try:
            if self._is_lowering:
                await self._log.commit()
                await self._finish_lowering()
            task_status.started()
            async for first in self._receive:
                await self._serve(self._group(first))
                await self._upkeep.write_if_due(self._image)
        except KafkaError as error:
            log.info("the metadata log takes no more changes here: %s", error)
        except StorageError as error:
            self._failure = error
            log.error("the metadata log failed, no more changes are possible: %s", error)
            raise
        finally:
            self.end()
            self._receive.close()

    def end(self) -> None:
        """Take nothing any more, as the lead is lost: whoever waits is told; `run` ends with what it is at."""
        self._is_closed = True
        self._send.close()
        while True:
            try:
                submission = self._receive.receive_nowait()
            except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
                break
            submission.error = KafkaError(ErrorCode.NOT_CONTROLLER, _CLOSED)
            submission.done.set()

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
        """Run operations, commit them together, publish, answer; nobody gets an answer that is not committed."""
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
                first = await slices.run(self._log.append_in_steps(values, now_ms))
                # Not where they were expected, if what the quorum says of itself was appended meanwhile.
                self._controller.note_position(first + len(values) - 1, self._log.leader_epoch)
                await self._log.commit()
                await self._publish(sum(map(len, values)))
                if self.partition_counts.elections > elections_count:
                    self.election_ms.record(self._clock.monotonic_ms() - begin_ms)
            elif self._images is not None:
                await self._log.commit()  # who has lost the lead does not know what others have decided since
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
        if offset > self._controller.image.offset + 1:  # what the log says of its quorum has offsets, too
            self._controller.note_position(offset - 1, self._log.leader_epoch)
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
        yield from self._controller.settle_in_steps()

    async def _publish(self, size_bytes: int) -> None:
        """Have the listeners follow. Cancelled: all the same, as what is committed is so; they wait for nobody."""
        level, self._image = self._image.metadata_version, self._controller.image
        delta = self._controller.take_delta()
        if self._images is not None:
            await self._images.adopt(delta, self._image, size_bytes)
        await self._listeners.publish(delta, self._image, Slices(STEPS_PER_SLICE))
        self._upkeep.note(size_bytes)
        if self._image.metadata_version < level:
            await self._finish_lowering()

    # ------------------------------------------------------------------------------------------------------ snapshots

    async def _finish_lowering(self) -> None:
        """Write a snapshot at the level to which `metadata.version` was lowered, and give up all that is before it.

        Raises:
            StorageError: It cannot be written: who was told of the level could not rely on it.
        """
        await self._upkeep.write(self._image, 1)
        self._is_lowering = False


def _encode_in_steps(records: Sequence[MetadataRecord], metadata_version: int) -> Generator[None, None, list[bytes]]:
    values: list[bytes] = []
    for record in records:
        values.append(encode_record(record, metadata_version))
        yield
    return values
