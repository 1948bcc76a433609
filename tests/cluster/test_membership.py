"""Brokers of one cluster on virtual time: they register, follow the metadata, ask the controller, die and come back."""

from __future__ import annotations

import attrs
import pytest
import trio

from odradek.client import NewTopic
from odradek.kernel.broker import Broker
from odradek.kernel.broker.parts import BrokerParts
from odradek.kernel.cluster.peer_settings import peer_settings
from odradek.kernel.config.broker import Setting
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.lab.simulator.cluster import PORT, Cluster
from odradek.lab.simulator.machine import SimulatedHost
from odradek.lab.simulator.runs import leaves_of
from odradek.lab.simulator.world import MILLISECOND
from odradek.testing.faults import PowerLoss

from .simulated import admin, fenced_in, image_of, in_cluster, until


def test_three_brokers_register_and_are_unfenced() -> None:
    async def main(cluster: Cluster) -> list[dict[int, bool]]:
        return [fenced_in(cluster)]

    assert in_cluster(main) == [{1: False, 2: False, 3: False}]


def test_any_broker_creates_a_topic_and_all_know_it() -> None:
    async def main(cluster: Cluster) -> list[list[str]]:
        for node_id in cluster.brokers:
            async with admin(cluster, node_id) as client:
                await client.create_topic(NewTopic(f"topic-{node_id}", 3, 3))
        await until(lambda: len({image_of(each).offset for each in cluster.brokers.values()}) == 1)
        return [sorted(image_of(each).topics_by_name) for each in cluster.brokers.values()]

    assert in_cluster(main) == [["topic-1", "topic-2", "topic-3"]] * 3


def state_of_t(cluster: Cluster) -> tuple[set[int], set[int]]:
    """The leaders of topic `t`, and who is in sync, as the first broker knows it."""
    partitions = image_of(cluster.brokers[1]).topics_by_name["t"].partitions
    return {state.leader for state in partitions}, {broker for state in partitions for broker in state.isr}


async def with_topic(cluster: Cluster) -> None:
    """Have a topic whose partitions lie on all brokers."""
    async with admin(cluster, 2) as client:
        await client.create_topic(NewTopic("t", 6, 3))
    await until(lambda: "t" in image_of(cluster.brokers[1]).topics_by_name)


def test_a_broker_that_dies_is_fenced_at_once_and_its_leaders_move() -> None:
    async def main(cluster: Cluster) -> tuple[int, tuple[set[int], set[int]], list[dict[int, bool]]]:
        await with_topic(cluster)
        began_ns = cluster.world.now_ns
        cluster.brokers[3].crash()
        await until(lambda: fenced_in(cluster)[3])
        elapsed_ms = (cluster.world.now_ns - began_ns) // MILLISECOND
        seen = [fenced_in(cluster)]
        moved = state_of_t(cluster)
        cluster.brokers[3].start()
        await cluster.brokers[3].wait_serving()
        return elapsed_ms, moved, [*seen, fenced_in(cluster)]

    elapsed_ms, moved, seen = in_cluster(main)

    assert elapsed_ms <= 100
    assert moved == ({1, 2}, {1, 2})
    assert seen == [{1: False, 2: False, 3: True}, {1: False, 2: False, 3: False}]


def test_a_host_that_loses_its_power_is_fenced_when_its_session_is_over() -> None:
    async def main(cluster: Cluster) -> tuple[int, tuple[set[int], set[int]]]:
        await with_topic(cluster)
        began_ns = cluster.world.now_ns
        cluster.brokers[3].crash(PowerLoss.LOST)
        await until(lambda: fenced_in(cluster)[3])
        return (cluster.world.now_ns - began_ns) // MILLISECOND, state_of_t(cluster)

    elapsed_ms, moved = in_cluster(main)

    assert 6_000 <= elapsed_ms <= 9_100
    assert moved == ({1, 2}, {1, 2})


