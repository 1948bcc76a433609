"""What a controller asks of the leader about itself, and when it leaves off."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import Role
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.quorum.founding import FoundingVoter
from odradek.kernel.quorum.own_voter import OwnVoter, VoterUpkeep
from odradek.kernel.quorum.voters_record import voters_record
from odradek.kernel.records.control import KRaftVoters
from odradek.kernel.types import id_text
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from odradek.kernel.wire.messages.api_82_update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

OLD, NEW = UUID(int=3), UUID(int=33)
OWN = OwnVoter(3, NEW, [("CONTROLLER", "host3", 9093)], joins=True, is_placed=True)
ANSWERS: dict[type[Message], type[Any]] = {
    AddRaftVoterRequest: AddRaftVoterResponse,
    RemoveRaftVoterRequest: RemoveRaftVoterResponse,
    UpdateRaftVoterRequest: UpdateRaftVoterResponse,
}


def voters(*directories: UUID, host: str = "host3") -> KRaftVoters:
    """Voters 1 and 2, and 3 in these directories."""
    others = [FoundingVoter(each, UUID(int=each), f"host{each}", 9093) for each in (1, 2)]
    return voters_record([*others, *(FoundingVoter(3, each, host, 9093) for each in directories)], "CONTROLLER")


@attrs.define(eq=False)
class Replica:
    """A replica, as a test has it."""

    voters: KRaftVoters | None
    role: Role = Role.FOLLOWER
    leader_id: int = 1
    leader_epoch: int = 5
    changed: trio.Event = attrs.field(factory=trio.Event)

    async def wait_changed(self) -> None:
        """Wait for `change`."""
        await self.changed.wait()

    def change(self, **values: Any) -> None:
        """Let something be otherwise."""
        for name, value in values.items():
            setattr(self, name, value)
        self.changed.set()
        self.changed = trio.Event()


@attrs.define
class Leader:
    """A channel to one that carries out what it is asked, or says what it is to say instead."""

    replica: Replica
    asked: list[Message] = attrs.field(factory=list)
    refusals: list[ErrorCode | Exception] = attrs.field(factory=list)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be connected."""
        task_status.started()

    async def request(self, message: Message, *, timeout_ms: int) -> Any:
        """Answer."""
        request = message
        assert timeout_ms > 0
        self.asked.append(request)
        await trio.lowlevel.checkpoint()
        if self.refusals:
            refusal = self.refusals.pop(0)
            if isinstance(refusal, Exception):
                raise refusal
            return ANSWERS[type(request)](error_code=refusal)
        self.replica.change(voters=voters() if isinstance(request, RemoveRaftVoterRequest) else voters(NEW))
        return ANSWERS[type(request)]()


async def asked_of(replica: Replica, own: OwnVoter, *refusals: ErrorCode | Exception) -> list[str]:
    """What is asked until nothing is to be asked any more."""
    leader = Leader(replica, refusals=list(refusals))
    upkeep = VoterUpkeep(own, replica, leader, cluster_id="cluster")
    async with trio.open_nursery() as nursery:
        await nursery.start(upkeep.run)
        await trio.sleep(30)
        nursery.cancel_scope.cancel()
    assert all(request.cluster_id == "cluster" for request in leader.asked)  # type: ignore[attr-defined]
    return [type(request).__name__.removesuffix("RaftVoterRequest") for request in leader.asked]


@pytest.mark.parametrize(
    ("known", "own", "asks"),
    [
        (voters(NEW), OWN, []),
        (voters(), OWN, ["Add"]),
        (voters(OLD), OWN, ["Remove", "Add"]),
        (voters(), attrs.evolve(OWN, joins=False), []),
        (voters(OLD), attrs.evolve(OWN, joins=False), []),
        (voters(NEW, host="elsewhere"), OWN, ["Update"]),
        (voters(NEW, host="elsewhere"), attrs.evolve(OWN, is_placed=False), []),
        (None, OWN, []),
    ],
)
def test_it_asks_for_what_the_voters_do_not_have(known: KRaftVoters | None, own: OwnVoter, asks: list[str]) -> None:
    async def main() -> list[str]:
        return await asked_of(Replica(known), own)

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == asks


def test_who_leads_or_knows_no_leader_asks_nothing() -> None:
    async def main() -> list[str]:
        led = await asked_of(Replica(voters(NEW, host="elsewhere"), role=Role.LEADER, leader_id=3), OWN)
        return led + await asked_of(Replica(voters(), leader_id=-1), OWN)

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == []


def test_a_change_that_is_done_is_told_with_the_directory_as_it_is_written_everywhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> list[str]:
        return await asked_of(Replica(voters()), OWN)

    with caplog.at_level("INFO"):
        assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == ["Add"]

    assert f"AddRaftVoter of this controller, 3 in directory {id_text(NEW)}, is done" in caplog.messages


def test_what_is_not_done_is_asked_again_and_a_refusal_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    refusals: tuple[ErrorCode | Exception, ...] = (
        ConnectionFailedError("nobody"),
        KafkaError(ErrorCode.NOT_CONTROLLER, "elsewhere"),
        *[ErrorCode.UNSUPPORTED_VERSION] * 3,
        ErrorCode.REQUEST_TIMED_OUT,
    )

    async def main() -> list[str]:
        return await asked_of(Replica(voters()), OWN, *refusals)

    asks = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert asks == ["Add"] * 7
    assert caplog.text.count("AddRaftVoter of this controller is refused: UNSUPPORTED_VERSION") == 1


def test_it_is_found_where_the_configuration_says() -> None:
    def own(settings: dict[str, str]) -> OwnVoter:
        chosen = {
            "node.id": "3",
            "process.roles": "controller",
            "listeners": "CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            **settings,
        }
        static = {key: Setting(value, "a test") for key, value in chosen.items()}
        return OwnVoter.configured(BrokerConfig(Registry.of(), static=static), NEW, "machine")

    by_voters = own({"controller.quorum.voters": "1@a:1,3@b:2", "controller.quorum.auto.join.enable": "true"})
    by_servers = own({"controller.quorum.bootstrap.servers": "a:1,b:2"})

    assert by_voters == OwnVoter(3, NEW, [("CONTROLLER", "b", 2)], joins=True, is_placed=True)
    assert by_servers == OwnVoter(3, NEW, [("CONTROLLER", "machine", 9093)], joins=False, is_placed=False)
