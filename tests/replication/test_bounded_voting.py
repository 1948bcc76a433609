"""What many partitions whose replicas vote cost a broker: what is done at once for each of them is bounded."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.kernel.contracts.election import FetchEnded
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.turnstile import take_turn
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.replication import voting_replicas
from odradek.kernel.replication.calm_voters import LOOK_THROUGH_MS, Heard
from odradek.kernel.replication.voting_replicas import REPLICAS_PER_TURN, VotingReplicas
from odradek.kernel.types import id_text
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_52_vote import PartitionData, TopicData, VoteRequest
from odradek.kernel.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)

from .small_cluster import LAG_MS, Node, running
from .test_changing_voters import moved, reassign
from .test_voting_replicas import committed, followers, led, run

CALM_S = 4.0
"""So long after an election nothing is restless any more."""


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When others were let come in between."""
    taken: list[float] = []

    async def counted() -> None:
        taken.append(trio.current_time())
        await take_turn()

    monkeypatch.setattr(voting_replicas, "take_turn", counted)
    return taken


def counting_inputs(node: Node, partition: int = 0) -> Counter[type]:
    """Count what a replica's election is told, from now on."""
    election: Any = node.replica(partition).election
    step, inputs = election.step, Counter[type]()

    def counted(event: Any) -> None:
        inputs[type(event)] += 1
        step(event)

    election.step = counted
    return inputs


