"""What three brokers on virtual time tell of themselves as one of them dies and comes back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import trio

from odradek.cli.placing.throttle import set_throttle, throttled_by
from odradek.client import NewTopic, TopicPartition

from .simulated import admin, image_of, in_cluster, in_quorum_of_three, until
from .test_cordoned_directories import TWO_DISKS, cordon
from .test_failed_directories import fail_second_disk, is_told

if TYPE_CHECKING:
    from odradek.lab.simulator.cluster import Cluster

SETTINGS = {"broker.session.timeout.ms": "9000", "default.replication.factor": "3", "min.insync.replicas": "2"}
PARTITIONS = 6
NAMES = {
    "kafka_server_replicamanager_underreplicatedpartitions": "under-replicated",
    "kafka_server_replicamanager_underminisrpartitioncount": "under minimum",
    "kafka_server_replicamanager_atminisrpartitioncount": "at minimum",
    "kafka_controller_kafkacontroller_activecontrollercount": "controllers",
    "kafka_controller_kafkacontroller_activebrokercount": "active",
    "kafka_controller_kafkacontroller_fencedbrokercount": "fenced",
    "kafka_controller_kafkacontroller_offlinepartitionscount": "offline",
}


def told(cluster: Cluster) -> dict[str, float]:
    """Sum up what the living brokers tell, but for what is 0."""
    sums: Counter[str] = Counter()
    for host in cluster.brokers.values():
        if host.broker is not None:
            for metric in host.broker.parts.view.figures.metrics():
                if metric.name in NAMES:
                    sums[NAMES[metric.name]] += int(metric.read().get((), 0))
    return dict(+sums)


def elections(cluster: Cluster) -> float:
    broker = cluster.brokers[1].broker
    assert broker is not None
    (count,) = [
        metric.read()[()]
        for metric in broker.parts.view.figures.metrics()
        if metric.name == "kafka_controller_controllerstats_leaderelectionrateandtimems_count"
    ]
    return count


def test_a_broker_that_dies_shows_in_the_metrics_of_the_others_until_it_is_back() -> None:
    async def main(cluster: Cluster) -> tuple[list[dict[str, float]], list[float]]:
        async with admin(cluster, 2) as client:
            await client.create_topic(NewTopic("t", PARTITIONS, 3))
        controller, victim = cluster.brokers[1], cluster.brokers[3]
        await until(lambda: all("t" in image_of(host).topics_by_name for host in cluster.brokers.values()))
        found, elected = [told(cluster)], [elections(cluster)]
        victim.crash()
        await until(lambda: image_of(controller).brokers[3].is_fenced)
        await until(lambda: image_of(cluster.brokers[2]).offset == image_of(controller).offset)
        found.append(told(cluster))
        elected.append(elections(cluster))
        victim.start()
        await victim.wait_serving()
        await until(lambda: told(cluster).get("under-replicated", 0) == 0)
        found.append(told(cluster))
        return found, elected

    (before, during, after), elected = in_cluster(main, settings=SETTINGS)

    healthy = {"controllers": 1, "active": 3}
    assert before == after == healthy
    assert during == {
        "controllers": 1,
        "active": 2,
        "fenced": 1,
        "under-replicated": PARTITIONS,
        "at minimum": PARTITIONS,
    }
    assert elected[0] == 0
    assert elected[1] >= 1


def directories_told(cluster: Cluster, node_id: int) -> dict[str, dict[tuple[str, ...], float]]:
    broker = cluster.brokers[node_id].broker
    assert broker is not None
    found = {metric.name: metric for metric in broker.parts.view.figures.metrics()}
    names = ("offlinelogdirectorycount", "cordonedlogdirectorycount", "logdirectoryoffline", "logdirectorycordoned")
    return {name: dict(found[f"kafka_log_logmanager_{name}"].read()) for name in names}


def test_a_directory_that_fails_and_one_that_is_cordoned_show_in_the_metrics_of_their_broker_alone() -> None:
    async def main(cluster: Cluster) -> list[dict[str, dict[tuple[str, ...], float]]]:
        async with admin(cluster, 1) as client:
            await client.create_topic(NewTopic("t", PARTITIONS, 3))
            await until(lambda: is_told(cluster))
            fail_second_disk(cluster.brokers[2])
            await cordon(cluster, client, 2, "/data/one", 1)
        return [directories_told(cluster, node_id) for node_id in (2, 3)]

    of_it, of_another = in_cluster(main, settings=TWO_DISKS)

    assert of_it == {
        "offlinelogdirectorycount": {(): 1},
        "cordonedlogdirectorycount": {(): 1},
        "logdirectoryoffline": {("/data/one",): 0, ("/data/two",): 1},
        "logdirectorycordoned": {("/data/one",): 1, ("/data/two",): 0},
    }
    assert of_another == {
        "offlinelogdirectorycount": {(): 0},
        "cordonedlogdirectorycount": {(): 0},
        "logdirectoryoffline": {("/data/one",): 0, ("/data/two",): 0},
        "logdirectorycordoned": {("/data/one",): 0, ("/data/two",): 0},
    }


RATE_BYTES = 50_000
VALUE_BYTES = 10_000
VALUES_COUNT = 100
TRAFFIC = {
    "kafka_server_brokertopicmetrics_replicationbytesin_total": "in",
    "kafka_server_brokertopicmetrics_replicationbytesout_total": "out",
    "kafka_server_brokertopicmetrics_reassignmentbytesin_total": "reassigned in",
    "kafka_server_brokertopicmetrics_reassignmentbytesout_total": "reassigned out",
    "kafka_server_leaderreplication_byte_rate": "leader's rate",
    "kafka_server_followerreplication_byte_rate": "follower's rate",
    "kafka_server_replicamanager_reassigningpartitions": "moving",
}


def traffic(cluster: Cluster) -> dict[str, dict[int, float]]:
    """Return who copies what, but for what is 0."""
    found = {short: read(cluster, name) for name, short in TRAFFIC.items()}
    return {short: {node: value for node, value in values.items() if value} for short, values in found.items()}


def test_what_a_throttled_move_copies_is_told_apart_from_what_replicas_copy_anyway() -> None:
    wanted = {TopicPartition("t", 0): (2, 3)}

    async def main(cluster: Cluster) -> list[dict[str, dict[int, float]]]:
        async with admin(cluster, 1) as client, cluster.producer("p", {"acks": "all"}) as producer:
            await client.create_topic(NewTopic("t", assignments=[[1, 2]]))
            for _number in range(VALUES_COUNT):
                await producer.send("t", b"0" * VALUE_BYTES, partition=0)
            found = [traffic(cluster)]
            await set_throttle(client, throttled_by(wanted, {"t": await client.describe_topic("t")}), RATE_BYTES)
            await client.alter_partition_reassignments(wanted)
            await trio.sleep(1)
            found.append(traffic(cluster))
            while await client.list_partition_reassignments():  # noqa: ASYNC110 - nobody tells of its end
                await trio.sleep(0.1)
            found.append(traffic(cluster))
        return found

    before, during, after = in_cluster(main, settings={"replica.fetch.max.bytes": str(VALUE_BYTES)})
    copied = before["in"][2]

    assert copied > VALUES_COUNT * VALUE_BYTES
    assert before == {short: {} for short in TRAFFIC.values()} | {"in": {2: copied}, "out": {1: copied}}
    assert 0 < during["reassigned in"][3] < copied
    assert during["moving"] == {1: 1}
    assert (list(during["leader's rate"]), list(during["follower's rate"])) == ([1], [3])
    assert (after["reassigned in"], after["reassigned out"]) == ({3: copied}, {1: copied})
    assert (after["in"], after["out"]) == ({2: copied, 3: copied}, {1: 2 * copied})
    assert after["moving"] == {}


ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"
LEADER = "kafka_server_raftmetrics_current_leader"


def read(cluster: Cluster, name: str) -> dict[int, float]:
    """What each of the living brokers tells of something."""
    return {
        broker_id: metric.read()[()]
        for broker_id, host in cluster.brokers.items()
        if host.broker is not None
        for metric in host.broker.parts.view.figures.metrics()
        if metric.name == name
    }


def test_one_of_several_controllers_is_active_and_all_say_which_one_leads_whoever_dies() -> None:
    async def main(cluster: Cluster) -> list[bool]:
        def agree() -> bool:
            active = [broker_id for broker_id, count in read(cluster, ACTIVE).items() if count]
            told = [*read(cluster, LEADER).values()]
            return len(active) == 1 and told == active * len(told)

        await until(agree)
        (first,) = {*read(cluster, LEADER).values()}
        victim = cluster.brokers[int(first)]
        victim.crash()
        await until(lambda: agree() and {*read(cluster, LEADER).values()} != {first})
        (second,) = {*read(cluster, LEADER).values()}
        victim.start()
        await victim.wait_serving()
        await until(agree)
        return [len(read(cluster, ACTIVE)) == 3, {*read(cluster, LEADER).values()} == {second}, first != second]

    assert in_quorum_of_three(main) == [True, True, True]
