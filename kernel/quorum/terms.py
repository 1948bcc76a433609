"""Shell: the controller of a quorum, in those terms in which this node leads it.

    QuorumLog leads, its first record is committed, the image has all that is ──> a term: MetadataLog, ControllerServing
    the lead goes ──> the term ends: whoever waits is told NOT_CONTROLLER, and nothing of it is left

A term begins at what is committed and ends as a whole, so that nothing that an earlier one had begun is ever gone on
with: it was committed, or it never was. It writes in its own epoch alone: a lead that was lost and won again between
two looks is another term's. So two controllers never both act, whatever each of them believes: what the one that was
left behind appends is committed by nobody.

What was appended as the lead went is committed by who leads next, or gone. Where this node hears of it soon, it answers
what it was asked by that: who asks again elsewhere would find his own topic there already.

*Source:* Kafka's `QuorumController` (`claim`, `renounce`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import trio

from ..controller.broker_sessions import BrokerSessions
from ..controller.metadata_log import MetadataLog
from ..controller.serving import ControllerServing
from ..controller.snapshots import SnapshotSettings
from ..errors import ErrorCode, KafkaError
from ..metadata.features import KRAFT_VERSION
from ..metadata.partition_counts import MIN_INSYNC_REPLICAS, PartitionCounts
from ..purgatory.histogram import Histogram
from .kraft_version import raises_kraft_version, update_features

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from ..controller.local_log import LoggedRecord
    from ..controller.rules import ControllerRules
    from ..machine.machine import Machine
    from ..machine.threads import Workers
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..wire.message import Message
    from .committed_images import CommittedImages
    from .replica_views import LedLog

Run: TypeAlias = "Callable[..., Awaitable[None]]"
Supervise: TypeAlias = "Callable[[str, Run], Run]"
"""Takes the name of a service and what runs it; returns what runs it and starts it again when it crashes."""

log = logging.getLogger(__name__)

FATE_S_MAX: Final = 1.0
"""How long a controller that has lost the lead waits to hear what became of what it had appended."""


class TermLog:
    """`ReplicatedLog` in one epoch of a replica's: nothing is appended in another, and none is committed there."""

    def __init__(self, replica: LedLog, leader_epoch: int) -> None:
        """Take a replica that leads in this epoch."""
        self._replica = replica
        self._has_appended = False
        self.leader_epoch = leader_epoch

    def __repr__(self) -> str:
        return f"TermLog(epoch {self.leader_epoch} of {self._replica!r})"

    def _check(self) -> None:
        if not self._replica.leads(self.leader_epoch):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"the lead in epoch {self.leader_epoch} was lost")

    @property
    def directory(self) -> Path | None:
        """See `ReplicatedLog.directory`."""
        return self._replica.directory

    @property
    def start_offset(self) -> int:
        """See `ReplicatedLog.start_offset`."""
        return self._replica.start_offset

    @property
    def end_offset(self) -> int:
        """See `ReplicatedLog.end_offset`."""
        return self._replica.end_offset

    def append_in_steps(self, values: Sequence[bytes], now_ms: int) -> Generator[None, None, int]:
        """See `ReplicatedLog.append_in_steps`.

        Raises:
            KafkaError: NOT_CONTROLLER: the lead in this epoch is lost.
            StorageError: The disk is full or failing.
        """
        steps = self._replica.append_in_steps(values, now_ms)
        while True:
            self._check()
            try:
                next(steps)
            except StopIteration as end:
                base_offset: int = end.value
                self._has_appended = True
                return base_offset
            yield

    async def commit(self) -> None:
        """See `ReplicatedLog.commit`.

        Raises:
            KafkaError: NOT_CONTROLLER: the lead in this epoch is lost, and what was appended is gone, or nobody told
                within `FATE_S_MAX` what became of it.
            StorageError: The disk is full or failing.
        """
        end_offset = self._replica.end_offset
        try:
            self._check()
            await self._replica.commit()
            self._check()  # who leads anew in another epoch has committed what stands there now
        except KafkaError:
            if not self._has_appended or not await self._is_kept(end_offset):
                raise
        self._has_appended = False

    async def _is_kept(self, end_offset: int) -> bool:
        """Return whether what was appended in this epoch, up to an offset, has been committed by somebody else.

        False says that it is gone, or that a snapshot stands in its place, or that nobody told in time.
        """
        replica = self._replica
        with trio.move_on_after(FATE_S_MAX):
            while True:
                epoch, ends_at = replica.end_of_epoch(self.leader_epoch)
                if epoch != self.leader_epoch or ends_at < end_offset:
                    return False
                if replica.high_watermark >= end_offset:
                    return True
                await replica.wait_changed()
        return False

    def records(self, start_offset: int) -> Iterator[LoggedRecord]:
        """See `ReplicatedLog.records`."""
        return self._replica.records(start_offset)

    def drop_below(self, offset: int) -> None:
        """See `ReplicatedLog.drop_below`."""
        self._replica.drop_below(offset)

    def batches(self, start_offset: int, end_offset: int, max_bytes: int) -> bytes:
        """See `ReplicatedLog.batches`."""
        return self._replica.batches(start_offset, end_offset, max_bytes)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """See `ReplicatedLog.end_of_epoch`."""
        return self._replica.end_of_epoch(epoch)