def test_a_broker_that_is_cut_off_is_fenced_and_comes_back_by_itself() -> None:
    async def main(cluster: Cluster) -> tuple[int, bool]:
        began_ns = cluster.world.now_ns
        first, third = cluster.brokers[1].host.host, cluster.brokers[3].host.host
        cluster.network.cut(first, third)
        cluster.network.cut(third, first)
        await until(lambda: fenced_in(cluster)[3])
        elapsed_ms = (cluster.world.now_ns - began_ns) // MILLISECOND
        cluster.network.heal(first, third)
        cluster.network.heal(third, first)
        await until(lambda: not fenced_in(cluster)[3])
        return elapsed_ms, fenced_in(cluster)[3]

    elapsed_ms, is_fenced = in_cluster(main)

    assert elapsed_ms >= 6_000, "a broker that is not reached may be alive"
    assert not is_fenced


def test_a_broker_that_is_started_again_at_once_takes_its_place() -> None:
    async def main(cluster: Cluster) -> int:
        began_ns = cluster.world.now_ns
        cluster.brokers[2].crash()
        cluster.brokers[2].start()
        await cluster.brokers[2].wait_serving()
        return (cluster.world.now_ns - began_ns) // MILLISECOND

    assert in_cluster(main) <= 1_000


@pytest.mark.parametrize("pause_s", [0, 3])
def test_brokers_that_all_died_are_back_without_waiting_for_sessions_of_before(pause_s: int) -> None:
    async def main(cluster: Cluster) -> tuple[int, set[int]]:
        await with_topic(cluster)
        for broker in cluster.brokers.values():
            broker.crash()
        await trio.sleep(pause_s)
        began_ns = cluster.world.now_ns
        for broker in cluster.brokers.values():
            broker.start()
        for broker in cluster.brokers.values():
            await broker.wait_serving()
        elapsed_ms = (cluster.world.now_ns - began_ns) // MILLISECOND
        await until(lambda: state_of_t(cluster)[1] == {1, 2, 3})
        return elapsed_ms, state_of_t(cluster)[0]

    elapsed_ms, leaders = in_cluster(main)

    assert elapsed_ms <= 1_000
    assert -1 not in leaders


def test_a_broker_that_died_with_its_controller_is_fenced_soon_after_that_is_back() -> None:
    async def main(cluster: Cluster) -> tuple[int, dict[int, bool]]:
        await with_topic(cluster)
        cluster.brokers[1].crash()
        cluster.brokers[3].crash()
        cluster.brokers[1].start()
        await cluster.brokers[1].wait_serving()
        began_ns = cluster.world.now_ns
        await until(lambda: fenced_in(cluster)[3])
        elapsed_ms = (cluster.world.now_ns - began_ns) // MILLISECOND
        await trio.sleep(12)
        return elapsed_ms, fenced_in(cluster)

    elapsed_ms, fenced = in_cluster(main)

    assert elapsed_ms <= 100
    assert fenced == {1: False, 2: False, 3: True}


def test_a_broker_that_stops_hands_its_leaders_over_first() -> None:
    async def main(cluster: Cluster) -> tuple[int, tuple[set[int], set[int]], int]:
        await with_topic(cluster)
        began_ns = cluster.world.now_ns
        await cluster.brokers[2].stop()
        stopped_ms = (cluster.world.now_ns - began_ns) // MILLISECOND
        moved = state_of_t(cluster)
        cluster.brokers[2].start()
        await cluster.brokers[2].wait_serving()
        return stopped_ms, moved, (cluster.world.now_ns - began_ns) // MILLISECOND - stopped_ms

    stopped_ms, moved, restarted_ms = in_cluster(main)

    assert moved == ({1, 3}, {1, 3})
    assert stopped_ms <= 1_000
    assert restarted_ms <= 1_000


def test_brokers_go_on_when_their_controller_was_away() -> None:
    async def main(cluster: Cluster) -> list[dict[int, bool]]:
        await with_topic(cluster)
        cluster.brokers[1].crash()
        await trio.sleep(5)
        cluster.brokers[1].start()
        await cluster.brokers[1].wait_serving()
        async with admin(cluster, 3) as client:
            await client.create_topic(NewTopic("u", 1, 3))
        await until(lambda: "u" in image_of(cluster.brokers[2]).topics_by_name)
        await trio.sleep(12)
        return [fenced_in(cluster)]

    assert in_cluster(main) == [{1: False, 2: False, 3: False}]