def test_a_calm_voter_hears_nothing_of_its_leader_however_many_fetches_are_answered(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", partitions=2) as cluster:
            leader = await led(cluster, 1, 2, 3)
            await trio.sleep(CALM_S)
            follower = followers(cluster)[0]
            busy, idle = counting_inputs(follower), counting_inputs(follower, 1)
            for _ in range(100):
                await committed(cluster, leader, b"v")
                await trio.sleep(0.05)

            assert (busy[FetchEnded], idle[FetchEnded]) == (0, 0)

    run(body)


def test_neighbours_of_calm_voters_are_looked_up_together_and_one_by_one_but_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions, seconds = 20, 60
    asked = Counter[int]()
    last_heard = VotingReplicas._last_heard

    def counted(voting: VotingReplicas, replica: Replica) -> Heard | None:
        asked[voting._parts.broker_id] += 1
        return last_heard(voting, replica)

    async def body() -> None:
        async with running(tmp_path, election="quorum", partitions=partitions) as cluster:
            await led(cluster, 1, 2, 3)
            await trio.sleep(CALM_S)
            monkeypatch.setattr(VotingReplicas, "_last_heard", counted)
            await trio.sleep(seconds)

            assert {*asked} == {1, 2, 3}
            # Each would be due once or twice in a second.
            assert max(asked.values()) <= partitions * (seconds * 1000 // LOOK_THROUGH_MS + 2)

    run(body)


def counting_calls(election: Any, counts: Counter[str]) -> None:
    """Count what an election is asked and told, from now on."""

    def counting(name: str) -> Callable[..., Any]:
        call = getattr(election, name)

        def counted(*args: Any) -> Any:
            counts[name] += 1
            return call(*args)

        return counted

    for name in ("step", "tick", "ready", "follower_fetch", "leader_high_watermark", "local_append"):
        setattr(election, name, counting(name))


@pytest.mark.parametrize("election", ["quorum", "isr"])
def test_elections_of_idle_partitions_are_left_alone(tmp_path: Path, election: str) -> None:
    async def body() -> None:
        async with running(tmp_path, election=election, partitions=20) as cluster:
            await led(cluster, 1, 2, 3)
            await trio.sleep(2 * CALM_S)
            counts: Counter[str] = Counter()
            for node in cluster.nodes.values():
                for replica in node.replicas:
                    counting_calls(replica.election, counts)
            await trio.sleep(LAG_MS / 1000)
            ticks_max = 0 if election == "quorum" else 2 * 20  # every half of the time that a follower may lag

            assert counts["step"] == counts["leader_high_watermark"] == counts["local_append"] == 0
            assert counts["tick"] <= ticks_max
            assert counts["follower_fetch"] <= 2 * ticks_max  # of two followers, just before time passes
            assert counts["ready"] <= ticks_max

    run(body)


def test_who_was_left_alone_finds_out_in_time_that_its_leader_is_gone(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            old = await led(cluster, 1, 2, 3)
            await trio.sleep(60)
            heard = old.replica().election
            cluster.cut(old.broker_id, *(each for each in (1, 2, 3) if each != old.broker_id))
            begun_s = trio.current_time()
            others = [node for node in cluster.nodes.values() if node is not old]
            await cluster.wait("another leads", lambda: any(node.replica().is_leader for node in others))
            led_s = trio.current_time() - begun_s
            await cluster.wait("the former leads no more", lambda: not old.replica().is_leader)
            left_s = trio.current_time() - begun_s

            assert heard is old.replica().election
            assert 1.4 <= led_s <= 4.6  # what it waits, since the last fetch that was answered, a look, and a vote
            assert 2.4 <= left_s <= 3.6  # one and a half of that since the last fetch of a majority, and a look

    run(body)


def test_in_an_idle_partition_a_follower_has_its_time_to_lag_from_when_it_was_heard_last(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            leader = await led(cluster, 1, 2, 3)
            await trio.sleep(2.9 * LAG_MS / 1000)
            slow = followers(cluster)[0]
            cluster.cut(slow.broker_id, *(each for each in (1, 2, 3) if each != slow.broker_id))
            leader.produce(b"v")
            await trio.sleep(0.9 * LAG_MS / 1000)

            assert slow.broker_id in cluster.state.isr
            await cluster.wait("it is out of sync", lambda: slow.broker_id not in cluster.state.isr)

    run(body)


def test_a_voter_hears_at_once_of_the_leader_that_it_has_just_come_to_follow(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            await led(cluster, 1, 2, 3)
            elections: list[Any] = [node.replica().election for node in followers(cluster)]
            begun_s = trio.current_time()
            await cluster.wait("both have heard", lambda: all(each._replica.has_fetched for each in elections))

            assert trio.current_time() - begun_s < 0.1

    run(body)


def test_a_request_of_many_partitions_lets_others_come_in_between(tmp_path: Path, turns: list[float]) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            await trio.sleep(CALM_S)
            unknown = [PartitionData(partition_index=number, replica_id=1) for number in range(1, 1001)]
            topic = TopicData(topic_name=id_text(cluster.topic_id), partitions=unknown)
            turns.clear()
            told: Any = await leader.voting.answer(VoteRequest(topics=[topic]))

            assert len(told.topics[0].partitions) == 1000
            assert len(turns) == 1000 // REPLICAS_PER_TURN

    run(body)


def test_a_look_at_many_replicas_lets_others_come_in_between(
    tmp_path: Path, turns: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voting_replicas, "REPLICAS_PER_TURN", 2)

    async def body() -> None:
        async with running(tmp_path, election="quorum", partitions=5) as cluster:
            await led(cluster, 1, 2, 3)
            turns.clear()
            await trio.sleep(1)

            assert len(turns) > 3 * 2 * 1000 / voting_replicas.TICK_MS * 0.8

    run(body)


def refusing(ask: Callable[..., Awaitable[Any]], count: int) -> Callable[..., Awaitable[Any]]:
    """Return a controller that does not record who leads."""

    async def refuse(request: Message, timeout_ms: int | None = None) -> Any:
        if not isinstance(request, AlterPartitionRequest):
            return await ask(request, timeout_ms)
        parts = [
            ResponsePartitionData(partition_index=index, error_code=ErrorCode.INELIGIBLE_REPLICA)
            for index in range(count)
        ]
        return AlterPartitionResponse(topics=[ResponseTopicData(topic_id=request.topics[0].topic_id, partitions=parts)])

    return refuse


def test_leaders_whom_the_controller_does_not_record_say_so_once_and_find_their_rest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "odradek")

    async def body() -> None:
        async with running(tmp_path, election="quorum", partitions=3) as cluster:
            for node in cluster.nodes.values():
                node.ask = refusing(node.ask, 3)  # type: ignore[assignment, method-assign]
            await cluster.wait(
                "all are led",
                lambda: all(any(n.replica(i).is_leader for n in cluster.nodes.values()) for i in range(3)),
            )
            await trio.sleep(CALM_S)
            restless = [len(node.voting._restless_ms) for node in cluster.nodes.values()]
            leading = [node for node in cluster.nodes.values() if any(node.replica(i).is_leader for i in range(3))]
            told = [record for record in caplog.messages if "does not record" in record]

            assert restless == [0, 0, 0]
            assert 1 <= len(told) <= 2 * len(leading)  # some may be elected after the first answer

    run(body)


# -- machines that are slow, and brokers that are away -----------------------------------------------------------------

SLOW_TURN_S = 0.2


def slow_turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Have others take their time whenever they are let come in between, from now on; return when that was."""
    taken: list[float] = []

    async def slow() -> None:
        taken.append(trio.current_time())
        await trio.sleep(SLOW_TURN_S)

    monkeypatch.setattr(voting_replicas, "REPLICAS_PER_TURN", 2)
    monkeypatch.setattr(voting_replicas, "take_turn", slow)
    return taken


def test_elections_find_their_rest_where_a_look_at_all_takes_longer_than_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", partitions=7) as cluster:
            await led(cluster, 1, 2, 3)
            slow_turns(monkeypatch)  # three in a look
            await trio.sleep(5 * CALM_S)

            assert 3 * SLOW_TURN_S * 1000 > voting_replicas.CALM_TICK_MS
            assert [len(node.voting._restless_ms) for node in cluster.nodes.values()] == [0, 0, 0]
            assert [len(node.voting._calm) for node in cluster.nodes.values()] == [7, 7, 7]

    run(body)


def test_time_that_passes_for_many_takes_no_more_than_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", partitions=2) as cluster:
            await led(cluster, 1, 2, 3)
            taken = slow_turns(monkeypatch)  # one in a pass
            await trio.sleep(2)
            share = len(taken) / 3 * SLOW_TURN_S / 2

            assert 0.3 < share < 0.6

    run(body)


def test_a_leader_that_tells_a_silent_voter_of_itself_is_not_restless_by_that(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum") as cluster:
            leader = await led(cluster, 1, 2, 3)
            silent = followers(cluster)[0]
            cluster.cut(silent.broker_id, *(each for each in (0, 1, 2, 3) if each != silent.broker_id))
            await trio.sleep(3 * CALM_S)
            asked_count = len(cluster.asked)
            await trio.sleep(CALM_S)

            assert not leader.voting._restless_ms
            assert len(cluster.asked) > asked_count  # it is told all the same

    run(body)


def test_a_leader_whose_next_voter_does_not_come_is_not_restless_and_tells_the_controller_seldom(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        async with running(tmp_path, election="quorum", brokers=4) as cluster:
            leader = await led(cluster, 1, 2, 3)
            cluster.cut(4, 0, 1, 2, 3)
            reassign(cluster, 1, 2, 3, 4)
            await trio.sleep(2 * CALM_S)
            cluster.asked.clear()
            await trio.sleep(CALM_S)
            told_count = sum(isinstance(each, AlterPartitionRequest) for each in cluster.asked)

            assert not leader.voting._restless_ms
            assert 1 <= told_count <= CALM_S * 1000 / voting_replicas.CALM_TICK_MS + 1
            cluster.heal()
            await moved(cluster, 1, 2, 3, 4)

    run(body)
