"""The election's messages on their way to other voters: over the network, on virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio

from odradek.kernel import wire
from odradek.kernel.cluster.controller_nodes import ControllerNodes
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.config.roles import ControllerAddress
from odradek.kernel.contracts.election import ElectionInput, PeerMessage, PeerRefused
from odradek.kernel.quorum.voter_channels import OwnNode, VoterChannels
from odradek.kernel.types import METADATA_TOPIC
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_52_vote import (
    NodeEndpoint,
    ResponsePartitionData,
    ResponseTopicData,
    VoteRequest,
    VoteResponse,
)
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from odradek.lab.simulator.machine import SimulatedHost
from odradek.lab.simulator.network import Network
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World
from odradek.testing.faults import PowerLoss

from ..client.offered_versions import every_api
from .test_voter_messages import CLUSTER_ID, vote

T = TypeVar("T")
PORT = 9093


def voted(epoch: int, leader_id: int = -1) -> VoteResponse:
    part = ResponsePartitionData(leader_id=leader_id, leader_epoch=epoch, vote_granted=leader_id < 0)
    endpoints = [NodeEndpoint(node_id=leader_id, host="controller-9", port=PORT)] if leader_id >= 0 else []
    return VoteResponse(
        topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[part])], node_endpoints=endpoints
    )


class Voter:
    """Another voter, which answers by a script when it is let.

    Attributes:
        asked: What came.
        answers: What it answers, by class of the request.
        may_answer: It waits for this before each answer.
        vote_version: The newest version of Vote that it knows.
    """

    def __init__(self, host: SimulatedHost) -> None:
        self.host = host
        self.asked: list[Any] = []
        self.answers: dict[type[Message], Message] = {
            VoteRequest: voted(7),
            EndQuorumEpochRequest: EndQuorumEpochResponse(),
        }
        self.may_answer = trio.Event()
        self.may_answer.set()
        self.vote_version = 2

    async def live(self, nursery: trio.Nursery) -> None:
        process = self.host.start_process()
        listeners = await process.machine.network.listen_streams(self.host.name, PORT)
        nursery.start_soon(process.run, lambda: listeners.serve(self._serve))

    async def _serve(self, stream: trio.abc.Stream) -> None:
        frames = wire.FrameBuffer(2**20)
        try:
            while data := await stream.receive_some(65536):
                frames.receive(data)
                while (frame := frames.next_frame()) is not None:
                    await stream.send_all(await self._answered(bytes(frame)))
        except trio.BrokenResourceError:
            pass

    async def _answered(self, frame: bytes) -> bytes:
        header = wire.decode_request_header(frame)
        answer: Message = every_api({52: self.vote_version})
        if header.api_key != 18:
            kind = wire.APIS[header.api_key].request
            request: Any = wire.decode(kind, memoryview(frame), header.api_version, position=header.size_bytes)
            self.asked.append(request)
            await self.may_answer.wait()
            answer = self.answers[kind]
        return wire.encode_response(answer, header.api_version, header.correlation_id).join()


class Two:
    """This controller, and another voter."""

    def __init__(self, world: World) -> None:
        self.world = world
        network = Network(world)
        self.other = Voter(SimulatedHost(world, network, "controller-2"))
        machine = SimulatedHost(world, network, "controller-1").start_process().machine
        self.nodes = ControllerNodes((), {2: ControllerAddress("controller-2", PORT)})
        self.inputs: list[ElectionInput] = []
        self._has_heard = trio.Event()
        static = {"node.id": "1", "controller.listener.names": "CONTROLLER"}
        config = BrokerConfig(Registry.of(), static={key: Setting(text, "test") for key, text in static.items()})
        self.channels = VoterChannels(
            config,
            machine,
            nodes=self.nodes,
            own=OwnNode(cluster_id=CLUSTER_ID, endpoints=[("CONTROLLER", "controller-1", PORT)]),
            step=self._hear,
        )

    def send(self, *messages: Message) -> None:
        self.channels.send([PeerMessage(2, message) for message in messages])

    def _hear(self, event: ElectionInput) -> None:
        self.inputs.append(event)
        self._has_heard.set()

    async def heard(self, count: int) -> int:
        """Wait until the election has heard so much, in all; return how long that took, in milliseconds."""
        began_ns = self.world.now_ns
        while len(self.inputs) < count:
            self._has_heard = trio.Event()
            await self._has_heard.wait()
        return (self.world.now_ns - began_ns) // 1_000_000


def between_two(main: Callable[[Two], Awaitable[T]], *, lives: bool = True) -> T:
    """Run a task in a world with another voter, which lives or not."""
    world = World(Seeds(1))

    async def root() -> T:
        async with _running(Two(world), lives=lives) as two:
            return await main(two)

    return run_in_world(world, root, limit_ns=600 * SECOND)


@asynccontextmanager
async def _running(two: Two, *, lives: bool) -> AsyncIterator[Two]:
    async with trio.open_nursery() as nursery:
        if lives:
            await two.other.live(nursery)
        await nursery.start(two.channels.run)
        yield two
        nursery.cancel_scope.cancel()


def test_a_message_goes_to_its_voter_and_the_answer_comes_back() -> None:
    async def main(two: Two) -> tuple[list[Any], list[ElectionInput]]:
        two.send(vote(pre_vote=True))
        await two.heard(1)
        return two.other.asked, two.inputs

    asked, inputs = between_two(main)

    assert [(each.cluster_id, each.voter_id, each.topics[0].partitions[0].pre_vote) for each in asked] == [
        (CLUSTER_ID, 2, True)
    ]
    assert inputs == [PeerMessage(2, voted(7))]


def test_a_voter_that_is_older_is_not_asked_for_pre_votes() -> None:
    async def main(two: Two) -> tuple[list[bool], list[Any]]:
        two.other.vote_version = 1
        two.send(vote(pre_vote=True))
        await two.heard(1)
        two.send(vote(pre_vote=False))
        await two.heard(2)
        return [each.topics[0].partitions[0].pre_vote for each in two.other.asked], two.inputs

    asked, inputs = between_two(main)

    assert asked == [False]
    assert [each.message.topics[0].partitions[0].vote_granted for each in inputs] == [True, True]


def test_of_what_waits_the_newest_of_each_kind_is_sent() -> None:
    async def main(two: Two) -> list[tuple[str, int]]:
        two.other.may_answer = trio.Event()
        two.send(vote(pre_vote=True, epoch=6))
        await trio.sleep(0.1)
        two.send(EndQuorumEpochRequest(), vote(pre_vote=False, epoch=7))
        two.send(vote(pre_vote=False, epoch=8))
        two.other.may_answer.set()
        await two.heard(3)
        return [
            (type(each).__name__, each.topics[0].partitions[0].replica_epoch if each.topics else -1)
            for each in two.other.asked
        ]

    assert between_two(main) == [("VoteRequest", 6), ("EndQuorumEpochRequest", -1), ("VoteRequest", 8)]


def test_a_voter_that_nobody_is_in_place_of_is_told_at_once_and_once_a_message() -> None:
    async def main(two: Two) -> tuple[int, list[ElectionInput], list[ElectionInput]]:
        two.send(vote(pre_vote=True))
        elapsed_ms = await two.heard(1)
        await trio.sleep(5)
        first = list(two.inputs)
        two.send(vote(pre_vote=True))
        await two.heard(2)
        return elapsed_ms, first, two.inputs[len(first) :]

    elapsed_ms, first, second = between_two(main, lives=False)

    assert elapsed_ms <= 10
    assert first == [PeerRefused(2)]
    assert second == [PeerRefused(2)]


def test_a_voter_that_ended_under_a_message_is_told_with_the_next_one() -> None:
    async def main(two: Two) -> list[ElectionInput]:
        two.other.may_answer = trio.Event()
        two.send(vote(pre_vote=True))
        await trio.sleep(0.1)
        two.other.host.kill_process()
        await trio.sleep(1)
        assert not two.inputs, "a connection that ends says nothing yet"
        two.send(vote(pre_vote=True))
        await two.heard(1)
        return two.inputs

    assert between_two(main) == [PeerRefused(2)]


def test_of_a_voter_that_is_silent_nothing_is_said() -> None:
    async def main(two: Two) -> list[ElectionInput]:
        two.send(vote(pre_vote=True))
        await two.heard(1)
        two.other.host.lose_power(PowerLoss.LOST)
        two.send(vote(pre_vote=True))
        await trio.sleep(10)
        return two.inputs[1:]

    assert between_two(main) == []


def test_what_waits_for_a_silent_voter_is_not_sent_when_that_is_back_after_long() -> None:
    async def main(two: Two) -> list[int]:
        two.other.host.lose_power(PowerLoss.LOST)
        two.send(vote(pre_vote=True, epoch=6))
        await trio.sleep(10)
        async with trio.open_nursery() as nursery:
            two.other.host.power_on()
            await two.other.live(nursery)
            await trio.sleep(1)
            two.send(vote(pre_vote=True, epoch=7))
            await trio.sleep(30)
            nursery.cancel_scope.cancel()
        return [each.topics[0].partitions[0].replica_epoch for each in two.other.asked]

    assert between_two(main) == [7]


def test_who_leads_and_where_is_learned_from_answers() -> None:
    async def main(two: Two) -> tuple[int, int, str]:
        two.other.answers[VoteRequest] = voted(8, leader_id=9)
        two.send(vote(pre_vote=True))
        await two.heard(1)
        return two.nodes.leader_id, two.nodes.leader_epoch, str(two.nodes.leader_address())

    assert between_two(main) == (9, 8, "controller-9:9093")


def test_who_is_no_voter_any_more_gets_nothing() -> None:
    async def main(two: Two) -> tuple[int, int]:
        two.send(vote(pre_vote=True))
        await two.heard(1)
        two.channels.retain([1, 2])
        two.send(vote(pre_vote=True))
        await two.heard(2)
        before = len(two.other.asked)
        two.other.may_answer = trio.Event()
        two.send(vote(pre_vote=True))
        await trio.sleep(0.1)
        two.channels.retain([1])
        await trio.sleep(10)
        return before, len(two.inputs)

    assert between_two(main) == (2, 2)
