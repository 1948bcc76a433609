"""The broker beside the controller ends, and comes back: what it led is led by others, who serve meanwhile."""

from __future__ import annotations

from odradek.client import NewTopic, Producer
from odradek.lab.simulator.cluster import PORT, Cluster

from .simulated import admin, image_of, in_cluster, until


def test_the_controllers_broker_hands_over_what_it_leads_and_is_not_waited_for_while_it_is_away() -> None:
    async def main(cluster: Cluster) -> tuple[list[int], list[int], bool]:
        async with admin(cluster, 2) as client:
            await client.create_topic(NewTopic("orders", assignments=[[1, 2, 3], [1, 3, 2], [3, 1, 2]]))
            await client.create_topic(NewTopic("alone", assignments=[[1]]))
        await until(lambda: all("alone" in image_of(each).topics_by_name for each in cluster.brokers.values()))
        first, second = cluster.brokers[1], cluster.brokers[2]
        settings = {"bootstrap.servers": f"broker-2:{PORT}", "client.id": "shop"}
        async with Producer(settings, machine=cluster.client_machine("shop")) as producer:
            for partition in range(3):  # it has its id then: those come from the controller
                await producer.send("orders", b"an order", partition=partition)
            await first.stop()
            leaders = [state.leader for state in image_of(second).topics_by_name["orders"].partitions]
            told = [await producer.send("orders", b"another", partition=partition) for partition in range(3)]
        first.start()
        await first.wait_serving()
        await until(lambda: image_of(second).topics_by_name["alone"].partitions[0].leader == 1)
        await until(lambda: 1 in image_of(second).topics_by_name["orders"].partitions[0].isr)
        return leaders, [each.offset for each in told], image_of(second).brokers[1].in_controlled_shutdown

    leaders, offsets, is_leaving = in_cluster(main)

    assert leaders == [2, 3, 3]
    assert offsets == [1, 1, 1]
    assert not is_leaving
