"""Controllers of a quorum, asked at their listeners by whoever there is: voters, observers, strangers, those gone."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio
import trio.lowlevel
import trio.testing

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.contracts.election import Role
from odradek.kernel.dispatch.controller.fetch import MetadataFetchHandler
from odradek.kernel.dispatch.controller.quorum import DescribeQuorumHandler, ElectionHandler, VotersHandler
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.image import BrokerEndpoint, ControllerImage, MetadataImage
from odradek.kernel.quorum.quorum_log import QuorumLog
from odradek.kernel.quorum.quorum_view import QuorumFeed
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_ID
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from odradek.kernel.wire.messages.api_52_vote import PartitionData, TopicData, VoteRequest
from odradek.kernel.wire.messages.api_55_describe_quorum import DescribeQuorumRequest
from odradek.kernel.wire.messages.api_55_describe_quorum import PartitionData as DescribedPartition
from odradek.kernel.wire.messages.api_55_describe_quorum import TopicData as DescribedTopic
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest
from odradek.kernel.wire.messages.api_80_add_raft_voter import Listener as AddListener
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from odradek.lab.simulator.cluster import CONTROLLER_PORT, Cluster
from odradek.lab.simulator.machine import SimulatedHost
from tests.cluster.images import image
from tests.cluster.simulated import in_cluster
from tests.plugins.election_quorum.nodes import directory_of
from tests.quorum.quorum_world import Quorum, append, in_quorum
from tests.waiting_aside import wait_here

CONTEXT: Any = SimpleNamespace(api_version=17, wait_aside=wait_here)
KNOWN_BY_IDS = {"controller.quorum.voters": "1@one:9093,2@two:9093,3@three:9093"}
NOT_SAID = (1 << 63) - 1
NEWEST: Any = SimpleNamespace(api_version=2, wait_aside=wait_here)


@attrs.define
class Images:
    """What is committed, as if somebody had replayed it."""

    image: MetadataImage = attrs.field(factory=lambda: MetadataImage(cluster_id="cluster"))
    store: None = None


def nobody(_broker_id: int, _offset: int) -> None:
    """Take no note of how far a broker is."""


def feed_of(
    quorum: Quorum,
    log: QuorumLog,
    images: Images | None = None,
    note_offset: Callable[[int, int], object] = nobody,
    **settings: str,
) -> QuorumFeed:
    """Return a controller's node as others see it."""
    chosen = {
        "node.id": str(log.node_id),
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        **(settings or KNOWN_BY_IDS),
    }
    config = BrokerConfig(builtin_registry(), {key: Setting(text, "test") for key, text in chosen.items()})
    machine = SimulatedHost(quorum.world, quorum.network, f"asker-{log.node_id}").start_process().machine
    return QuorumFeed(
        log,
        images or Images(),
        config=config,
        machine=machine,
        cluster_id="",
        note_offset=note_offset,
    )


def fetch(
    log: QuorumLog,
    replica_id: int,
    directory_id: uuid.UUID,
    offset: int,
    last_epoch: int = 1,
    high_watermark: int = NOT_SAID,
) -> FetchRequest:
    partition = FetchPartition(
        current_leader_epoch=log.leader_epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch if offset else 0,
        partition_max_bytes=1 << 20,
        replica_directory_id=directory_id,
        high_watermark=high_watermark,
    )
    topic = FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    replica = ReplicaState(replica_id=replica_id)
    return FetchRequest(replica_state=replica, max_wait_ms=100, max_bytes=1 << 20, topics=[topic])


async def fetched(feed: QuorumFeed, request: FetchRequest) -> Any:
    answer = await MetadataFetchHandler(feed=lambda: feed).handle_async(request, CONTEXT)
    return answer.responses[0].partitions[0]


async def voted(feed: QuorumFeed, epoch: int, **more: Any) -> Any:
    part = PartitionData(
        replica_epoch=epoch,
        replica_id=more.get("replica_id", 3),
        replica_directory_id=more.get("directory", directory_of(3)),
        voter_directory_id=more.get("voter_directory", ZERO_ID),
        last_offset_epoch=epoch,
        last_offset=1 << 40,
        pre_vote=more.get("pre_vote", True),
    )
    request = VoteRequest(
        voter_id=more.get("voter_id", -1), topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[part])]
    )
    answer = await ElectionHandler(52, feed=lambda: feed).handle_async(request, NEWEST)
    return answer.topics[0].partitions[0]


