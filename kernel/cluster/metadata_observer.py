"""Shell: follows the metadata log of another node: fetches what is committed, keeps a copy, publishes its images.

    controller ── Fetch ──> batches ──> copy ──> image and delta ──> listeners, in order
               ── FetchSnapshot, where the controller's log no longer reaches back ──^

*Source:* KIP-595, KIP-630: what an observer of the metadata quorum does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, cast

import attrs
import trio

from ..controller.snapshots import SnapshotId
from ..errors import CorruptionError, ErrorCode, KafkaError, error_code
from ..machine.turnstile import Slices
from ..metadata.image_listeners import ImageListeners
from ..peers.errors import ClientError
from ..types import METADATA_TOPIC, METADATA_TOPIC_ID
from ..wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ..wire.messages.api_59_fetch_snapshot import FetchSnapshotRequest, PartitionSnapshot, TopicSnapshot
from ..wire.messages.api_59_fetch_snapshot import SnapshotId as WireSnapshotId

if TYPE_CHECKING:
    from ..controller.snapshots import SnapshotSettings
    from ..machine.clock import Clock
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..metadata.image_listeners import MetadataListener
    from ..wire.messages.api_01_fetch import FetchResponse, PartitionData
    from ..wire.messages.api_59_fetch_snapshot import ResponsePartitionSnapshot
    from .metadata_copy import MetadataCopy
    from .peer_channel import PeerChannel

log = logging.getLogger(__name__)

WAIT_MS: Final = 2000
"""How long the controller may wait for news before it answers without any."""
RETRY_S: Final = 0.05
STEPS_PER_SLICE: Final = 50


@attrs.frozen
class ObserverSettings:
    """What an observer is told.

    Attributes:
        broker_id: The broker that follows.
        fetch_bytes: `controller.quorum.fetch.max.bytes`.
        snapshot_bytes: `controller.quorum.fetch.snapshot.max.bytes`.
        timeout_ms: How long an answer may take beyond what is waited for.
        snapshots: When the copy is written as one.
    """

    broker_id: int
    fetch_bytes: int
    snapshot_bytes: int
    timeout_ms: int
    snapshots: SnapshotSettings


class MetadataObserver:
    """Life: made, `run` as a task. Listeners are told by `run`'s task.

    Invariant: `image` holds what the controller has committed, up to some offset; it never goes back.
    """

    def __init__(
        self,
        copy: MetadataCopy,
        channel: PeerChannel,
        settings: ObserverSettings,
        *,
        cluster_id: str,
        clock: Clock,
    ) -> None:
        """Read the copy, and follow over a channel of its own, as its requests wait.

        Raises:
            StorageError: The copy is of a newer format, or cannot be read.
        """
        self._copy = copy
        self._channel = channel
        self._settings = settings
        self._cluster_id = cluster_id
        self._clock = clock
        self._listeners = ImageListeners()
        self._image = copy.load()
        self._leader_epoch = max(self._image.epoch, 0)
        self._high_watermark = -1
        self._moved = trio.Event()
        self._told = ""
        self._snapshot_ms = clock.monotonic_ms()

    def __repr__(self) -> str:
        return f"MetadataObserver({self._image!r}, controller at {self._high_watermark})"

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata that is here."""
        return self._image

    @property
    def end_offset(self) -> int:
        """The next offset that is to come."""
        return self._copy.end_offset

    @property
    def leader_epoch(self) -> int:
        """The controller's epoch, as far as it is known."""
        return self._leader_epoch

    def add_listener(self, listener: MetadataListener) -> None:
        """Tell `listener` of every image from now on; what is there already it finds in `image`."""
        self._listeners.add(listener)

    async def wait_caught_up(self) -> None:
        """Wait until everything is here that the controller had when it was heard of first. Cancelled: nothing."""
        while not 0 <= self._high_watermark <= self.end_offset:
            await self._moved.wait()

    async def wait_for(self, offset: int) -> None:
        """Wait until the record at `offset` is in the image. Cancelled: nothing happens."""
        while self._image.offset < offset:
            await self._moved.wait()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow until cancelled; what is published is whole.

        Raises:
            StorageError: A record is of a newer format, or the copy cannot be written.
        """
        task_status.started()
        while True:
            try:
                await self._follow()
            except (ClientError, CorruptionError, KafkaError) as error:
                self._tell(str(error))
                await trio.sleep(RETRY_S)
            await self._snapshot_if_due()

    async def _follow(self) -> None:
        """Fetch once, and take what comes.

        Raises:
            KafkaError: The controller refuses.
            ClientError: It does not answer.
            CorruptionError: What it sent does not fit.
        """
        timeout_ms = WAIT_MS + self._settings.timeout_ms
        response: FetchResponse = await self._channel.request(self._fetch_request(), timeout_ms=timeout_ms)
        if response.error_code:
            raise KafkaError(error_code(response.error_code), "the controller refuses to be followed")
        answer = response.responses[0].partitions[0]
        known_epoch = self._leader_epoch
        if answer.current_leader is not None:
            self._leader_epoch = max(self._leader_epoch, answer.current_leader.leader_epoch)
        if answer.error_code:
            if self._leader_epoch == known_epoch:
                raise KafkaError(error_code(answer.error_code), "the controller refuses to be followed")
            return  # asked again in the new epoch
        if answer.snapshot_id is not None:
            await self._fetch_snapshot(SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch))
            return
        if answer.diverging_epoch is not None:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the controller's log ends before this broker's copy at {self.end_offset}: it lost what was committed",
            )
        await self._take(answer)

    async def _take(self, answer: PartitionData) -> None:
        slices = Slices(STEPS_PER_SLICE)
        if answer.records:
            level = self._image.metadata_version
            await slices.run(self._copy.append_in_steps(cast("memoryview", answer.records)))
            await self._publish(*self._copy.take(), slices)
            if self._image.metadata_version < level:
                # An older version of this broker begins with the snapshot, and finds no record of before.
                await self._copy.write_snapshot(self._clock.now_ms(), kept_count=1)
        self._told = ""
        self._high_watermark = answer.high_watermark
        self._tell_waiters()

    async def _publish(self, delta: MetadataDelta, image: MetadataImage, slices: Slices) -> None:
        self._image = image
        await self._listeners.publish(delta, image, slices)

    def _tell_waiters(self) -> None:
        self._moved.set()
        self._moved = trio.Event()

    def _fetch_request(self) -> FetchRequest:
        partition = FetchPartition(
            current_leader_epoch=self._leader_epoch,
            fetch_offset=self.end_offset,
            last_fetched_epoch=max(self._copy.last_epoch, 0),
            partition_max_bytes=self._settings.fetch_bytes,
        )
        return FetchRequest(
            cluster_id=self._cluster_id,
            replica_state=ReplicaState(replica_id=self._settings.broker_id),
            max_wait_ms=WAIT_MS if self._high_watermark >= 0 else 0,  # at first how far the controller is
            min_bytes=1,
            max_bytes=self._settings.fetch_bytes,
            topics=[FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )

    async def _fetch_snapshot(self, identifier: SnapshotId) -> None:
        parts: list[bytes] = []
        size_bytes, position = 1, 0
        while position < size_bytes:
            part = await self._fetch_part(identifier, position)
            size_bytes = part.size
            parts.append(bytes(cast("memoryview", part.unaligned_records)))
            position += len(parts[-1])
            if not parts[-1]:
                raise CorruptionError("the controller sent an empty part of a snapshot")
        delta, image = await self._copy.take_snapshot(identifier, b"".join(parts))
        log.info("the metadata was taken from the controller's snapshot at offset %d", identifier.end_offset)
        await self._publish(delta, image, Slices(STEPS_PER_SLICE))
        self._tell_waiters()

    async def _fetch_part(self, identifier: SnapshotId, position: int) -> ResponsePartitionSnapshot:
        wanted = PartitionSnapshot(
            current_leader_epoch=self._leader_epoch,
            snapshot_id=WireSnapshotId(end_offset=identifier.end_offset, epoch=identifier.epoch),
            position=position,
        )
        request = FetchSnapshotRequest(
            cluster_id=self._cluster_id,
            replica_id=self._settings.broker_id,
            max_bytes=self._settings.snapshot_bytes,
            topics=[TopicSnapshot(name=METADATA_TOPIC, partitions=[wanted])],
        )
        response = await self._channel.request(request, timeout_ms=self._settings.timeout_ms)
        if response.error_code:
            raise KafkaError(error_code(response.error_code), "the controller refuses its snapshot")
        part: ResponsePartitionSnapshot = response.topics[0].partitions[0]
        if part.error_code:
            raise KafkaError(error_code(part.error_code), "the controller refuses its snapshot")
        return part

    async def _snapshot_if_due(self) -> None:
        elapsed_ms = self._clock.monotonic_ms() - self._snapshot_ms
        if self._settings.snapshots.is_due(self._copy.bytes_since_snapshot, elapsed_ms):
            self._snapshot_ms = self._clock.monotonic_ms()
            await self._copy.write_snapshot(self._clock.now_ms())

    def _tell(self, problem: str) -> None:
        """Log what is wrong, once."""
        if problem != self._told:
            self._told = problem
            log.warning("the metadata is not followed: %s", problem)
