"""What brokers keep of the metadata log of another node: copies, snapshots of their own and of the controller's."""

from __future__ import annotations

from odradek.client import NewTopic
from odradek.kernel.metadata.image import MetadataImage
from odradek.lab.simulator.cluster import BrokerHost, Cluster
from odradek.testing.faults import PowerLoss

from .simulated import admin, image_of, in_cluster, until

SNAPSHOTS_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "2000", "metadata.log.segment.ms": "1"}


async def make_topics(cluster: Cluster, node_id: int, first: int, count: int) -> None:
    """Create topics, one after the other."""
    async with admin(cluster, node_id) as client:
        for number in range(first, first + count):
            await client.create_topic(NewTopic(f"topic-{number}", 4, 1))


async def until_alike(cluster: Cluster) -> None:
    """Wait until all brokers have read as much."""
    await until(lambda: len({image_of(each).offset for each in cluster.brokers.values()}) == 1)


def facts(image: MetadataImage) -> tuple[object, ...]:
    """All that an image says, but for where it stands in the log."""
    return (image.topics_by_name, image.brokers, image.features, image.configs, image.next_producer_id)


def start_offset(broker: BrokerHost) -> int:
    """Where the metadata log of the controller begins."""
    assert broker.broker is not None
    return broker.broker.parts.metadata.node.feed.start_offset


def test_a_broker_that_was_away_for_long_begins_with_the_controllers_snapshot() -> None:
    async def main(cluster: Cluster) -> tuple[int, list[tuple[object, ...]], list[str]]:
        await make_topics(cluster, 2, 0, 3)
        await until_alike(cluster)
        known = image_of(cluster.brokers[3]).offset
        cluster.brokers[3].crash()
        await make_topics(cluster, 2, 3, 25)
        behind = start_offset(cluster.brokers[1]) - known
        cluster.brokers[3].start()
        await cluster.brokers[3].wait_serving()
        async with admin(cluster, 3) as client:
            listed = sorted(topic.name for topic in await client.list_topics())
        await make_topics(cluster, 3, 28, 1)
        await until_alike(cluster)
        return behind, [facts(image_of(each)) for each in cluster.brokers.values()], listed

    behind, images, listed = in_cluster(main, settings=SNAPSHOTS_OFTEN)

    assert behind > 0, "the controller's log still reached back"
    assert images[0] == images[1] == images[2]
    assert listed == sorted(f"topic-{number}" for number in range(28))


def test_a_copy_that_lost_its_end_with_the_power_is_caught_up() -> None:
    async def main(cluster: Cluster) -> list[tuple[object, ...]]:
        for style in (PowerLoss.LOST, PowerLoss.TORN):
            await make_topics(cluster, 2, 10 * list(PowerLoss).index(style), 6)
            cluster.brokers[3].crash(style)
            cluster.brokers[3].host.power_on()
            cluster.brokers[3].start()
            await cluster.brokers[3].wait_serving()
        await until_alike(cluster)
        return [facts(image_of(each)) for each in cluster.brokers.values()]

    for settings in ({}, SNAPSHOTS_OFTEN):
        images = in_cluster(main, settings=settings)

        assert images[0] == images[1] == images[2]


def test_a_broker_that_begins_later_takes_a_snapshot_and_deletes_nothing() -> None:
    async def main(cluster: Cluster) -> list[int]:
        await make_topics(cluster, 2, 0, 25)
        later = cluster.add_broker(
            {
                "process.roles": "broker",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "1@broker-1:9093",
                **SNAPSHOTS_OFTEN,
            }
        )
        later.start()
        await later.wait_serving()
        return [len(image_of(later).topics_by_name), len(image_of(cluster.brokers[1]).brokers)]

    assert in_cluster(main, settings=SNAPSHOTS_OFTEN) == [25, 4]


def test_copies_pass_over_what_the_controllers_election_writes_into_its_log() -> None:
    async def main(cluster: Cluster) -> tuple[int, list[tuple[object, ...]]]:
        await make_topics(cluster, 2, 0, 2)
        for number in (2, 3):
            cluster.brokers[1].crash()
            cluster.brokers[1].start()
            await cluster.brokers[1].wait_serving()
            await make_topics(cluster, 2, number, 1)
        await until_alike(cluster)
        return image_of(cluster.brokers[3]).epoch, [facts(image_of(each)) for each in cluster.brokers.values()]

    for settings in ({}, SNAPSHOTS_OFTEN):
        epoch, images = in_cluster(main, settings={"odradek.metadata.election": "quorum", **settings})

        assert (epoch, images[0] == images[1] == images[2]) == (3, True)