def test_who_is_no_voter_reads_what_is_committed_and_commits_nothing() -> None:
    """Of three, one is cut off and one does not fetch: the leader's record waits, whoever else asks for it."""

    async def main(quorum: Quorum) -> dict[str, tuple[bool, bool]]:
        leader = await quorum.settled()
        feed, committed = feed_of(quorum, leader), leader.high_watermark
        others = [each for node_id, each in quorum.controllers.items() if node_id != leader.node_id]
        for other in others:
            other.follows = False
        await trio.sleep(1)  # until what they had asked is answered
        run_at_once(leader.append_in_steps([b"waits"], 0))
        voter, end = others[0].node_id, leader.end_offset
        asked = {
            "an observer": (9, uuid.UUID(int=9)),
            "the voter's id on another disk": (voter, uuid.UUID(int=9)),
            "the voter": (voter, directory_of(voter)),
        }
        found = {}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leader.commit)
            for who, (replica_id, directory_id) in asked.items():
                part = await fetched(feed, fetch(leader, replica_id, directory_id, committed))
                has_it = b"waits" in bytes(part.records)
                await fetched(feed, fetch(leader, replica_id, directory_id, end))
                found[who] = (has_it, leader.high_watermark == end)
        return found

    assert in_quorum(main) == {
        "an observer": (False, False),
        "the voter's id on another disk": (False, False),
        "the voter": (True, True),
    }


def test_a_broker_that_votes_follows_as_far_as_it_knows_of_what_is_committed() -> None:
    async def main(quorum: Quorum) -> list[int]:
        leader, noted = await quorum.settled(), list[tuple[int, int]]()
        feed = feed_of(
            quorum, leader, Images(image({})), note_offset=lambda broker_id, offset: noted.append((broker_id, offset))
        )
        voter = next(each for each in quorum.controllers if each != leader.node_id)
        end = leader.end_offset
        for known in (end - 1, end, NOT_SAID):
            await fetched(feed, fetch(leader, voter, directory_of(voter), end, high_watermark=known))
        assert {broker_id for broker_id, _ in noted} == {voter}
        return [end - offset for _, offset in noted]

    assert in_quorum(main) == [2, 1, 1]


def test_voters_that_are_meant_for_another_or_known_to_nobody_get_no_vote() -> None:
    async def main(quorum: Quorum) -> tuple[list[tuple[int, bool]], bool]:
        leader = await quorum.settled()
        feed, epoch = feed_of(quorum, leader), leader.leader_epoch
        parts = [
            await voted(feed, epoch, voter_id=77),
            await voted(feed, epoch, voter_id=leader.node_id, voter_directory=uuid.UUID(int=9)),
            await voted(feed, epoch, replica_id=-1),
            await voted(feed, epoch, replica_id=88, directory=uuid.UUID(int=88)),
        ]
        await append(leader, b"goes on")
        return [(part.error_code, part.vote_granted) for part in parts], leader.leads(epoch)

    found, leads = in_quorum(main)

    assert found == [
        (ErrorCode.INVALID_VOTER_KEY, False),
        (ErrorCode.INVALID_VOTER_KEY, False),
        (ErrorCode.INVALID_REQUEST, False),
        (ErrorCode.NONE, False),
    ]
    assert leads


def test_a_removed_voter_that_keeps_asking_is_an_observer_and_the_others_go_on() -> None:
    async def main(quorum: Quorum) -> tuple[int, bool, list[bool], bool, int]:
        leader = await quorum.settled()
        removed = next(node_id for node_id in quorum.controllers if node_id != leader.node_id)
        feed, epoch = feed_of(quorum, leader), leader.leader_epoch
        request = RemoveRaftVoterRequest(
            cluster_id="cluster", voter_id=removed, voter_directory_id=directory_of(removed)
        )
        answer = await VotersHandler(81, feed=lambda: feed, listener="CONTROLLER").handle_async(request, CONTEXT)
        quorum.controllers[removed].crash()
        key = {"replica_id": removed, "directory": directory_of(removed)}
        votes = [(await voted(feed, epoch, **key)).vote_granted for _ in range(3)]
        committed = leader.high_watermark
        part = await fetched(feed, fetch(leader, removed, directory_of(removed), committed, epoch))
        await append(leader, b"goes on")
        return answer.error_code, removed in feed.listeners, votes, leader.leads(epoch), part.error_code

    assert in_quorum(main) == (ErrorCode.NONE, False, [False] * 3, True, ErrorCode.NONE)


