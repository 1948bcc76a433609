"""A test whose cluster is cut: a real client goes on while the leader cannot be reached, and its time passes."""

# -- snippet cut --
from confluent_kafka import Producer

from odradek.testing.running_cluster import running_cluster


def test_orders_are_taken_while_the_leader_is_cut_off() -> None:
    with running_cluster(virtual_time=True) as cluster:
        cluster.create_topic("orders")
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "socket.timeout.ms": 1000}
        )
        producer.produce("orders", b"before")
        assert producer.flush(30) == 0

        cut_off = cluster.leader("orders")
        cluster.isolate(cut_off)
        producer.produce("orders", b"meanwhile")
        cluster.advance("30s")  # broker.session.timeout.ms is nine seconds: another one leads
        assert cluster.leader("orders") != cut_off
        assert producer.flush(30) == 0
        cluster.heal()

        assert [record.value for record in cluster.records("orders")] == [b"before", b"meanwhile"]


# -- end of the snippet --
