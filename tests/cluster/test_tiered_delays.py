"""What waits in a tiered topic of a cluster comes once, though its segments have left every disk long ago."""

from __future__ import annotations

from collections import Counter

import pytest
import trio

from odradek.kernel.delay.headers import DELIVER_AFTER
from odradek.lab.simulator.cluster import Cluster
from odradek.lab.simulator.disk import Disk

from .simulated import in_cluster, until
from .test_tiered_replicas import (
    SETTINGS,
    WatchedStore,
    is_whole,
    leader_log,
    log_of,
    make_topic,
    manifest_of,
    replica_of,
    state_of,
)

DELAY_MS = 120_000
COUNT = 40
DELAYED = {"odradek.delay.enable": "true"}
RETRIED = {"odradek.retry.topic": "orders", "odradek.retry.group": "billing", "odradek.retry.levels": "120s"}


async def read(cluster: Cluster, count: int) -> list[bytes]:
    """Read so many records, and what else comes within a second."""
    found: list[bytes] = []
    async with cluster.consumer("reader", {"auto.offset.reset": "earliest", "group.id": None}) as consumer:
        consumer.assign([("t", 0)])
        while len(found) < count:
            found += [bytes(record.value) for record in await consumer.poll(timeout_ms=100)]
        with trio.move_on_after(1):
            while True:
                found += [bytes(record.value) for record in await consumer.poll(timeout_ms=100)]
    return found


@pytest.mark.parametrize("configs", [DELAYED, RETRIED], ids=["delayed", "retried"])
def test_what_waits_comes_once_from_who_began_at_the_tier_and_leads(configs: dict[str, str]) -> None:
    store = WatchedStore()

    async def main(cluster: Cluster) -> list[bytes]:
        await make_topic(cluster, 2, 3, **{**configs, "min.insync.replicas": "1"})
        victim, other = cluster.brokers[2], cluster.brokers[3]
        async with cluster.producer("producer", {"acks": "all"}) as producer:
            for number in range(COUNT):
                headers = [(DELIVER_AFTER, b"%d" % DELAY_MS)]
                await producer.send("t", b"%d" % number, partition=0, headers=headers)
                await trio.sleep(0.02)
            await until(lambda: leader_log(cluster).local_log_start_offset > COUNT)
            await until(lambda: log_of(other).local_log_start_offset > COUNT)

            victim.crash()
            victim.host.disk = Disk(cluster.world, "an empty one")
            victim.start()
            await victim.wait_serving()
            await until(lambda: len(state_of(cluster).isr) == 2)
            assert log_of(victim).log_start_offset == 0
            assert log_of(victim).local_log_start_offset > COUNT
            assert is_whole(manifest_of(cluster, store))
            other.crash()
            await until(lambda: state_of(cluster).leader == 2 and replica_of(victim).is_leader)
            await producer.send("t", b"sent last", partition=0, headers=[(DELIVER_AFTER, b"%d" % DELAY_MS)])
        return await read(cluster, COUNT + 1)

    found = in_cluster(main, settings={**SETTINGS, "follower.fetch.last.tiered.offset.enable": "true"})

    assert Counter(found) == Counter([*(b"%d" % number for number in range(COUNT)), b"sent last"])