def test_the_quorum_is_described_by_its_leader_in_times_of_the_wall_clock() -> None:
    async def main(quorum: Quorum) -> tuple[list[int], bool, list[int], int]:
        leader = await quorum.settled()
        feed = feed_of(quorum, leader)
        asked = DescribedTopic(topic_name=METADATA_TOPIC, partitions=[DescribedPartition()])
        request = DescribeQuorumRequest(topics=[asked])
        answer = await DescribeQuorumHandler(feed=lambda: feed).handle_async(request, NEWEST)
        part = answer.topics[0].partitions[0]
        now_ms = feed._machine.clock.now_ms()
        are_recent = all(0 <= now_ms - state.last_fetch_timestamp < 5000 for state in part.current_voters)
        follower = next(log for log in quorum.logs.values() if log.role is Role.FOLLOWER)
        other = feed_of(quorum, follower)
        refused = await DescribeQuorumHandler(feed=lambda: other).handle_async(request, NEWEST)
        voters = [state.replica_id for state in part.current_voters]
        return voters, are_recent, [node.node_id for node in answer.nodes], refused.topics[0].partitions[0].error_code

    voters, are_recent, nodes, refused = in_quorum(main)

    assert (voters, nodes) == ([1, 2, 3], [1, 2, 3])
    assert are_recent
    assert refused == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_controller_is_found_where_the_voters_say_else_the_node_else_its_registration() -> None:
    async def main(quorum: Quorum) -> list[tuple[str, int] | None]:
        log = await quorum.leader()
        listener = {"CONTROLLER": BrokerEndpoint("CONTROLLER", "registered", 7)}
        known = {4: ControllerImage(4, uuid.UUID(int=4), listener, {})}
        feed = feed_of(quorum, log, Images(MetadataImage(controllers=known)))
        return [feed.endpoint(2), feed.endpoint(4), feed.endpoint(5)]

    assert in_quorum(main) == [("two", 9093), ("registered", 7), None]


@pytest.mark.parametrize("way", ["the node stops", "something changes"])
def test_nobody_waits_when_there_is_news_or_none_to_come(way: str) -> None:
    async def main(quorum: Quorum) -> bool:
        leader = await quorum.settled()
        feed = feed_of(quorum, leader)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(feed.wait_changed)
            await trio.lowlevel.checkpoint()
            if way == "the node stops":
                feed.end_waits()
            else:
                await append(leader, b"news")
        return feed.is_ending

    assert in_quorum(main) == (way == "the node stops")


def test_few_new_voters_are_asked_at_a_time() -> None:
    async def silent(host: str, port: int) -> None:
        await trio.sleep(2)

    feed: Any = SimpleNamespace(
        cluster_id="cluster",
        leader_epoch=5,
        leader_id=1,
        is_leader=True,
        has_changing_voters=True,
        listeners={},
        kraft_versions=silent,
    )

    async def main() -> list[float]:
        handler = VotersHandler(80, feed=lambda: feed, listener="CONTROLLER")
        answered_s: list[float] = []

        async def ask(voter_id: int) -> None:
            listener = AddListener(name="CONTROLLER", host="swallows", port=9)
            request = AddRaftVoterRequest(
                cluster_id="cluster", voter_id=voter_id, voter_directory_id=uuid.UUID(int=1), listeners=[listener]
            )
            answer: Any = await handler.handle_async(request, CONTEXT)
            assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
            answered_s.append(trio.current_time() - began_s)

        began_s = trio.current_time()
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for voter_id in range(20):
                    nursery.start_soon(ask, voter_id)
        return answered_s

    answered_s = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert sum(each < 0.1 for each in answered_s) == 18
    assert sum(each > 3.9 for each in answered_s) == 2, "and there is room again"


def test_a_new_voter_is_asked_which_kraft_versions_it_supports() -> None:
    async def main(cluster: Cluster) -> list[tuple[int, int] | None]:
        first = cluster.brokers[1].broker
        assert first is not None
        log: Any = SimpleNamespace(node_id=9, voters=None)
        feed = QuorumFeed(
            log,
            Images(),
            config=first.options.config,
            machine=cluster.client_machine("asker"),
            cluster_id="",
            note_offset=nobody,
        )
        return [await feed.kraft_versions("broker-1", port) for port in (CONTROLLER_PORT, CONTROLLER_PORT + 1)]

    assert in_cluster(main) == [(0, 1), None]
