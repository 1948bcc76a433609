"""What operators do with partitions whose replicas vote, on three brokers and virtual time: ask, hand over, stop."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from odradek.kernel.config.broker import BrokerConfig
from odradek.kernel.config.registry import Registry
from odradek.kernel.dispatch.handlers.api_43_elect_leaders import ElectLeadersHandler
from odradek.kernel.dispatch.topic_quorums import TopicQuorums
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.published_image import PublishedImage
from odradek.kernel.replication.hand_overs import ANOTHER, BEHIND, HandOvers, Outcome
from odradek.kernel.replication.voted_balance import VotedBalance
from odradek.kernel.replication.voted_topics import VotedTopics
from odradek.kernel.types import METADATA_TOPIC
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_43_elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.kernel.wire.messages.api_55_describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from tests.controller.controller_requests import reassign_partitions
from tests.waiting_aside import wait_here

from .small_cluster import Cluster, Node, running
from .test_voting_replicas import client_values, committed, followers, led, run

PLACE = ("t", 0)
CONTEXT: Any = SimpleNamespace(wait_aside=wait_here)


def topics_of(cluster: Cluster) -> VotedTopics:
    return VotedTopics(cast("Any", cluster.driven), cluster.driven.rules.elections)


def hand_overs(node: Node) -> HandOvers:
    """Return what a node hands leaders over with."""
    image, config = node.cluster.driven.image, BrokerConfig(Registry.of())
    published = PublishedImage(config)
    published.publish(image, 0)
    decide = node.cluster.decide

    def told(request: Message) -> Any:
        answer = decide(request)
        published.publish(node.cluster.driven.image, 0)
        return answer

    node.cluster.decide = told  # type: ignore[method-assign]
    return HandOvers(node.broker_id, topics_of(node.cluster), node.voting, node, published)


def prefer(cluster: Cluster, broker_id: int) -> None:
    """Have one of the replicas be the preferred one."""
    others = [each for each in (1, 2, 3) if each != broker_id]
    (told,) = cluster.decide(reassign_partitions(("t", 0, [broker_id, *others]))).responses
    assert [each.error_code for each in told.partitions] == [0]


async def elected(node: Node, timeout_ms: int = 5000) -> Outcome:
    """Ask a node for an election of the preferred leader."""
    outcomes = await hand_overs(node).elect([PLACE], timeout_ms)
    return outcomes[PLACE]


async def described(node: Node, topic: str = "t", partition: int = 0) -> ResponsePartitionData:
    """Return what a node tells of a partition's quorum."""
    quorums = TopicQuorums(topics=topics_of(node.cluster), replicas=node.replicas, voters=node.voting, clock=node.clock)
    wanted = TopicData(topic_name=topic, partitions=[PartitionData(partition_index=partition)])
    answer = await quorums.describe(DescribeQuorumRequest(topics=[wanted]))
    ((found,),) = (each.partitions for each in answer.topics)
    assert (answer.topics[0].topic_name, found.partition_index) == (topic, partition)
    return found


# -------------------------------------------------------------------------------------------------- preferred leaders


@pytest.mark.parametrize("asked", ["leader", "preferred", "other"])
def test_the_preferred_replica_leads_when_it_is_asked_for_whoever_is_asked(tmp_path: Path, asked: str) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1", b"v2")
            preferred, other = followers(cluster)
            await trio.sleep(1)
            prefer(cluster, preferred.broker_id)
            epoch = cluster.state.leader_epoch
            outcome = await elected({"leader": leader, "preferred": preferred, "other": other}[asked])

            assert outcome == (ErrorCode.NONE, None)
            assert cluster.state.leader == preferred.broker_id
            assert cluster.state.leader_epoch > epoch
            await committed(cluster, await led(cluster, 1, 2, 3), b"v3")
            assert client_values(preferred) == [b"v1", b"v2", b"v3"]

    run(body)