def test_a_broker_answers_clients_before_it_is_unfenced() -> None:
    async def main(cluster: Cluster) -> tuple[bool, list[int]]:
        third = cluster.brokers[3]
        await third.stop()
        third.start()
        broker = third.broker
        assert broker is not None
        answered: list[int] = []

        def attach(parts: BrokerParts) -> None:
            go_live = parts.metadata.go_live

            async def ask_and_go_live() -> None:
                settings, network = peer_settings(broker.options.config), broker.machine.network
                with trio.move_on_after(2):
                    async with open_connection("broker-3", PORT, settings, network=network) as connection:
                        answer = await connection.request(MetadataRequest(topics=[]), timeout_ms=1000)
                        answered.extend(each.node_id for each in answer.brokers)
                await go_live()

            parts.metadata.go_live = ask_and_go_live  # type: ignore[method-assign]

        broker._on_parts = attach
        await third.wait_serving()
        return fenced_in(cluster)[3], sorted(answered)

    assert in_cluster(main) == (False, [1, 2])


def registration_of_third(cluster: Cluster) -> int:
    """The epoch of the third broker's registration."""
    return image_of(cluster.brokers[1]).brokers[3].broker_epoch


def test_a_broker_says_whether_it_stopped_cleanly_and_with_which_registration() -> None:
    async def main(cluster: Cluster) -> list[tuple[int, int]]:
        third, told = cluster.brokers[3], []
        for ends in (third.stop, third.crash, third.stop):
            before = registration_of_third(cluster)
            ended = ends()
            if ended is not None:
                await ended
            third.start()
            await third.wait_serving()
            assert third.broker is not None
            told.append((before, third.broker.parts.logs.previous_broker_epoch()))
        return told

    stopped, crashed, stopped_again = in_cluster(main)

    assert stopped[1] == stopped[0]
    assert crashed[1] == -1
    assert stopped_again[1] == stopped_again[0]


def test_the_only_replica_of_a_partition_leads_it_again_however_its_broker_ended() -> None:
    async def main(cluster: Cluster) -> list[set[int]]:
        async with admin(cluster, 2) as client:
            await client.create_topic(NewTopic("t", 3, 1))
        seen = []
        for crashes in (True, False):
            if crashes:
                cluster.brokers[3].crash()
            else:
                await cluster.brokers[3].stop()
            await until(lambda: fenced_in(cluster)[3])
            seen.append(state_of_t(cluster)[0])
            cluster.brokers[3].start()
            await cluster.brokers[3].wait_serving()
            seen.append(state_of_t(cluster)[0])
        return seen

    assert in_cluster(main) == [{-1, 1, 2}, {1, 2, 3}, {-1, 1, 2}, {1, 2, 3}]


def twin_of(cluster: Cluster, node_id: int, asks_ms: int) -> Broker:
    """A second process with the id of a broker that lives, on a host of its own, which asks for it for so long."""
    living = cluster.brokers[node_id].broker
    assert living is not None
    host = SimulatedHost(cluster.world, cluster.network, "broker-4")
    config = living.options.config
    own = {"listeners": "PLAINTEXT://broker-4:9092", "initial.broker.registration.timeout.ms": str(asks_ms)}
    static = {**config.static, **{key: Setting(value, "test") for key, value in own.items()}}
    twin = attrs.evolve(living.options, config=attrs.evolve(config, static=static))
    return Broker(twin, machine=host.start_process().machine)


def test_a_second_process_with_the_id_of_one_that_lives_ends_and_says_why() -> None:
    async def main(cluster: Cluster) -> tuple[str, bool]:
        with pytest.raises(ExceptionGroup) as refusal:
            await twin_of(cluster, 2, 2_000).run()
        return "; ".join(str(leaf) for leaf in leaves_of(refusal.value)), fenced_in(cluster)[2]

    told, is_fenced = in_cluster(main)

    assert "another process lives as broker 2" in told
    assert not is_fenced


def test_a_process_whose_id_is_taken_asks_for_it_for_longer_than_a_session_lasts_here() -> None:
    """The controller's clock may be slow: to it the session of who died is not over then."""

    async def main(cluster: Cluster) -> bool:
        async def die() -> None:
            await trio.sleep(12)
            cluster.brokers[2].crash()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(die)
            await nursery.start(twin_of(cluster, 2, 60_000).run)
            nursery.cancel_scope.cancel()
        return fenced_in(cluster)[2]

    assert not in_cluster(main)
