"""A test with three brokers: a real client goes on when the leader is killed, and nothing acknowledged is lost."""

# -- snippet cluster --
from confluent_kafka import Producer

from odradek.testing.running_cluster import RunningCluster


def test_orders_outlive_the_broker_that_took_them(odradek_cluster: RunningCluster) -> None:
    cluster = odradek_cluster
    cluster.create_topic("orders", replication_factor=3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
    for number in range(100):
        producer.produce("orders", b"order %d" % number)
    assert producer.flush(30) == 0

    cluster.kill(cluster.leader("orders"))
    for number in range(100, 200):
        producer.produce("orders", b"order %d" % number)
    assert producer.flush(30) == 0

    assert [record.value for record in cluster.records("orders")] == [b"order %d" % number for number in range(200)]


# -- end of the snippet --