class ControllerTerms:
    """Life: made, `run` as a task beside the log and the images. Owned by the node.

    Attributes:
        active: The metadata log of the term, None while this node is not the controller.
        serving: What serves the controller to other nodes, as long as it is there.
        partition_counts: Partitions that are not as they should be, whoever is the controller.
        queue_ms: How long operations waited, in all terms.
        election_ms: How long changes took in which partitions got other leaders, in all terms.
    """

    def __init__(
        self,
        replica: LedLog,
        images: CommittedImages,
        rules: ControllerRules,
        machine: Machine,
        *,
        cluster_id: str,
        features: Mapping[str, int],
        worker: Workers,
        supervise: Supervise,
    ) -> None:
        """Make the terms of a node that leads nothing yet.

        Args:
            replica: The node's of the metadata log.
            images: What is committed of it.
            rules: The controller's collaborators; each term has sessions of its own.
            machine: The node's.
            cluster_id: The cluster's, with which an empty log begins; empty makes a new one.
            features: What is finalized then at other levels than those of a new log, by name.
            worker: The thread of the metadata log.
            supervise: Has a service start again when it crashes.
        """
        self._replica, self._images = replica, images
        self._rules, self._machine = rules, machine
        self._cluster_id, self._features, self._worker = cluster_id, features, worker
        self._supervise = supervise
        self._changed = trio.Event()
        self._is_leaving = False
        self.active: MetadataLog | None = None
        self.serving: ControllerServing | None = None
        self._sessions: BrokerSessions | None = None
        self.queue_ms, self.election_ms = Histogram(), Histogram()
        self.partition_counts = PartitionCounts(rules.node_id, rules.config.get_int(MIN_INSYNC_REPLICAS))
        self.partition_counts.begin(images.image)
        images.add_listener(self.partition_counts.changed)
        images.add_listener(self._note_own_offset)

    def __repr__(self) -> str:
        return f"ControllerTerms({self.active!r})"

    @property
    def is_active(self) -> bool:
        """Whether this node is the controller, and takes changes."""
        return self.active is not None and self.active.is_active

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata."""
        return self._images.image

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `metadata.controller_calls.ControllerCalls.ask`."""
        active = self.active
        if active is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
        if raises_kraft_version(request, self._replica):
            return await update_features(request, active, self._replica, self.image)
        return await active.ask(request, timeout_ms)

    def note_offset(self, broker_id: int, offset: int) -> None:
        """Take note of how far a registered broker follows, in a term: its id, and the last offset that it has."""
        if self._sessions is not None:
            self._sessions.note_offset(broker_id, offset)

    def _note_own_offset(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Take note of how far the broker beside this controller is: it has the same image, and fetches from nobody.

        Else a broker that stops would wait for the next heartbeat of this one.
        """
        self.note_offset(self._rules.node_id, image.offset)

    async def wait_changed(self) -> None:
        """Wait until this node becomes the controller, or is it no more. Cancelled: nothing happens."""
        await self._changed.wait()

    async def leave(self) -> None:
        """Have another node be the controller, if this one is, and be it no more: it stops.

        What was asked already is committed and answered before. Cancelled: it may lead until it ends.

        Raises:
            StorageError: The log cannot be written.
        """
        self._is_leaving = True
        if self.active is not None:
            await self.active.close()
        while self.active is not None:
            await self._changed.wait()
        await self._replica.give_up()

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # ------------------------------------------------------------------------------------------------------- the terms

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Be the controller whenever this node leads, until cancelled; then the term ends as when the lead is lost.

        Raises:
            StorageError: The log cannot be written: this node is to end, so that another one leads.
        """
        task_status.started()
        while True:
            leader_epoch = await self._won()
            log.info("this node is the active controller, in epoch %d", leader_epoch)
            with self._images.led():
                await self._serve(leader_epoch)
            log.info("this node is not the active controller any more: its epoch %d is over", leader_epoch)
            await self._images.advance(self._replica.high_watermark)

    async def _won(self) -> int:
        """Wait until this node leads and has all that is committed; return the epoch. Nothing awaits behind that."""
        replica = self._replica
        while True:
            leader_epoch, committed = replica.leader_epoch, replica.high_watermark
            if not self._has_begun(leader_epoch):
                await replica.wait_changed()
            elif self._images.next_offset < committed:
                await self._images.wait_for(committed - 1)
            else:
                return leader_epoch

    def _has_begun(self, leader_epoch: int) -> bool:
        """Return whether the first record of an epoch that this node leads is committed: with it all that is older."""
        begins_at = self._replica.epoch_start
        leads = self._replica.leads(leader_epoch) and not self._is_leaving
        return leads and begins_at is not None and self._replica.high_watermark > begins_at

    async def _serve(self, leader_epoch: int) -> None:
        """Be the controller as long as this node leads in an epoch."""
        clock = self._machine.clock
        timeout_ms = self._rules.config.get_int("broker.session.timeout.ms")
        sessions = BrokerSessions(monotonic_ms=clock.monotonic_ms, timeout_ms=timeout_ms)
        rules = attrs.evolve(self._rules, sessions=sessions, has_own_broker=False)
        metadata = MetadataLog(
            log=TermLog(self._replica, leader_epoch),
            rules=rules,
            clock=clock,
            files=self._machine.files,
            cluster_id=self._cluster_id,
            worker=self._worker,
            snapshots=SnapshotSettings.configured(rules.config),
            images=self._images,
            partition_counts=self.partition_counts,
        )
        metadata.queue_ms, metadata.election_ms = self.queue_ms, self.election_ms
        serving = ControllerServing(metadata, rules, self._machine, tuple)  # brokers tell what failed themselves
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_when_lost, leader_epoch, metadata)
                await nursery.start(self._write, metadata, nursery.cancel_scope)
                await self._begin(metadata)
                for name, run in serving.services():
                    await nursery.start(self._supervise(name, run), name=name)
                self.active, self.serving, self._sessions = metadata, serving, sessions
                self._tell_changed()
        finally:
            metadata.end()
            self.active = self.serving = self._sessions = None
            self._tell_changed()

    async def _write(
        self, metadata: MetadataLog, scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]
    ) -> None:
        await metadata.run(task_status=task_status)
        scope.cancel()

    async def _begin(self, metadata: MetadataLog) -> None:
        """Write what a log begins with into one that is empty; what is new in this version waits for UpdateFeatures."""
        if metadata.image.format_version:
            return
        named = {} if self._replica.voters is None else {KRAFT_VERSION: 1}
        try:
            await metadata.format({**named, **self._features})
        except KafkaError as error:
            log.info("the metadata was not begun: %s", error)

    async def _end_when_lost(self, leader_epoch: int, metadata: MetadataLog) -> None:
        while self._replica.leads(leader_epoch):
            await self._replica.wait_changed()
        metadata.end()
