"""Three brokers inside a test's process: whoever ends, another one leads; who comes back has what it had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.testing.running_cluster import RunningCluster, running_cluster
from tests.waiting import until

SESSION = {"broker.session.timeout.ms": 2_000, "broker.heartbeat.interval.ms": 100}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(SESSION) as running:
        yield running
        running.check()


def send(cluster: RunningCluster, topic: str, values: range) -> None:
    """Send numbers with acks=all, and see that each is acknowledged."""
    failures: list[KafkaError] = []

    def told(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
    for number in values:
        producer.produce(topic, b"%d" % number, on_delivery=told)
    assert producer.flush(60) == 0
    assert failures == []


def numbers(cluster: RunningCluster, topic: str) -> list[int]:
    return [int(record.value or b"") for record in cluster.records(topic)]


def test_whoever_leads_may_be_killed_and_comes_back(cluster: RunningCluster) -> None:
    cluster.create_topic("killed")
    for turn in range(3):
        leader = cluster.leader("killed")
        send(cluster, "killed", range(turn * 20, turn * 20 + 10))
        cluster.kill(leader)
        send(cluster, "killed", range(turn * 20 + 10, turn * 20 + 20))
        assert cluster.leader("killed") != leader
        cluster.start(leader)

    assert numbers(cluster, "killed") == list(range(60))


def test_one_that_is_stopped_hands_over_what_it_leads_before_it_ends(cluster: RunningCluster) -> None:
    cluster.create_topic("stopped")
    leader = cluster.leader("stopped")
    cluster.stop(leader)

    assert cluster.leader("stopped") not in (leader, -1)
    send(cluster, "stopped", range(10))
    cluster.start(leader)
    assert numbers(cluster, "stopped") == list(range(10))


def test_one_that_is_paused_is_given_up_after_its_session_and_loses_nothing(cluster: RunningCluster) -> None:
    cluster.create_topic("paused")
    send(cluster, "paused", range(10))
    leader = cluster.leader("paused")
    cluster.pause(leader)
    until(lambda: cluster.leader("paused") not in (leader, -1))
    cluster.resume(leader)

    send(cluster, "paused", range(10, 20))
    assert numbers(cluster, "paused") == list(range(20))


def test_a_topic_may_have_fewer_replicas(cluster: RunningCluster) -> None:
    cluster.create_topic("alone", partitions=3, replication_factor=1, configs={"min.insync.replicas": "1"})

    assert {cluster.leader("alone", partition) for partition in range(3)} == {1, 2, 3}


def test_who_is_not_there_is_named(cluster: RunningCluster) -> None:
    with pytest.raises(ValueError, match="no broker 4; it has 1, 2, 3"):
        cluster.kill(4)
    with pytest.raises(ValueError, match="no partition 0 of a topic 'nothing'"):
        cluster.leader("nothing")


def test_the_data_stays_where_it_is_told_to(tmp_path: Path) -> None:
    with running_cluster(brokers=2, data_dir=tmp_path) as cluster:
        cluster.create_topic("kept")
        send(cluster, "kept", range(10))
    with running_cluster(brokers=2, data_dir=tmp_path) as cluster:
        assert numbers(cluster, "kept") == list(range(10))


@pytest.mark.parametrize(
    ("settings", "brokers", "reason"),
    [({"node.id": 7, "log.dirs": "/x"}, 3, "log.dirs, node.id: each broker"), ({}, 0, "a cluster has brokers")],
)
def test_what_no_cluster_can_be_is_refused(settings: dict[str, object], brokers: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason), running_cluster(settings, brokers=brokers):
        pytest.fail("it started")


def test_a_voter_that_was_killed_is_where_the_others_know_it_and_the_next_may_be_killed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_cluster(voters=3) as cluster:
        for node_id in cluster.brokers:
            cluster.kill(node_id)
            cluster.create_topic(f"without-{node_id}")
            cluster.start(node_id)
    assert "all the same" not in caplog.text, "each that stopped left what it had to the others, and the last to nobody"


@pytest.mark.parametrize("voters", [-1, 4])
def test_there_are_not_more_voters_than_brokers(voters: int) -> None:
    with (
        pytest.raises(ValueError, match=f"{voters} voters among 3 brokers"),
        running_cluster(voters=voters),
    ):
        pass


def test_a_configuration_file_counts_for_all_nodes_under_the_settings(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text('[broker]\n"default.replication.factor" = 2\n"num.partitions" = 5\n')
    with running_cluster({"num.partitions": 4}, config=config) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic("orders")])["orders"].result(60)
        partitions = admin.list_topics("orders", 60).topics["orders"].partitions.values()

    assert [len(each.replicas) for each in partitions] == [2] * 4


def test_what_each_node_has_for_itself_may_not_stand_in_the_file_of_all(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text('[broker]\n"node.id" = 7\n')
    with (
        pytest.raises(ValueError, match=r"node\.id: each broker of a cluster has its own"),
        running_cluster(config=config),
    ):
        pass
