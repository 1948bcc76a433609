"""A broker follows the controller wherever it goes: what it asks is answered later, and never refused for that."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
import trio

from odradek.kernel.cluster.controller_nodes import ControllerNodes
from odradek.kernel.cluster.introduction import find_cluster
from odradek.kernel.errors import ErrorCode, KafkaError, UnansweredError
from odradek.kernel.metadata.records import BrokerRecord, ConfigRecord
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest
from odradek.kernel.wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest
from odradek.testing.faults import PowerLoss

from .fake_controllers import BROKER_EPOCH, CLUSTER_ID, IDS, Joined, address_of, beside_controllers

HEARTBEAT, ALLOCATE, ENVELOPE = 63, 67, 58
ASK = AllocateProducerIdsRequest(broker_id=9, broker_epoch=1)


async def started_by(joined: Joined) -> int:
    """The controller that gives producer ids."""
    answer = await joined.member.ask(ASK)
    return int(answer.producer_id_start) // 1000


def test_a_broker_registers_with_whoever_leads(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[int, int, list[tuple[int, int]]]:
        joined.quorum.elect(3)
        await joined.join()
        return joined.nodes.leader_id, joined.nodes.leader_epoch, sorted(set(joined.quorum.answered))

    leader_id, epoch, answered = beside_controllers(main, tmp_path)

    assert (leader_id, epoch) == (3, 2)
    assert {node_id for node_id, _ in answered} == {3}


def test_another_controller_is_told_at_once_that_the_broker_lives(tmp_path: Path) -> None:
    async def main(joined: Joined) -> int:
        await joined.join()
        joined.quorum.elect(2)
        return await joined.until(lambda: joined.quorum.done_by(2, HEARTBEAT) > 0)

    assert beside_controllers(main, tmp_path) <= 50


def test_what_is_asked_while_nobody_leads_is_answered_by_whoever_does_then(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[int, int]:
        await joined.join()
        joined.controllers[1].host.kill_process()
        joined.quorum.elect(-1)
        given: list[int] = []

        async def ask() -> None:
            given.append(await started_by(joined))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(0.4)
            assert not given
            began_ms = joined.elapsed_ms()
            joined.quorum.elect(3)
        return given[0], joined.elapsed_ms() - began_ms

    given, elapsed_ms = beside_controllers(main, tmp_path)

    assert given == 3
    assert elapsed_ms <= 80


def test_a_controller_that_is_not_active_yet_is_waited_for(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[int, int]:
        await joined.join()
        joined.quorum.elect(2, is_active=False)
        given: list[int] = []

        async def ask() -> None:
            given.append(await started_by(joined))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(0.3)
            assert not given
            joined.quorum.is_active = True
            began_ms = joined.elapsed_ms()
        return given[0], joined.elapsed_ms() - began_ms

    given, elapsed_ms = beside_controllers(main, tmp_path)

    assert given == 2
    assert elapsed_ms <= 40


def test_the_metadata_is_followed_on_from_the_next_leader(tmp_path: Path) -> None:
    async def main(joined: Joined) -> list[int]:
        await joined.join()
        took = []
        for leader_id in (2, 3, 1):
            joined.controllers[joined.quorum.leader_id].host.kill_process()
            joined.quorum.elect(leader_id)
            if joined.controllers[leader_id].host.process is None:
                await joined.controllers[leader_id].live(joined.nursery)
            joined.quorum.append(ConfigRecord(resource_type=4, resource_name="", name="broker.rack", value="b"))
            took.append(await joined.until(lambda: joined.member.source.image.offset == len(joined.quorum.batches) - 1))
        return took

    assert max(beside_controllers(main, tmp_path)) <= 60


def test_a_follower_that_knows_of_no_new_leader_yet_is_asked_again_later(tmp_path: Path) -> None:
    async def main(joined: Joined) -> int:
        await joined.join()
        joined.controllers[1].host.kill_process()
        joined.quorum.elect(3)
        joined.quorum.unaware = {2: (1, 1)}
        return await joined.until(lambda: joined.quorum.done_by(3, HEARTBEAT) > 0)

    assert beside_controllers(main, tmp_path) <= 60


def test_a_controller_that_vanishes_is_left_when_its_answer_is_due(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[int, int]:
        await joined.join()
        joined.controllers[1].host.lose_power(PowerLoss.LOST)
        joined.quorum.elect(2)
        elapsed_ms = await joined.until(lambda: joined.nodes.leader_id == 2)
        return elapsed_ms, await started_by(joined)

    elapsed_ms, given = beside_controllers(main, tmp_path)

    assert elapsed_ms <= 4_100, "an answer comes within two seconds, and two more"
    assert given == 2


def test_a_leader_that_was_not_reached_for_a_while_is_told_again_that_the_broker_lives(tmp_path: Path) -> None:
    async def main(joined: Joined) -> int:
        await joined.join()
        joined.quorum.silent.add(1)
        await trio.sleep(30)
        joined.quorum.silent.clear()
        before = joined.quorum.done_by(1, HEARTBEAT)
        return await joined.until(lambda: joined.quorum.done_by(1, HEARTBEAT) > before)

    assert beside_controllers(main, tmp_path) <= 9_000, "within a session"


def test_requests_to_a_leader_that_hangs_are_asked_of_the_next_as_soon_as_that_is_known(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[int, int]:
        await joined.join()
        joined.quorum.silent = {1}
        given: list[int] = []

        async def ask() -> None:
            given.append(await started_by(joined))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(0.1)
            joined.quorum.elect(2)
            began_ms = joined.elapsed_ms()
            joined.nodes.learn(2, joined.quorum.epoch)
        return given[0], joined.elapsed_ms() - began_ms

    given, elapsed_ms = beside_controllers(main, tmp_path)

    assert given == 2
    assert elapsed_ms <= 100, "and not when the time-out of a request is over"


def test_a_connection_that_is_dead_while_others_live_makes_way_for_a_new_one(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[int, int]:
        await joined.join()
        joined.quorum.swallowed = {ALLOCATE}
        began_ms = joined.elapsed_ms()
        return await started_by(joined), joined.elapsed_ms() - began_ms

    given, elapsed_ms = beside_controllers(main, tmp_path)

    assert given == 1, "its heartbeats are answered, so it leads, as everybody knows"
    assert elapsed_ms <= 15_100, "half the time of a request"


def test_a_dead_connection_is_left_though_nobody_waits_long_enough_to_find_out(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[int, int]:
        await joined.join()
        joined.quorum.swallowed = {ALLOCATE}
        for count in range(20):
            try:
                return (await joined.member.ask(ASK, 1000)).producer_id_start // 1000, count
            except KafkaError as error:
                if error.code is not ErrorCode.REQUEST_TIMED_OUT:
                    raise
        return -1, 20

    given, refused_count = beside_controllers(main, tmp_path)

    assert (given, refused_count) == (1, 15), "one that waits a little does not take it from the others before"


def test_what_a_broker_asks_for_itself_does_not_wait_for_what_clients_asked(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[int, int]:
        await joined.join()
        joined.quorum.swallowed = {ENVELOPE}

        async def ask_for_a_client() -> None:
            with pytest.raises(KafkaError):
                await joined.member.ask(DeleteTopicsRequest(), 5000)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_for_a_client)
            await joined.until(lambda: not joined.quorum.swallowed)
            began_ms = joined.elapsed_ms()
            given = await started_by(joined)
            return given, joined.elapsed_ms() - began_ms

    given, elapsed_ms = beside_controllers(main, tmp_path)

    assert given == 1
    assert elapsed_ms <= 50


def test_a_request_that_no_controller_answers_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[ErrorCode, int]:
        await joined.join()
        joined.quorum.elect(-1)
        began_ms = joined.elapsed_ms()
        with pytest.raises(KafkaError) as refusal:
            await joined.member.ask(ASK, 700)
        return refusal.value.code, joined.elapsed_ms() - began_ms

    code, elapsed_ms = beside_controllers(main, tmp_path)

    assert code is ErrorCode.REQUEST_TIMED_OUT
    assert elapsed_ms == 700


def test_any_controller_says_which_cluster_it_is_and_none_is_named_with_all_addresses(tmp_path: Path) -> None:
    async def main(joined: Joined) -> tuple[str, str]:
        for node_id in (1, 2):
            joined.controllers[node_id].host.kill_process()
        nodes = ControllerNodes([address_of(each) for each in IDS])
        found = (await find_cluster(joined.config, joined.machine, nodes)).cluster_id
        joined.controllers[3].host.kill_process()
        with pytest.raises(UnansweredError) as refusal:
            await find_cluster(joined.config, joined.machine, nodes)
        return found, str(refusal.value)

    found, refusal = beside_controllers(main, tmp_path, settings={"initial.broker.registration.timeout.ms": "3000"})

    assert found == CLUSTER_ID
    assert "no controller answered at controller-1:9093, controller-2:9093, controller-3:9093 within 3000 ms" in refusal


def test_a_broker_goes_on_when_the_metadata_here_says_that_it_is_registered_and_unfenced(tmp_path: Path) -> None:
    async def main(joined: Joined) -> list[str]:
        joined.quorum.batches.pop()
        joined.quorum.append(ConfigRecord(resource_type=4, resource_name="", name="broker.rack", value="a"))
        known = partial(BrokerRecord, broker_id=9, broker_epoch=BROKER_EPOCH, incarnation_id=UUID(int=9))
        seen: list[str] = []

        async def go_live() -> None:
            await joined.register()
            seen.append("registered")
            await joined.member.go_live()
            seen.append("live")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_live)
            await joined.until(lambda: joined.member.source.image.offset == BROKER_EPOCH)
            await trio.sleep(1)
            seen.append("registration is written")
            joined.quorum.append(known())
            await trio.sleep(1)
            seen.append("unfencing is written")
            joined.quorum.append(known(is_fenced=False))
        return seen

    expected = ["registration is written", "registered", "unfencing is written", "live"]
    assert beside_controllers(main, tmp_path) == expected, "by what was so before it may lead with records that it lost"
