"""What a controller's log says of controllers comes to all the channels of its node."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

from odradek.kernel.cluster.controller_nodes import ControllerNodes
from odradek.kernel.config.roles import ControllerAddress
from odradek.kernel.contracts.election import Role
from odradek.kernel.quorum.known_controllers import KnownControllers
from odradek.kernel.records.control import KRaftVersionRange, KRaftVoter, KRaftVoters, VoterEndpoint


@attrs.define(eq=False)
class Log:
    """What a log says."""

    role: Role = Role.FOLLOWER
    leader_id: int = -1
    leader_epoch: int = -1
    voters: KRaftVoters | None = None
    changed: trio.Event = attrs.field(factory=trio.Event)

    async def wait_changed(self) -> None:
        await self.changed.wait()

    async def say(self, leader_id: int, leader_epoch: int, voters: KRaftVoters | None) -> None:
        self.leader_id, self.leader_epoch, self.voters = leader_id, leader_epoch, voters
        self.changed.set()
        self.changed = trio.Event()
        await wait_all_tasks_blocked()


def voters(*node_ids: int) -> KRaftVoters:
    return KRaftVoters(
        voters=[
            KRaftVoter(
                voter_id=each,
                voter_directory_id=UUID(int=each),
                endpoints=[VoterEndpoint(name="CONTROLLER", host=f"controller-{each}", port=9093)],
                k_raft_version_feature=KRaftVersionRange(min_supported_version=0, max_supported_version=1),
            )
            for each in node_ids
        ]
    )


def test_it_tells_who_votes_and_who_leads_as_the_log_has_it() -> None:
    nodes, retained = ControllerNodes([ControllerAddress("somewhere", 1)]), []

    def retain(voter_ids: Collection[int]) -> None:
        retained.append(list(voter_ids))

    async def main() -> list[tuple[int, int, str]]:
        log = Log(voters=voters(1, 2))
        known = KnownControllers(log, nodes, listener_name="CONTROLLER", retain=retain)
        told = []
        async with trio.open_nursery() as nursery:
            await nursery.start(known.run)
            told.append((nodes.leader_id, nodes.leader_epoch, str(nodes)))
            await log.say(2, 3, log.voters)
            told.append((nodes.leader_id, nodes.leader_epoch, str(nodes)))
            await log.say(2, 3, voters(2, 3))
            told.append((nodes.leader_id, nodes.leader_epoch, str(nodes)))
            nursery.cancel_scope.cancel()
        return told

    assert trio.run(main) == [
        (-1, -1, "controller-1:9093, controller-2:9093, somewhere:1"),
        (2, 3, "controller-1:9093, controller-2:9093, somewhere:1"),
        (2, 3, "controller-2:9093, controller-3:9093, somewhere:1"),
    ]
    assert retained == [[1, 2], [2, 3]]


def test_where_voters_are_configured_the_log_says_who_leads_alone() -> None:
    nodes = ControllerNodes((), {1: ControllerAddress("controller-1", 9093)})

    async def main() -> None:
        known = KnownControllers(Log(leader_id=1, leader_epoch=4), nodes, listener_name="CONTROLLER", retain=set)
        async with trio.open_nursery() as nursery:
            await nursery.start(known.run)
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert str(nodes.leader_address()) == "controller-1:9093"
