"""Shell: what a controller asks of the leader about itself: to be a voter, and that its address is known.

| the newest voters have | and it | it asks for |
| --- | --- | --- |
| not its id | joins (`controller.quorum.auto.join.enable`) | AddRaftVoter |
| its id with another directory: its disk was replaced | joins | RemoveRaftVoter of that one, then AddRaftVoter |
| it, elsewhere than it is configured to be | follows | UpdateRaftVoter |

One change at a time, and each is committed by the quorum as anybody's would be. Who leads asks nothing: its address is
put right once another one leads.

*Source:* KIP-853, KIP-1186; `pollFollowerAsVoter`, `pollFollowerAsObserver` of Kafka 4.3's KafkaRaftClient.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..classes import frozen
from ..config.listeners import controller_endpoints
from ..config.roles import parse_roles
from ..contracts.election import Role
from ..errors import ErrorCode
from ..types import id_text
from ..wire.messages import api_80_add_raft_voter as add
from ..wire.messages import api_82_update_raft_voter as update
from ..wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from .registration import said_of
from .voters_record import KRAFT_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..records.control import KRaftVoters
    from ..wire.message import Message
    from .registration import Channel
    from .replica_views import VotersView

log = logging.getLogger(__name__)

AUTO_JOIN: Final = "controller.quorum.auto.join.enable"
RETRY_S: Final = 1.0
"""After how long it asks again; the leader answers an addition when it is committed, and the log tells it, too."""
CHANGE_MS: Final = 10_000
"""How long the leader may take for a change: who is added has to have caught up."""
ANSWER_MS: Final = 2 * CHANGE_MS
_FOR_A_WHILE: Final = frozenset({ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER})
"""What is no refusal: the next look at the voters says whether to ask again."""


@frozen
class OwnVoter:
    """What a controller is as a voter.

    Attributes:
        node_id: Its id.
        directory_id: Of its metadata log.
        endpoints: Name, host and port under which others find it.
        joins: Whether it asks to become a voter.
        is_placed: Whether the configuration says where it is found, and not this machine's name alone.
    """

    node_id: int
    directory_id: UUID
    endpoints: Sequence[tuple[str, str, int]]
    joins: bool = False
    is_placed: bool = False

    @classmethod
    def configured(cls, config: BrokerConfig, directory_id: UUID, machine: str = "") -> OwnVoter:
        """Return what a controller is.

        Args:
            config: The node's.
            directory_id: Of its metadata log.
            machine: Its machine's name.
        """
        endpoints = controller_endpoints(config, machine)
        advertised = {text.partition(":")[0].upper() for text in config.get_list("advertised.listeners")}
        is_placed = config.node_id in parse_roles(config).voters or any(name in advertised for name, _, _ in endpoints)
        return cls(config.node_id, directory_id, endpoints, config.get_bool(AUTO_JOIN), is_placed)

    def wanted(self, voters: KRaftVoters | None, *, leads: bool, leader_epoch: int, cluster_id: str) -> Message | None:
        """Return what it asks of the leader, None where all is as it should be, or voters are fixed.

        Args:
            voters: The newest; None where the log names none (kraft.version 0).
            leads: Whether it leads itself.
            leader_epoch: The leader's.
            cluster_id: The cluster's.
        """
        if voters is None or leads:
            return None
        named = {voter.voter_directory_id: voter for voter in voters.voters if voter.voter_id == self.node_id}
        known = named.get(self.directory_id)
        if known is not None:
            is_found = [(each.name, each.host, each.port) for each in known.endpoints] == list(self.endpoints)
            return None if is_found or not self.is_placed else self._update(leader_epoch, cluster_id)
        if not self.joins:
            return None
        for other in named:
            return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=self.node_id, voter_directory_id=other)
        return add.AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=CHANGE_MS,
            voter_id=self.node_id,
            voter_directory_id=self.directory_id,
            listeners=[add.Listener(name=name, host=host, port=port) for name, host, port in self.endpoints],
        )

    def _update(self, leader_epoch: int, cluster_id: str) -> Message:
        lowest, highest = KRAFT_VERSIONS
        return update.UpdateRaftVoterRequest(
            cluster_id=cluster_id,
            current_leader_epoch=leader_epoch,
            voter_id=self.node_id,
            voter_directory_id=self.directory_id,
            listeners=[update.Listener(name=name, host=host, port=port) for name, host, port in self.endpoints],
            kraft_version_feature=update.KRaftVersionFeature(
                min_supported_version=lowest, max_supported_version=highest
            ),
        )


class VoterUpkeep:
    """Life: made with the node, `run` as a task. Owned by one trio run."""

    def __init__(
        self,
        own: OwnVoter,
        replica: VotersView,
        channel: Channel,
        *,
        cluster_id: str,
    ) -> None:
        """Make it.

        Args:
            own: What this controller is.
            replica: Says who votes and leads.
            channel: To the active controller, whoever that is; nobody else asks by it.
            cluster_id: The cluster's.
        """
        self._own, self._replica, self._channel, self._cluster_id = own, replica, channel, cluster_id
        self._told = ErrorCode.NONE

    def __repr__(self) -> str:
        return f"VoterUpkeep({self._own.node_id})"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Ask whenever something is to be asked, until cancelled: what was asked then may be done."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._channel.run)
            task_status.started()
            await self._keep_up()

    async def _keep_up(self) -> None:
        while True:
            request = self._wanted()
            if request is None or self._replica.leader_id < 0:
                await self._replica.wait_changed()
                continue
            await self._request(request)
            with trio.move_on_after(RETRY_S):
                while self._wanted() == request:
                    await self._replica.wait_changed()

    def _wanted(self) -> Message | None:
        replica = self._replica
        return self._own.wanted(
            replica.voters,
            leads=replica.role is Role.LEADER,
            leader_epoch=replica.leader_epoch,
            cluster_id=self._cluster_id,
        )

    async def _request(self, request: Message) -> None:
        said = await said_of(self._channel, request, timeout_ms=ANSWER_MS)
        if said is None:
            return
        code, detail = said
        what = type(request).__name__.removesuffix("Request")
        if code is ErrorCode.NONE:
            directory = id_text(self._own.directory_id)
            log.info("%s of this controller, %d in directory %s, is done", what, self._own.node_id, directory)
        elif code not in _FOR_A_WHILE and code is not self._told:
            log.warning("%s of this controller is refused: %s: %s", what, code.name, detail or code.text)
        self._told = code
