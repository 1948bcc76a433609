"""Shell: one of several controllers, as who asks its listener sees it: its log, what is committed, and its quorum.

`MetadataFeedView` over a `QuorumLog` and the images of what is committed of it, leading or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import trio

from ..cluster.peer_settings import QUORUM_REQUEST_TIMEOUT, controller_tls, quorum_settings
from ..config.listeners import controller_endpoints
from ..config.roles import parse_roles
from ..contracts.election import Role
from ..controller.snapshots import SnapshotId
from ..metadata.features import KRAFT_VERSION
from ..peers.connection import open_connection
from ..peers.errors import ClientError
from ..types import ZERO_ID
from ..wire.messages.api_18_api_versions import ApiVersionsRequest
from ..wire.messages.api_55_describe_quorum import DescribeQuorumResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..contracts.log_values import EpochEnd
    from ..controller.snapshots import SnapshotStore
    from ..machine.machine import Machine
    from ..metadata.image import MetadataImage
    from ..records.control import KRaftVoters
    from ..wire.message import Message
    from .quorum_log import QuorumLog


class Images(Protocol):
    """What is committed here: `CommittedImages`."""

    @property
    def image(self) -> MetadataImage:
        """The newest."""
        ...

    @property
    def store(self) -> SnapshotStore | None:
        """The snapshots, None without a disk."""
        ...


class QuorumFeed:
    """Life: made with the log and its images, asked from then on. Owned by one trio run.

    Attributes:
        node_id: This controller.
        is_ending: Whether the node stops.
    """

    def __init__(
        self,
        log: QuorumLog,
        images: Images,
        *,
        config: BrokerConfig,
        machine: Machine,
        cluster_id: str,
        note_offset: Callable[[int, int], object],
    ) -> None:
        """Give out this log.

        Args:
            log: This controller's replica.
            images: What is committed of it.
            config: The node's: where controllers are found that the log does not name.
            machine: Its clock, its network.
            cluster_id: The cluster's, empty where only the log says it.
            note_offset: Told how far a registered broker follows: its id, and the last offset that it has.
        """
        roles = parse_roles(config)
        self.node_id = log.node_id
        self.is_ending = False
        self._log, self._images = log, images
        self._config, self._machine = config, machine
        self._cluster_id, self._note_offset = cluster_id, note_offset
        self._own = controller_endpoints(config, machine.network.host_name())
        name = self._own[0][0] if self._own else config.get_list("controller.listener.names")[0].upper()
        self._static = {voter: [(name, each.host, each.port)] for voter, each in roles.voters.items()}
        self._record: KRaftVoters | None = None
        self._named: dict[int, UUID] = {}
        self._waits: set[trio.CancelScope] = set()

    def __repr__(self) -> str:
        return f"QuorumFeed({self._log!r})"

    # ------------------------------------------------------------------------------------------------ what is known

    @property
    def cluster_id(self) -> str:
        """The cluster's id, empty while it is not known."""
        return self.image.cluster_id or self._cluster_id

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata that is here."""
        return self._images.image

    @property
    def leader_id(self) -> int:
        """Who leads, -1 when unknown."""
        return self._log.leader_id

    @property
    def leader_epoch(self) -> int:
        """The epoch that goes with it, 0 before the first."""
        return max(self._log.leader_epoch, 0)

    @property
    def is_leader(self) -> bool:
        """Whether this controller leads, and nothing is known that ends it."""
        return self._log.role is Role.LEADER and self._log.leads(self._log.leader_epoch)

    @property
    def start_offset(self) -> int:
        """The first offset that the log still has."""
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        """Where the committed records end, as far as it is known here."""
        return self._log.high_watermark

    @property
    def has_changing_voters(self) -> bool:
        """Whether the log names its voters."""
        return self._log.voters is not None

    @property
    def listeners(self) -> Mapping[int, Sequence[tuple[str, str, int]]]:
        """By id of each voter, where it listens."""
        voters = self._log.voters
        if voters is None:
            return self._static
        return {
            voter.voter_id: [(each.name, each.host, each.port) for each in voter.endpoints] for voter in voters.voters
        }

    def endpoint(self, node_id: int) -> tuple[str, int] | None:
        """Return where a controller is found: as the voters say, as the node itself or its registration says."""
        known = self.image.controllers.get(node_id)
        own = self._own if node_id == self.node_id else []
        registered = [(each.name, each.host, each.port) for each in known.listeners.values()] if known else []
        for found in (self.listeners.get(node_id, ()), own, registered, self._static.get(node_id, ())):
            for _name, host, port in found:
                return host, port
        return None

    def is_member(self, node_id: int) -> bool:
        """Return whether this is the id of a broker or a controller that the cluster knows."""
        image = self.image
        return node_id in image.brokers or node_id in image.controllers or node_id in self.listeners

    # --------------------------------------------------------------------------------------------------- the quorum

    async def ask(self, request: Message, broker_id: int = -1) -> Any:
        """Return what the election answers; see `MetadataFeedView.ask`.

        Raises:
            KafkaError: BROKER_NOT_AVAILABLE: the node stops.
        """
        answer = await self._log.ask(broker_id, request)
        if isinstance(answer, DescribeQuorumResponse):
            self._tell_wall_clock(answer)
        return answer

    def _tell_wall_clock(self, answer: DescribeQuorumResponse) -> None:
        """Turn times of the monotonic clock into those of the wall; -1 stays what it is."""
        clock = self._machine.clock
        ahead_ms = clock.now_ms() - clock.monotonic_ms()
        parts = (part for topic in answer.topics for part in topic.partitions)
        for state in (state for part in parts for state in (*part.current_voters, *part.observers)):
            if state.last_fetch_timestamp >= 0:
                state.last_fetch_timestamp += ahead_ms
            if state.last_caught_up_timestamp >= 0:
                state.last_caught_up_timestamp += ahead_ms

    async def kraft_versions(self, host: str, port: int) -> tuple[int, int] | None:
        """Ask a controller which levels of `kraft.version` it supports; None when it does not answer in its time."""
        with trio.move_on_after(self._config.get_int(QUORUM_REQUEST_TIMEOUT) / 1000):
            try:
                async with open_connection(
                    host,
                    port,
                    quorum_settings(self._config),
                    network=self._machine.network,
                    context=controller_tls(self._config),
                ) as connection:
                    asked = ApiVersionsRequest(client_software_name="odradek", client_software_version="1")
                    answer = await connection.request(asked, timeout_ms=self._config.get_int(QUORUM_REQUEST_TIMEOUT))
                    found = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
                    return found.get(KRAFT_VERSION, (0, 0))
            except ClientError:
                return None
        return None

    # ------------------------------------------------------------------------------------------------------ fetches

    def end_waits(self) -> None:
        """Let nobody wait any more: the node stops."""
        self.is_ending = True
        for scope in self._waits:
            scope.cancel()

    async def wait_changed(self) -> None:
        """See `MetadataFeedView.wait_changed`. Cancelled: nothing happens."""
        if self.is_ending:
            return
        with trio.CancelScope() as scope:
            self._waits.add(scope)
            try:
                await self._log.wait_changed()
            finally:
                self._waits.discard(scope)

    def readable_end(self, replica_id: int, directory_id: UUID) -> int:
        """Return up to where a replica may read; see `MetadataFeedView.readable_end`."""
        return self._log.end_offset if self.is_voter(replica_id, directory_id) else self._log.high_watermark

    def is_voter(self, replica_id: int, directory_id: UUID) -> bool:
        """Return whether a replica has a vote."""
        voters = self._log.voters
        if voters is None:
            return replica_id in self._static
        if voters is not self._record:
            self._record = voters
            self._named = {voter.voter_id: voter.voter_directory_id for voter in voters.voters}
        return replica_id in self._named and self._named[replica_id] in (directory_id, ZERO_ID)

    def needs_snapshot(self, last_fetched_epoch: int, fetch_offset: int) -> bool:
        """See `MetadataFeedView.needs_snapshot`."""
        return self._log.epochs.needs_snapshot(last_fetched_epoch, fetch_offset)

    def diverges(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """See `MetadataFeedView.diverges`."""
        return self._log.diverges(last_fetched_epoch, fetch_offset)

    def follower_fetch(self, replica_id: int, directory_id: UUID, fetch_offset: int, high_watermark: int) -> None:
        """Take note of a fetch, of a voter as of a broker that observes: its image has what it knows to be committed.

        See `MetadataFeedView.follower_fetch` for the arguments.
        """
        self._log.follower_fetch(replica_id, directory_id, fetch_offset)
        if replica_id in self.image.brokers:
            self._note_offset(replica_id, min(fetch_offset, high_watermark) - 1)

    def batches(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Return whole batches of `[offset, end_offset)`, at least one; none where that is empty.

        Raises:
            StorageError: The disk is failing.
        """
        return self._log.batches(offset, end_offset, max_bytes) if offset < end_offset else b""

    def newest_snapshot(self) -> tuple[int, int] | None:
        """Return where the newest snapshot ends, and the epoch of its last record; None when there is none.

        Raises:
            StorageError: The disk is failing.
        """
        store = self._images.store
        found = store.ids() if store is not None else []
        return next((each for each in found if each.end_offset > 0), None)

    def snapshot_part(self, end_offset: int, epoch: int, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """Return the size and a part of a snapshot, or of the founding; None when it is not there.

        Raises:
            StorageError: The disk is failing.
        """
        store = self._images.store
        return None if store is None else store.read_part(SnapshotId(end_offset, epoch), position, max_bytes)