def test_nothing_that_was_acknowledged_is_lost_as_a_leader_under_load_hands_over(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            preferred = followers(cluster)[0]
            prefer(cluster, preferred.broker_id)
            acknowledged: list[bytes] = []
            outcomes: list[Outcome] = []

            async def produce() -> None:
                for number in range(200):
                    value = b"v%d" % number
                    now = cluster.leader if cluster.state.leader > 0 else leader
                    try:
                        await committed(cluster, now, value)
                    except KafkaError:
                        await trio.sleep(0.01)
                    else:
                        acknowledged.append(value)

            with trio.CancelScope() as load:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(produce)
                    await trio.sleep(0.5)
                    outcomes.append(await elected(preferred))
                    load.cancel()
            now = await led(cluster, 1, 2, 3)
            await committed(cluster, now, b"v end")

            assert outcomes[0].code in {ErrorCode.NONE, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
            assert [each for each in client_values(now) if each in acknowledged] == acknowledged

    run(body)


def test_one_that_leads_already_is_told_so(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            prefer(cluster, leader.broker_id)
            all_of_them = await hand_overs(leader).elect(None, 1000)

            assert (await elected(leader)).code is ErrorCode.ELECTION_NOT_NEEDED
            assert all_of_them == {}

    run(body)


def test_a_preferred_replica_that_lacks_records_does_not_lead_and_the_leader_stays(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            preferred, other = followers(cluster)
            prefer(cluster, preferred.broker_id)
            cluster.cut(leader.broker_id, preferred.broker_id)
            cluster.cut(other.broker_id, preferred.broker_id)
            await committed(cluster, leader, b"v1")
            await trio.sleep(3)
            before = cluster.state

            assert await elected(leader) == (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, BEHIND)
            assert (cluster.state, leader.replica().is_leader) == (before, True)

    run(body)


def test_a_preferred_replica_that_is_fenced_is_not_asked_for(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            preferred = followers(cluster)[0]
            prefer(cluster, preferred.broker_id)
            cluster.fence(preferred.broker_id)

            assert (await elected(leader)).code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            assert leader.replica().is_leader

    run(body)


def test_the_preferred_replica_leads_again_by_itself_once_in_an_interval(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster, trio.open_nursery() as nursery:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1")
            preferred, other = followers(cluster)
            prefer(cluster, preferred.broker_id)
            for node in (leader, other):
                balance = VotedBalance(node.broker_id, hand_overs(node), interval_s=30, timeout_ms=30_000)
                await nursery.start(balance.run)
            await trio.sleep(29)
            before = cluster.state
            await trio.sleep(2)

            assert before.leader == leader.broker_id
            assert cluster.state.leader == preferred.broker_id
            assert cluster.state.leader_epoch == before.leader_epoch + 1
            nursery.cancel_scope.cancel()

    run(body)


def test_a_leader_stays_while_the_preferred_replica_lacks_records_and_goes_in_a_later_interval(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster, trio.open_nursery() as nursery:
            leader = await led(cluster, 1, 2, 3)
            preferred, other = followers(cluster)
            prefer(cluster, preferred.broker_id)
            balance = VotedBalance(leader.broker_id, hand_overs(leader), interval_s=30, timeout_ms=30_000)
            await nursery.start(balance.run)
            cluster.cut(leader.broker_id, preferred.broker_id)
            cluster.cut(other.broker_id, preferred.broker_id)
            await committed(cluster, leader, b"v1")
            await trio.sleep(31)
            kept = cluster.state.leader
            cluster.heal()
            await trio.sleep(30)

            assert kept == leader.broker_id
            assert cluster.state.leader == preferred.broker_id
            nursery.cancel_scope.cancel()

    run(body)


def test_a_broker_leaves_alone_what_others_lead_and_what_its_preferred_replica_cannot_take(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster, trio.open_nursery() as nursery:
            leader = await led(cluster, 1, 2, 3)
            preferred, other = followers(cluster)
            prefer(cluster, preferred.broker_id)
            await nursery.start(VotedBalance(other.broker_id, hand_overs(other), interval_s=30, timeout_ms=30_000).run)
            await trio.sleep(31)
            by_another = cluster.state.leader
            cluster.fence(preferred.broker_id)
            await nursery.start(
                VotedBalance(leader.broker_id, hand_overs(leader), interval_s=30, timeout_ms=30_000).run
            )
            await trio.sleep(31)

            assert (by_another, cluster.state.leader) == (leader.broker_id, leader.broker_id)
            nursery.cancel_scope.cancel()

    run(body)


def test_the_voters_have_the_last_word(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            preferred, other = followers(cluster)
            await trio.sleep(1)
            prefer(cluster, preferred.broker_id)
            answer = leader.voting.answer

            async def cut_off(request: Any) -> Any:
                told = await answer(request)
                cluster.cut(preferred.broker_id, leader.broker_id, other.broker_id)
                return told

            leader.voting.answer = cut_off  # type: ignore[method-assign]
            outcome = await elected(leader, 20_000)

            assert outcome == (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, ANOTHER)
            assert cluster.state.leader in {leader.broker_id, other.broker_id}

    run(body)


def test_time_that_is_over_is_told(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await trio.sleep(1)
            prefer(cluster, followers(cluster)[0].broker_id)

            assert (await elected(leader, 0)).code is ErrorCode.REQUEST_TIMED_OUT

    run(body)


def test_who_asks_is_answered_in_his_time_however_long_the_controller_takes(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await trio.sleep(1)
            preferred, _other = followers(cluster)
            prefer(cluster, preferred.broker_id)
            cluster.cut(preferred.broker_id, leader.broker_id)
            ask = leader.ask

            async def slow(request: Message, timeout_ms: int | None = None) -> Any:
                await trio.sleep(3)
                return await ask(request, timeout_ms)

            leader.ask = slow  # type: ignore[method-assign]
            handler = ElectLeadersHandler(calls=leader, hand_overs=hand_overs(leader))
            named = [TopicPartitions(topic="t", partitions=[0]), TopicPartitions(topic="none", partitions=[0])]
            begun_s = trio.current_time()
            await handler.handle_async(ElectLeadersRequest(topic_partitions=named, timeout_ms=3500), CONTEXT)

            assert trio.current_time() - begun_s < 3.6

    run(body)


def test_elect_leaders_hands_over_and_asks_the_controller_for_the_rest(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await trio.sleep(1)
            preferred = followers(cluster)[0]
            prefer(cluster, preferred.broker_id)
            handler = ElectLeadersHandler(calls=preferred, hand_overs=hand_overs(preferred))
            named = [TopicPartitions(topic="t", partitions=[0, 7]), TopicPartitions(topic="none", partitions=[0])]
            request = ElectLeadersRequest(topic_partitions=named, timeout_ms=5000)
            cluster.asked.clear()
            answer: Any = await handler.handle_async(request, CONTEXT)
            told = {
                (topic.topic, part.partition_id): part.error_code
                for topic in answer.replica_election_results
                for part in topic.partition_result
            }
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

            assert told == {("t", 0): 0, ("t", 7): unknown, ("none", 0): unknown}
            assert not leader.replica().is_leader
            assert await handler.handle_async(ElectLeadersRequest(topic_partitions=None), CONTEXT) == (type(answer)())

    run(body)


@pytest.mark.parametrize("has_leader", [True, False])
def test_there_is_no_unclean_election_and_the_answer_says_why(tmp_path: Path, *, has_leader: bool) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            if not has_leader:
                cluster.cut(1, 2, 3)
                cluster.cut(2, 3)
                cluster.fence(leader.broker_id)
            node = cluster.nodes[leader.broker_id]
            handler = ElectLeadersHandler(calls=node, hand_overs=hand_overs(node))
            asked = [TopicPartitions(topic="t", partitions=[0])]
            answer: Any = await handler.handle_async(
                ElectLeadersRequest(election_type=1, topic_partitions=asked), CONTEXT
            )
            ((told,),) = (topic.partition_result for topic in answer.replica_election_results)

            if has_leader:
                assert told.error_code == ErrorCode.ELECTION_NOT_NEEDED
            else:
                assert told.error_code == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
                assert "who lacks committed records cannot win" in told.error_message

    run(body)


# ---------------------------------------------------------------------------------------------------------------- stops


def test_a_broker_that_is_about_to_stop_leads_nothing_soon_and_nothing_is_lost(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await committed(cluster, leader, b"v1", b"v2")
            left = [node.broker_id for node in followers(cluster)]
            driven, started = cluster.driven, trio.current_time()
            epoch = driven.epoch_of(leader.broker_id)
            driven.apply(driven.controller.change_broker(leader.broker_id, epoch, fence=False, shutdown=True))
            cluster.publish()
            second = await led(cluster, *left)

            assert trio.current_time() - started < 1
            assert not leader.replica().is_leader
            await committed(cluster, second, b"v3")
            assert client_values(second) == [b"v1", b"v2", b"v3"]

    run(body)


# ------------------------------------------------------------------------------------------------------- DescribeQuorum


def test_a_leader_tells_its_voters_their_ends_and_its_epoch(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            slow, quick = followers(cluster)
            await committed(cluster, leader, b"v1", b"v2")
            await trio.sleep(1)
            cluster.cut(leader.broker_id, slow.broker_id)
            await committed(cluster, leader, b"v3")
            found = await described(leader)
            end = leader.replica().log.log_end_offset
            now_ms = leader.clock.now_ms()

            assert (found.error_code, found.leader_id, found.leader_epoch) == (0, *_led_by(cluster))
            assert found.high_watermark == end
            assert {each.replica_id: each.log_end_offset for each in found.current_voters} == {
                leader.broker_id: end,
                quick.broker_id: end,
                slow.broker_id: end - 1,
            }
            assert found.observers == []
            assert all(0 <= now_ms - each.last_fetch_timestamp < 2000 for each in found.current_voters)

    run(body)


def _led_by(cluster: Cluster) -> tuple[int, int]:
    return cluster.state.leader, cluster.state.leader_epoch


def test_a_follower_says_who_leads(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            await led(cluster, 1, 2, 3)
            found = await described(followers(cluster)[0])

            assert (found.error_code, found.leader_id, found.leader_epoch) == (
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                *_led_by(cluster),
            )

    run(body)


def test_a_broker_without_a_replica_says_who_leads(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, 1, 2, election="quorum") as cluster:
            await led(cluster, 1, 2)
            found = await described(cluster.nodes[3])

            assert (found.error_code, found.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, cluster.state.leader)

    run(body)


@pytest.mark.parametrize(("topic", "partition"), [("t", 1), ("t", -1), ("none", 0), (METADATA_TOPIC, 0)], ids=str)
def test_what_is_no_quorum_here_is_unknown_as_kafka_says(tmp_path: Path, topic: str, partition: int) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            found = await described(await led(cluster, 1, 2, 3), topic, partition)

            assert (found.error_code, found.error_message) == (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )

    run(body)


def test_partitions_that_have_an_in_sync_set_are_no_quorum_as_in_kafka(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            found = await described(cluster.leader)

            assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(body)


# -------------------------------------------------------------------------------------- settings that are of no effect


@pytest.mark.parametrize("min_isr", [1, 3])
def test_a_majority_is_what_counts_whatever_min_insync_replicas_says(tmp_path: Path, min_isr: int) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", min_isr=min_isr) as cluster:
            leader = await led(cluster, 1, 2, 3)
            one, other = followers(cluster)
            cluster.cut(leader.broker_id, one.broker_id)
            await committed(cluster, leader, b"v1")
            cluster.cut(leader.broker_id, other.broker_id)
            end = leader.produce(b"v2")
            await trio.sleep(1)

            assert leader.replica().high_watermark == end - 1

    run(body)


def test_a_follower_is_read_up_to_its_own_high_watermark(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            follower = followers(cluster)[0]
            await committed(cluster, leader, b"v1")
            await cluster.wait("it is known", lambda: client_values(follower) == [b"v1"])
            cluster.cut(leader.broker_id, *(node.broker_id for node in followers(cluster)))
            leader.produce(b"v uncommitted")
            await trio.sleep(0.2)

            assert client_values(follower) == client_values(leader) == [b"v1"]

    run(body)
