"""Shell: the image of what a quorum has committed, on each of its controllers, whoever leads.

    follower    high watermark grows ──> the log's records below it are replayed ──┐
    leader      the term's metadata log has committed its records ──> `adopt` ─────┼──> image, listeners; snapshots
    far behind  a snapshot of the leader's ──> `take_snapshot` ────────────────────┘

At the start there is the newest snapshot and nothing more: what the log holds behind it may be taken back until a
leader says how much of it is committed. One image serves the node's broker, whatever this controller is meanwhile, and
each term of a controller here begins at it. Every controller writes snapshots of its own, from a task that no term
waits for; but where `metadata.version` was lowered, who asked for it is answered when the leader's stands.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from ..controller.image_checks import check_cluster, check_features, check_next
from ..controller.snapshot_upkeep import SnapshotUpkeep
from ..controller.snapshots import SnapshotQuorum, SnapshotStore
from ..errors import CorruptionError
from ..machine.turnstile import Slices
from ..metadata.image import MetadataImage
from ..metadata.image_builder import ImageBuilder
from ..metadata.image_difference import difference
from ..metadata.image_listeners import ImageListeners
from ..metadata.records import decode_record
from ..records.batch import is_crc_valid, iterate_batches
from ..records.reader import read_batch

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ..config.broker import BrokerConfig
    from ..controller.snapshots import LoadedSnapshot, SnapshotId, SnapshotSettings
    from ..machine.machine import Machine
    from ..machine.threads import Workers
    from ..metadata.image import MetadataDelta
    from ..metadata.image_listeners import MetadataListener
    from ..records.control import KRaftVoters
    from .replica_views import CommittedLog

log = logging.getLogger(__name__)

READ_BYTES: Final = 1 << 20
"""So much of the log is read at a time, and published as one image."""
STEPS_PER_SLICE: Final = 50


class CommittedImages:
    """Life: made with the newest snapshot, `run` as a task. Owned by one trio run; listeners are told in order.

    Invariant: `image` holds what is committed, up to some offset; it never goes back.

    Attributes:
        image: The newest committed metadata that is here.
        next_offset: Everything below is in it.
        store: The snapshots; None without a disk.
    """

    def __init__(
        self,
        log: CommittedLog,
        *,
        snapshot: LoadedSnapshot | None,
        config: BrokerConfig,
        cluster_id: str,
        settings: SnapshotSettings,
        worker: Workers,
        machine: Machine,
    ) -> None:
        """Begin with a snapshot.

        Args:
            log: The replica, opened behind the same snapshot.
            snapshot: The newest that can be read, None where there is none.
            config: The node's: which features it supports.
            cluster_id: The cluster's, empty while that is not known.
            settings: When snapshots are written.
            worker: The thread that writes them.
            machine: Its clock and files.

        Raises:
            StorageError: The snapshot is of a newer version, or the log begins behind it.
            ConfigError: It is another cluster's.
        """
        self._log = log
        self._config = config
        self._cluster_id = cluster_id
        self._worker = worker
        directory = log.directory
        self.store = None if directory is None else SnapshotStore(directory=directory, files=machine.files)
        self._upkeep = SnapshotUpkeep(
            self.store, log, settings, worker=worker, clock=machine.clock, quorum_at=self._quorum_at
        )
        self._listeners = ImageListeners()
        self._lock = trio.Lock()
        self._moved = trio.Event()
        self._is_led = False
        self._known_end = log.end_offset
        self.image = MetadataImage() if snapshot is None else snapshot.image
        self.next_offset = self.image.offset + 1
        self._check_start()

    def __repr__(self) -> str:
        return f"CommittedImages({self.image!r}, next {self.next_offset}{', led' if self._is_led else ''})"

    def _check_start(self) -> None:
        self._check(self.image)
        if self._log.start_offset > self.next_offset:
            raise CorruptionError(
                f"{self._log.directory}: the metadata log begins at offset {self._log.start_offset}, and no snapshot "
                "that can be read reaches that far: restore the directory from a backup, or, where a majority of the "
                "other controllers lives, remove this one from the voters, empty its directory, and add it again"
            )

    def _check(self, image: MetadataImage) -> None:
        check_cluster(image, self._cluster_id, self._log.directory)
        check_features(image, self._config, self._log.directory)

    def _quorum_at(self, offset: int) -> SnapshotQuorum | None:
        voters = self._log.voters_at(offset)
        return None if voters is None else SnapshotQuorum(voters)

    # ---------------------------------------------------------------------------------------------- what is known here

    @property
    def end_offset(self) -> int:
        """Where the log ends here."""
        return self._log.end_offset

    @property
    def leader_epoch(self) -> int:
        """The controller's epoch, as far as it is known."""
        return max(self._log.leader_epoch, 0)

    def add_listener(self, listener: MetadataListener) -> None:
        """Tell `listener` of every image from now on; what is there already it finds in `image`."""
        self._listeners.add(listener)

    async def wait_caught_up(self) -> None:
        """Wait until everything is here that was committed when the leader was heard of. Cancelled: nothing happens."""
        while not self._is_caught_up():
            await self._moved.wait()

    def _is_caught_up(self) -> bool:
        log = self._log
        if log.leader_id < 0 or self.next_offset < max(log.high_watermark, min(self._known_end, log.end_offset)):
            return False
        # A record of the leader's own epoch is committed here, so everything is that was committed before.
        _, begins_at = log.end_of_epoch(log.leader_epoch - 1)
        return self.image.epoch == log.leader_epoch or (
            log.latest_epoch == log.leader_epoch and self.next_offset > begins_at
        )

    async def wait_for(self, offset: int) -> None:
        """Wait until the record at `offset` is in the image. Cancelled: nothing happens."""
        while self.next_offset <= offset:
            await self._moved.wait()

    def _tell_waiters(self) -> None:
        self._moved.set()
        self._moved = trio.Event()

    # ------------------------------------------------------------------------------------------------------- following

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the high watermark, and write snapshots when they are due, until cancelled.

        Raises:
            StorageError: What is committed cannot be read by this version, or the disk is failing.
            ConfigError: It is another cluster's.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_snapshots)
            task_status.started()
            while True:
                if not self._is_led:
                    await self.advance(self._log.high_watermark)
                if self._is_led or self.next_offset >= self._log.high_watermark:
                    self._tell_waiters()  # it may be what is known of the leader that has changed
                    await self._log.wait_changed()

    async def _keep_snapshots(self) -> None:
        """Write what is due: nobody waits for a large one, least of all who is to be the controller next."""
        await self._finish_lowering()
        while True:
            while self._upkeep.is_due():
                await self._upkeep.write_or_tell(self.image)
            await self._moved.wait()

    async def _finish_lowering(self) -> None:
        """Give up what a crash has left of a higher `metadata.version`, as the snapshot at a lower one stands."""
        if self.image.offset >= 0 and self._upkeep.holds_newer(self.image, self._values_before()):
            await self._upkeep.write(self.image, 1)

    def _values_before(self) -> Iterator[bytes]:
        """Iterate over what the log still has of what the snapshot says."""
        position = self._log.start_offset
        while position < self.next_offset:
            data = memoryview(self._log.batches(position, self.next_offset, READ_BYTES))
            for at, header in iterate_batches(data):
                if not header.is_control:
                    for record in read_batch(data, at, header):
                        yield bytes(record.value or b"")
                position = header.next_offset

    async def advance(self, high_watermark: int) -> None:
        """Replay what is committed below an offset and not here yet. Cancelled: what is published is whole.

        Raises:
            CorruptionError: The log is damaged.
            StorageError: A record is of a newer version, or the disk is failing.
            ConfigError: The log is another cluster's.
        """
        async with self._lock:
            while self.next_offset < high_watermark:
                data = self._log.batches(self.next_offset, high_watermark, READ_BYTES)
                builder = ImageBuilder(self.image)
                steps = self._replay_in_steps(builder, data, high_watermark)
                next_offset = await Slices(STEPS_PER_SLICE).run(steps)
                with trio.CancelScope(shield=True):
                    await self._take(builder.take_delta(), builder.build(), next_offset)

    def _replay_in_steps(self, builder: ImageBuilder, data: bytes, high_watermark: int) -> Generator[None, None, int]:
        view, next_offset = memoryview(data), self.next_offset
        is_first = not self.image.format_version
        for position, header in iterate_batches(view):
            if header.next_offset <= next_offset:
                continue
            if header.base_offset > next_offset or not is_crc_valid(view, position, header):
                break
            for record in () if header.is_control else read_batch(view, position, header):
                if not self.next_offset <= record.offset < high_watermark:
                    continue
                value = bytes(record.value or b"")
                said = decode_record(value)
                check_next(said, self._log.directory, is_first=is_first)
                is_first = False
                builder.replay(said)
                builder.note_position(record.offset, header.partition_leader_epoch)
                self._upkeep.note(len(value))
                yield
            next_offset = min(header.next_offset, high_watermark)
        yield from builder.settle_in_steps()
        if next_offset == self.next_offset:
            raise CorruptionError(f"{self._log.directory}: the record batch at offset {next_offset} is damaged or gone")
        return next_offset

    async def _take(self, delta: MetadataDelta, image: MetadataImage, next_offset: int) -> None:
        """Publish an image."""
        before, self.image, self.next_offset = self.image, image, next_offset
        if image is not before:
            if image.cluster_id != before.cluster_id or image.features is not before.features:
                self._check(image)
            await self._listeners.publish(delta, image, Slices(STEPS_PER_SLICE))
        self._tell_waiters()
        if image.metadata_version < before.metadata_version:
            await self._upkeep.write(image, 1)

    # ------------------------------------------------------------------------------------------------------ from others

    @contextmanager
    def led(self) -> Iterator[None]:
        """Leave it to a term of this controller to say what is committed, until it ends.

        The caller sees to it that everything is here that was committed before, and begins the term at `image`.
        """
        assert not self._is_led, "one term ends before the next begins"
        self._is_led = True
        try:
            yield
        finally:
            self._is_led = False
            self._tell_waiters()

    async def adopt(self, delta: MetadataDelta, image: MetadataImage, size_bytes: int) -> None:
        """See `controller.metadata_log.TermImages.adopt`.

        Raises:
            StorageError: `metadata.version` was lowered, and the snapshot that this needs cannot be written.
        """
        assert self._is_led, "only a term knows what is committed before it is replayed"
        assert image.offset >= self.next_offset, "a term publishes in order"
        with trio.CancelScope(shield=True):
            async with self._lock:
                self._upkeep.note(size_bytes)
                await self._take(delta, image, image.offset + 1)

    async def take_snapshot(self, identifier: SnapshotId, data: bytes) -> KRaftVoters | None:
        """Begin anew with a snapshot of the leader, log and image; return who votes according to it.

        Cancelled: it may be kept, for the next start, and have no other effect.

        Raises:
            CorruptionError: It is damaged; nothing changed.
            KafkaError: NOT_LEADER_OR_FOLLOWER: this replica does not follow any more.
            StorageError: It is of a newer version, or ends before what is committed here; or the disk is failing.
            ConfigError: It is another cluster's.
        """
        assert self.store is not None, "only a log on a disk takes snapshots"
        store = self.store
        loaded = await self._worker.run_sync(store.keep, identifier, data)
        self._check(loaded.image)
        voters = None if loaded.quorum is None else loaded.quorum.voters
        async with self._lock:
            delta = await self._worker.run_sync(difference, self.image, loaded.image)  # long where partitions are many
            with trio.CancelScope(shield=True):
                self._log.begin_anew(identifier, voters)
                await self._worker.run_sync(store.drop_old, 1)  # the log has nothing of what is between them
                await self._take(delta, loaded.image, identifier.end_offset)
        log.info("the metadata was taken from the leader's snapshot at offset %d", identifier.end_offset)
        return voters
