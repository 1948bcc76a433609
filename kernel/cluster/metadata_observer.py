"""Shell: follows the metadata log of other nodes: fetches what is committed, keeps a copy, publishes its images.

    controller ── Fetch ──> batches ──> copy ──> image and delta ──> listeners, in order
               ── FetchSnapshot, where the controller's log no longer reaches back ──^

Any controller is asked; one that does not lead says who does, and so all channels of the node learn of it.

*Source:* KIP-595, KIP-630: what an observer of the metadata quorum does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ..controller.snapshots import SnapshotId
from ..errors import CorruptionError, ErrorCode, KafkaError
from ..machine.turnstile import Slices
from ..metadata.image_listeners import ImageListeners
from ..peers.errors import ClientError
from .controller_nodes import NOBODY, voter_addresses
from .interruption import Interruption
from .metadata_fetches import LogEnd, read_fetch, read_snapshot_part

if TYPE_CHECKING:
    from ..controller.snapshots import SnapshotSettings
    from ..machine.clock import Clock
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..metadata.image_listeners import MetadataListener
    from .controller_channel import ControllerChannel
    from .controller_nodes import ControllerNodes
    from .metadata_copy import MetadataCopy
    from .metadata_fetches import Fetched, FetchedPart, MetadataFetcher

log = logging.getLogger(__name__)

WAIT_MS: Final = 2000
"""How long the controller may wait for news before it answers without any."""
STEPS_PER_SLICE: Final = 50


@attrs.frozen
class ObserverSettings:
    """What an observer is told.

    Attributes:
        fetcher: Who follows.
        listener_name: Of the listener by which controllers are reached.
        timeout_ms: How long an answer may take beyond what is waited for.
        snapshots: When the copy is written as one.
    """

    fetcher: MetadataFetcher
    listener_name: str
    timeout_ms: int
    snapshots: SnapshotSettings


class MetadataObserver:
    """A `MetadataSource`. Life: made, `run` as a task. Listeners are told by `run`'s task.

    Invariant: `image` holds what the controller has committed, up to some offset; it never goes back.
    """

    def __init__(
        self,
        copy: MetadataCopy,
        channel: ControllerChannel,
        settings: ObserverSettings,
        *,
        nodes: ControllerNodes,
        clock: Clock,
    ) -> None:
        """Read the copy, and follow over a channel of its own, as its requests wait.

        Args:
            copy: Of the metadata log.
            channel: To the controllers; `run` by others.
            settings: Who follows, and how.
            nodes: Told who leads.
            clock: Of snapshots.

        Raises:
            StorageError: The copy is of a newer format, or cannot be read.
        """
        self._copy = copy
        self._channel = channel
        self._settings = settings
        self._nodes = nodes
        self._clock = clock
        self._listeners = ImageListeners()
        self._image = copy.load()
        self._know_voters()
        nodes.learn(NOBODY, self._image.epoch)  # who leads in an older one is no controller any more
        self._high_watermark = -1
        self._moved = trio.Event()
        self._interruption = Interruption()
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
        return max(self._nodes.leader_epoch, 0)

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
                level = self._interruption.note(error, self._clock.monotonic_ms())
                if level is not None:
                    log.log(level, "the metadata is not followed: %s", error)
                await self._channel.rest()
            await self._snapshot_if_due()

    async def _follow(self) -> None:
        """Fetch once, and take what comes.

        Raises:
            KafkaError: Who was asked refuses, or does not lead.
            ClientError: It does not answer.
            CorruptionError: What it sent does not fit.
        """
        end = LogEnd(self.end_offset, self._copy.last_epoch, self._high_watermark)
        wait_ms = WAIT_MS if self._high_watermark >= 0 else 0  # at first how far the controller is
        request = self._settings.fetcher.fetch(end, self.leader_epoch, wait_ms)
        answer = read_fetch(await self._channel.request_of_any(request, timeout_ms=wait_ms + self._settings.timeout_ms))
        if not self._is_leaders(answer):
            return
        if answer.snapshot is not None:
            await self._fetch_snapshot(SnapshotId(*answer.snapshot))
        elif answer.diverging is not None:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the controller's log ends before this broker's copy at {self.end_offset}: it lost what was committed",
            )
        else:
            await self._take(answer)

    def _is_leaders(self, answer: Fetched | FetchedPart) -> bool:
        """Take note of who leads; return whether it is who has answered. If not, another one is asked next.

        Raises:
            KafkaError: What it says is no news, or it refuses to be followed.
        """
        asked = self._channel.asked
        is_news = self._nodes.learn(answer.leader_id, answer.leader_epoch, answer.endpoints)
        if answer.error is ErrorCode.NONE:
            self._channel.confirm()
            return True
        if not is_news:
            self._channel.leave(asked)
            raise KafkaError(answer.error, f"the controller at {_told(asked)} says {answer.error.name}")
        return False

    async def _take(self, answer: Fetched) -> None:
        slices = Slices(STEPS_PER_SLICE)
        if answer.records:
            level = self._image.metadata_version
            await slices.run(self._copy.append_in_steps(answer.records))
            self._know_voters()
            await self._publish(*self._copy.take(), slices)
            if self._image.metadata_version < level:
                # An older version of this broker begins with the snapshot, and finds no record of before.
                await self._copy.write_snapshot(self._clock.now_ms(), kept_count=1)
        self._interruption.end()
        self._high_watermark = answer.high_watermark
        self._tell_waiters()

    def _know_voters(self) -> None:
        """Have the node know who keeps the metadata, where the log says it."""
        if self._copy.voters is not None:
            self._nodes.know_voters(voter_addresses(self._copy.voters, self._settings.listener_name))

    async def _publish(self, delta: MetadataDelta, image: MetadataImage, slices: Slices) -> None:
        self._image = image
        await self._listeners.publish(delta, image, slices)

    def _tell_waiters(self) -> None:
        self._moved.set()
        self._moved = trio.Event()

    async def _fetch_snapshot(self, identifier: SnapshotId) -> None:
        parts: list[bytes] = []
        size_bytes, position = 1, 0
        while position < size_bytes:
            request = self._settings.fetcher.fetch_snapshot(identifier, position, self.leader_epoch)
            response = await self._channel.request_of_any(request, timeout_ms=self._settings.timeout_ms)
            part = read_snapshot_part(response)
            if not self._is_leaders(part):
                return
            size_bytes = part.size_bytes
            parts.append(part.data)
            position += len(part.data)
            if not part.data:
                raise CorruptionError("the controller sent an empty part of a snapshot")
        delta, image = await self._copy.take_snapshot(identifier, b"".join(parts))
        self._know_voters()
        log.info("the metadata was taken from the controller's snapshot at offset %d", identifier.end_offset)
        await self._publish(delta, image, Slices(STEPS_PER_SLICE))
        self._tell_waiters()

    async def _snapshot_if_due(self) -> None:
        elapsed_ms = self._clock.monotonic_ms() - self._snapshot_ms
        if self._settings.snapshots.is_due(self._copy.bytes_since_snapshot, elapsed_ms):
            self._snapshot_ms = self._clock.monotonic_ms()
            await self._copy.write_snapshot(self._clock.now_ms())


def _told(address: tuple[str, int] | None) -> str:
    return "an unknown address" if address is None else f"{address[0]}:{address[1]}"
