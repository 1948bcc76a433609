"""A controller's node to ask, without a log or a quorum: what it says is set, what it is told is noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import attrs
import trio

from odradek.kernel.contracts.log_values import EpochEnd
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.wire.message import Message

from .images import image


@attrs.define
class ControllerFeed:
    """`MetadataFeedView` of node 1, which leads in epoch 1 with ten records, all of them committed.

    `answers` are given to `ask` in their order; `voters` are who may read beyond what is committed.
    """

    node_id: int = 1
    cluster_id: str = "cluster"
    image: MetadataImage = attrs.field(factory=lambda: image({}))
    leader_id: int = 1
    leader_epoch: int = 1
    is_leader: bool = True
    start_offset: int = 0
    end_offset: int = 10
    appended_end: int = 10
    is_ending: bool = False
    listeners: Mapping[int, Sequence[tuple[str, str, int]]] = attrs.field(factory=lambda: {1: [("CONTROLLER", "c", 1)]})
    has_changing_voters: bool = True
    voters: Mapping[int, UUID] = attrs.field(factory=dict)
    epoch_end: EpochEnd | None = None
    snapshots: Mapping[tuple[int, int], bytes] = attrs.field(factory=dict)
    supported: tuple[int, int] | None = (0, 1)
    answers: list[Any] = attrs.field(factory=list)
    asked: list[tuple[int, Message]] = attrs.field(factory=list)
    fetched: list[tuple[int, int]] = attrs.field(factory=list)
    probed: list[tuple[str, int]] = attrs.field(factory=list)
    read: list[tuple[int, int]] = attrs.field(factory=list)
    on_fetch: Callable[[ControllerFeed], None] = lambda _feed: None
    _changed: trio.Event = attrs.field(factory=trio.Event)

    def change(self, **fields: Any) -> None:
        """Set fields, and tell whoever waits."""
        for name, value in fields.items():
            setattr(self, name, value)
        self._changed.set()
        self._changed = trio.Event()

    def endpoint(self, node_id: int) -> tuple[str, int] | None:
        return next(((host, port) for _name, host, port in self.listeners.get(node_id, ())), None)

    def is_member(self, node_id: int) -> bool:
        return node_id in self.image.brokers or node_id in self.voters

    async def ask(self, request: Message, broker_id: int = -1) -> Any:
        self.asked.append((broker_id, request))
        return self.answers.pop(0)

    async def kraft_versions(self, host: str, port: int) -> tuple[int, int] | None:
        self.probed.append((host, port))
        return self.supported

    async def wait_changed(self) -> None:
        await self._changed.wait()

    def readable_end(self, replica_id: int, directory_id: UUID) -> int:
        return self.appended_end if self.voters.get(replica_id) == directory_id else self.end_offset

    def needs_snapshot(self, last_fetched_epoch: int, fetch_offset: int) -> bool:
        return fetch_offset < self.start_offset

    def diverges(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        return self.epoch_end

    def follower_fetch(self, replica_id: int, directory_id: UUID, fetch_offset: int, high_watermark: int) -> None:
        self.fetched.append((replica_id, fetch_offset))
        self.on_fetch(self)

    def batches(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        return b"".join(b"%d," % each for each in range(offset, end_offset))

    def newest_snapshot(self) -> tuple[int, int] | None:
        return max(self.snapshots, default=None)

    def snapshot_part(self, end_offset: int, epoch: int, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        self.read.append((position, max_bytes))
        data = self.snapshots.get((end_offset, epoch))
        return None if data is None else (len(data), data[position : position + max_bytes])
