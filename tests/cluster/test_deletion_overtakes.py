"""A topic is deleted while 10,000 Produces for it are queued: the deletion overtakes them, and all are answered.

In Kafka's older clusters the controller told a broker so by StopReplica, which waited behind the Produces of the same
queue. Here it is a record of the metadata, which the broker fetches by itself.
"""

from __future__ import annotations

from collections import Counter

import trio

from odradek.client import NewTopic
from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.lab.simulator.cluster import PORT, Cluster

from .simulated import CONNECTION, admin, image_of, in_cluster, until

QUEUED = 10_000
GONE = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER}
PATIENCE_MS = 60_000


def produce(cluster: Cluster, topic: str) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(None, b"an order", timestamp=0)
    topic_id = image_of(cluster.brokers[1]).topics_by_name[topic].topic_id
    data = PartitionProduceData(index=0, records=builder.build())
    return ProduceRequest(
        acks=-1, timeout_ms=PATIENCE_MS, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])]
    )


def test_a_deletion_does_not_wait_for_what_is_queued_and_ends_its_wait() -> None:
    async def main(cluster: Cluster) -> tuple[Counter[ErrorCode], float]:
        async with admin(cluster, 1) as client:
            await client.create_topic(NewTopic("orders", assignments=[[2, 3]]))
        await until(lambda: all("orders" in image_of(each).topics_by_name for each in cluster.brokers.values()))
        hosts = [cluster.brokers[number].host.host for number in (2, 3)]
        cluster.network.cut(hosts[1], hosts[0])  # so the first one waits for its follower, and the others for it
        network = cluster.client_machine("shop").network
        async with open_connection("broker-2", PORT, CONNECTION, network=network) as connection:
            queued = [connection.queue(produce(cluster, "orders"), timeout_ms=PATIENCE_MS) for _ in range(QUEUED)]
            await trio.sleep(1)
            assert not any(pending.done.is_set() for pending in queued)
            began_s = trio.current_time()
            async with admin(cluster, 1) as client:
                await client.delete_topic("orders")
            answers = [await pending.answer() for pending in queued]
        codes = [error_code(each.responses[0].partition_responses[0].error_code) for each in answers]
        return Counter(codes), trio.current_time() - began_s

    codes, took_s = in_cluster(main)

    assert codes.total() == QUEUED
    assert set(codes) <= GONE
    assert took_s < 5, "they waited for the time-out of the follower, or of the requests"
