"""Brokers of a test's cluster that are cut off: reached and heard by nobody, and there again once it is healed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import RequestTimedOutError
from kafka.structs import TopicPartition

from odradek.testing.running_broker import running_broker
from odradek.testing.running_cluster import RunningCluster, running_cluster
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a broker is cut off by what only epoll has")

SESSION = {"broker.session.timeout.ms": 30_000}
"""More than a busy machine takes between two lines of a test: time goes on at its own speed, too."""
MORE_THAN_A_SESSION = "35s"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(SESSION, virtual_time=True) as running:
        yield running
        running.check()


@pytest.fixture(autouse=True)
def all_are_there(cluster: RunningCluster) -> Iterator[None]:
    yield
    cluster.heal()
    for node_id in cluster.brokers:
        cluster.start(node_id)


def produce(cluster: RunningCluster, topic: str, values: range) -> list[bytes]:
    """Send numbers by librdkafka with acks=all; return those that were acknowledged, in their order."""
    acknowledged: list[bytes] = []

    def told(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(message.value() or b"")

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in values:
        producer.produce(topic, b"%d" % number, on_delivery=told)
    producer.flush(60)
    return acknowledged


def numbers(values: range) -> list[bytes]:
    return [b"%d" % number for number in values]


def test_a_leader_that_is_cut_off_acknowledges_nothing_and_forgets_what_it_alone_took(cluster: RunningCluster) -> None:
    cluster.create_topic("alone")
    leader = cluster.leader("alone")
    lonely = KafkaProducer(
        bootstrap_servers=cluster.brokers[leader].bootstrap, acks=1, retries=0, request_timeout_ms=1000
    )
    lonely.send("alone", b"0").get(timeout=30)  # it is connected to who leads
    assert produce(cluster, "alone", range(1, 10)) == numbers(range(1, 10))
    cluster.isolate(leader)
    with pytest.raises(RequestTimedOutError):
        lonely.send("alone", b"lost").get(timeout=30)
    lonely.close()
    cluster.advance(MORE_THAN_A_SESSION)

    assert cluster.leader("alone") not in (leader, -1)
    assert produce(cluster, "alone", range(10, 20)) == numbers(range(10, 20))
    cluster.heal()
    assert [record.value for record in cluster.records("alone")] == numbers(range(20))


def test_a_follower_that_is_cut_off_leaves_the_others_to_it_and_catches_up(cluster: RunningCluster) -> None:
    cluster.create_topic("followed")
    leader = cluster.leader("followed")
    follower, other = [node_id for node_id in cluster.brokers if node_id != leader]
    cluster.isolate(follower)
    cluster.advance(MORE_THAN_A_SESSION)

    assert cluster.leader("followed") == leader
    assert produce(cluster, "followed", range(10)) == numbers(range(10))
    cluster.heal()
    cluster.advance("1m")  # it is let in again, fetches, and is in sync
    cluster.stop(other)
    cluster.stop(leader)
    assert cluster.leader("followed") == follower
    consumer = KafkaConsumer(bootstrap_servers=cluster.brokers[follower].bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition("followed", 0)])
    assert [next(consumer).value for _ in range(10)] == numbers(range(10))
    consumer.close()


def test_of_one_that_dies_behind_the_cut_nobody_hears(cluster: RunningCluster) -> None:
    cluster.create_topic("unheard")
    leader = cluster.leader("unheard")
    cluster.isolate(leader)
    cluster.kill(leader)
    cluster.advance("1s")
    assert cluster.leader("unheard") == leader

    cluster.advance(MORE_THAN_A_SESSION)
    assert cluster.leader("unheard") not in (leader, -1)


def test_one_that_is_paused_is_given_up_as_time_passes(cluster: RunningCluster) -> None:
    cluster.create_topic("paused")
    leader = cluster.leader("paused")
    cluster.pause(leader)
    cluster.advance(MORE_THAN_A_SESSION)

    assert cluster.leader("paused") not in (leader, -1)
    cluster.resume(leader)


def test_brokers_and_clients_that_are_there_outlast_a_month(cluster: RunningCluster) -> None:
    cluster.create_topic("lasting")
    leader = cluster.leader("lasting")
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, acks="all")
    producer.send("lasting", b"0", timestamp_ms=cluster.now_ms()).get(timeout=30)
    cluster.advance("30d")
    producer.send("lasting", b"1", timestamp_ms=cluster.now_ms()).get(timeout=30)
    producer.close()

    assert cluster.leader("lasting") == leader
    until(lambda: [record.value for record in cluster.records("lasting")] == [b"1"])  # retention.ms is a week


def test_a_member_that_is_silent_loses_its_partitions_to_one_that_is_not(cluster: RunningCluster) -> None:
    cluster.create_topic("tasks")
    servers = cluster.bootstrap_servers
    one = KafkaConsumer("tasks", bootstrap_servers=servers, group_id="workers", client_id="one")
    until(lambda: one.poll(100) == {} and bool(one.assignment()))
    cluster.advance("5m")
    cluster.advance("1m", silent=["one"])
    produce(cluster, "tasks", range(1))
    other = KafkaConsumer("tasks", bootstrap_servers=servers, group_id="workers", auto_offset_reset="earliest")

    assert next(other).value == b"0"
    one.close(autocommit=False)
    other.close()


def test_who_is_cut_off_is_neither_started_nor_stopped(cluster: RunningCluster) -> None:
    cluster.isolate(2)
    with pytest.raises(ValueError, match="stop: broker 2 is cut off; heal"):
        cluster.stop(2)
    cluster.kill(2)
    with pytest.raises(ValueError, match="start: broker 2 is cut off; heal"):
        cluster.start(2)


def test_who_was_never_there_cannot_be_silent(cluster: RunningCluster) -> None:
    with pytest.raises(ValueError, match="no client or member is called 'nobody'"):
        cluster.advance("1s", silent="nobody")


def test_one_of_several_has_no_time_of_its_own(cluster: RunningCluster) -> None:
    with pytest.raises(ValueError, match="brokers of a cluster have one time"):
        cluster.brokers[1].advance("1s")


def test_a_single_broker_is_not_cut_off() -> None:
    with running_broker() as broker, pytest.raises(ValueError, match="only brokers of `running_cluster`"):
        broker.isolate()


def test_where_time_is_real_nobody_advances_it() -> None:
    with running_cluster(brokers=1) as cluster, pytest.raises(ValueError, match="start the cluster by `running_cl"):
        cluster.advance("1s")
