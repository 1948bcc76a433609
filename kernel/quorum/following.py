"""Shell: how a controller that does not lead has what the leader has: it fetches, appends, flushes, and fetches on.

    flush ──> Fetch: "all below this offset is durable here" ──> leader
                 <── batches, high watermark ──> append, flush; then the high watermark is learned
                 <── where the logs diverge  ──> truncate; the high watermark of that answer counts for nothing
                 <── a snapshot's name       ──> FetchSnapshot, part by part ──> log and image begin anew
    what was answered is told the election when it is taken: by answers a follower knows that its leader lives

Who knows no leader asks one controller after the other, and is told who it is, by an answer or by the leader itself.
What is asked of one is not waited for once another leads, or the same in another epoch, or this one stands itself.

A leader whose connection ended, and whose machine refuses the next one, is gone: the election hears of it at once
(`PeerRefused`). One that is silent may live: nothing but time is said then.

*Source:* KIP-595, KIP-630, KIP-853; `pollFollower` and `handleFetchResponse` of Kafka 4.3's KafkaRaftClient.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import trio

from ..cluster.controller_channel import ControllerChannel
from ..cluster.controller_nodes import NOBODY
from ..cluster.interruption import Interruption
from ..cluster.metadata_fetches import LogEnd, read_fetch, read_snapshot_part
from ..cluster.peer_settings import QUORUM_REQUEST_TIMEOUT
from ..config.roles import BOOTSTRAP, VOTERS
from ..contracts.election import FetchEnded, PeerRefused, Role
from ..controller.snapshots import SnapshotId
from ..errors import ConfigError, CorruptionError, ErrorCode, KafkaError
from ..machine.turnstile import Slices
from ..peers.errors import ClientError
from ..purgatory.timing_wheel import until_beat_ms

if TYPE_CHECKING:
    from ..cluster.controller_nodes import ControllerNodes
    from ..cluster.metadata_fetches import Fetched, FetchedPart, MetadataFetcher
    from ..config.broker import BrokerConfig
    from ..machine.machine import Machine
    from ..wire.message import Message
    from .replica_views import FollowedLog

log = logging.getLogger(__name__)

WAIT_MS: Final = 500
"""How long the leader may wait for news: a part of the time after which a follower takes it for gone."""
STEPS_PER_SLICE: Final = 50


class SnapshotTaker(Protocol):
    """Who begins anew with a snapshot, log and image: `CommittedImages`."""

    async def take_snapshot(self, identifier: SnapshotId, data: bytes) -> object:
        """Keep it, and begin anew with it."""
        ...


class _Standing(NamedTuple):
    """Whom this controller follows, and in which epoch."""

    role: Role
    leader_id: int
    leader_epoch: int


class MetadataFollowing:
    """Life: made, `run` as a task beside the election's. Owned by the controller."""

    def __init__(
        self,
        followed: FollowedLog,
        images: SnapshotTaker,
        fetcher: MetadataFetcher,
        *,
        config: BrokerConfig,
        machine: Machine,
        nodes: ControllerNodes,
    ) -> None:
        """Make it; asks nobody yet.

        Args:
            followed: The replica of this controller.
            images: What is committed of it.
            fetcher: Who fetches.
            config: Times, and how the controllers' listener is spoken to.
            machine: Network and chance.
            nodes: Where controllers are; told who leads.

        Raises:
            ConfigError: A certificate cannot be used.
        """
        self._config = config
        self._log = followed
        self._images = images
        self._fetcher = fetcher
        self._nodes = nodes
        self._timeout_ms = config.get_int(QUORUM_REQUEST_TIMEOUT)
        self._channel = ControllerChannel(
            "the metadata log", config=config, machine=machine, nodes=nodes, but=config.node_id
        )
        self._channel.on_refused = self._refused
        self._failures_count = 0
        self._has_followed = False
        self._strangers: set[tuple[str, int]] = set()
        self._clock = machine.clock
        self._interruption = Interruption()

    def __repr__(self) -> str:
        return f"MetadataFollowing({self._standing()}, {self._channel!r})"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow whoever leads until cancelled; what is appended then is whole.

        Raises:
            StorageError: The disk is full or failing, a record is of a newer format, or the leader has another log from
                an offset on that was committed.
            ConfigError: The other controllers are another cluster's, all of them, and nobody was followed yet.
        """
        async with trio.open_nursery() as nursery:
            await nursery.start(self._channel.run)
            task_status.started()
            while True:
                if self._log.role is not Role.FOLLOWER:
                    self._interruption.end()
                    await self._log.wait_changed()
                    continue
                try:
                    await self._follow()
                    self._failures_count = 0
                except (ClientError, CorruptionError, KafkaError) as error:
                    await self._rest(error)

    async def _rest(self, error: Exception) -> None:
        """Wait before the next fetch; not after the first failure: whether a leader is gone shows with the next one."""
        self._failures_count += 1
        level = self._interruption.note(error, self._clock.monotonic_ms())
        if level is not None:
            log.log(level, "the metadata log is not followed: %s", error)
        if self._failures_count > 1:
            await self._channel.rest()

    def _standing(self) -> _Standing:
        return _Standing(self._log.role, self._log.leader_id, self._log.leader_epoch)

    def _refused(self, where: tuple[str, int]) -> None:
        """Tell the election that nobody listens where a controller was; of its leader that is news."""
        if self._log.role is Role.FOLLOWER and where == self._nodes.address_of(self._log.leader_id):
            self._log.step(PeerRefused(self._log.leader_id))

    # ----------------------------------------------------------------------------------------------------- one fetch

    async def _follow(self) -> None:
        """Fetch once and take what comes, unless this controller is something else by then.

        Raises:
            KafkaError: Who was asked refuses, or does not lead; this controller does not follow any more.
            ClientError: It does not answer.
            CorruptionError: What it sent does not fit.
            StorageError: The disk is full or failing.
        """
        await self._log.flush()  # what a fetch says is here is durable
        standing = self._standing()
        if standing.role is not Role.FOLLOWER:
            return
        self._nodes.learn(standing.leader_id, standing.leader_epoch)
        end = LogEnd(self._log.end_offset, self._log.latest_epoch, self._log.high_watermark)
        wait_ms = until_beat_ms(self._clock.monotonic_ms(), WAIT_MS)
        response = await self._asked(self._fetcher.fetch(end, standing.leader_epoch, wait_ms), standing, wait_ms)
        if response is None:
            return
        answer = read_fetch(response)
        if self._is_leaders(answer, standing):
            await self._take(answer, standing)
        self._end(answer, standing)

    async def _asked(self, request: Message, standing: _Standing, wait_ms: int = 0) -> Any:
        """Return an answer; None where nobody wants it any more, as this controller stands elsewhere.

        Raises:
            ClientError: None came.
            KafkaError: UNSUPPORTED_VERSION.
        """
        answer = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_once_moved, standing, nursery.cancel_scope)
            try:
                answer = await self._channel.request_of_any(request, timeout_ms=wait_ms + self._timeout_ms)
            except (ClientError, KafkaError) as error:
                answer = error
            nursery.cancel_scope.cancel()
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            self._channel.abandon()
        return answer if self._standing() == standing else None

    async def _cancel_once_moved(self, standing: _Standing, scope: trio.CancelScope) -> None:
        while self._standing() == standing:
            await self._log.wait_changed()
        scope.cancel()

    def _is_leaders(self, answer: Fetched | FetchedPart, standing: _Standing) -> bool:
        """Return whether an answer is the leader's, in the epoch in which it was asked."""
        said = (answer.leader_id, answer.leader_epoch)
        return answer.error is ErrorCode.NONE and standing.leader_id != NOBODY and said == standing[1:]

    def _end(self, answer: Fetched | FetchedPart, standing: _Standing) -> None:
        """Tell everybody who asks for it what an answer said, when it is taken.

        Raises:
            KafkaError: It is no news, and not the leader's.
            ConfigError: The other controllers are another cluster's.
        """
        is_leaders, asked = self._is_leaders(answer, standing), self._channel.asked
        is_news = self._nodes.learn(answer.leader_id, answer.leader_epoch, answer.endpoints)
        self._check_cluster(answer.error, asked)
        by = standing.leader_id if is_leaders else self._nodes.node_at(asked)
        self._log.step(FetchEnded(by, answer.error, answer.leader_id, answer.leader_epoch))
        if is_leaders:
            self._has_followed = True
            self._interruption.end()
            self._channel.confirm()
        elif not is_news:
            if answer.error is not ErrorCode.NONE:
                self._channel.leave(asked)
            raise KafkaError(answer.error, f"controller {by} is not followed: {answer.error.name}")

    def _check_cluster(self, error: ErrorCode, asked: tuple[str, int] | None) -> None:
        """See that the others are of this cluster: one that is not may be wrong; if all are not, it is this directory.

        Raises:
            ConfigError: All are not. Who has followed one of them is of their cluster, whatever they say later.
        """
        if error is not ErrorCode.INCONSISTENT_CLUSTER_ID or asked is None:
            self._strangers.discard(asked or ("", 0))
            return
        self._strangers.add(asked)
        own = self._nodes.address_of(self._config.node_id)
        others = {(each.host, each.port) for each in self._nodes.addresses() if each != own}
        if not self._has_followed and others <= self._strangers:
            told = ", ".join(f"{host}:{port}" for host, port in sorted(others))
            raise ConfigError(
                f"the controllers at {told} are of another cluster than this node's directories, which are of "
                f"{self._fetcher.cluster_id}; nothing was changed",
                where=self._config.where(VOTERS) or self._config.where(BOOTSTRAP),
                hint="is it another cluster's directory, or are the addresses another cluster's?",
            )

    async def _take(self, answer: Fetched, standing: _Standing) -> None:
        """Take what the leader sent; its high watermark counts for a log that agrees with its own."""
        if answer.diverging is not None:
            self._log.truncate(self._log.diverging_offset(*answer.diverging))
        elif answer.snapshot is not None:
            await self._take_snapshot(SnapshotId(*answer.snapshot), standing)
        else:
            if answer.records:
                steps = self._log.append_fetched_in_steps(answer.records, standing.leader_epoch)
                await Slices(STEPS_PER_SLICE).run(steps)
                await self._log.flush()
            if self._log.follows(standing.leader_epoch):
                self._log.learn_high_watermark(answer.high_watermark)

    async def _take_snapshot(self, identifier: SnapshotId, standing: _Standing) -> None:
        parts: list[bytes] = []
        size_bytes, position = 1, 0
        while position < size_bytes:
            request = self._fetcher.fetch_snapshot(identifier, position, standing.leader_epoch)
            response = await self._asked(request, standing)
            if response is None:
                return
            part = read_snapshot_part(response)
            self._end(part, standing)
            if not self._is_leaders(part, standing):
                return
            if not part.data:
                raise CorruptionError("the leader sent an empty part of a snapshot")
            size_bytes = part.size_bytes
            parts.append(part.data)
            position += len(part.data)
        await self._images.take_snapshot(identifier, b"".join(parts))
