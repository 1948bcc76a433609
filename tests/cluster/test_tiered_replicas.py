"""A tiered topic on three brokers, on virtual time: one at a time sends, and who begins anew begins at the tier."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from odradek.client import NewTopic, ResourceType
from odradek.client.producer import Producer
from odradek.kernel.api import Buffer, StoreUnavailableError
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.partitions.replica import Replica
from odradek.lab.simulator.cluster import BrokerHost, Cluster
from odradek.lab.simulator.disk import Disk
from odradek.plugins.storage_tiered.log import TieredPartitionLog
from odradek.plugins.storage_tiered.manifest import Manifest
from odradek.plugins.storage_tiered.manifests import load_newest
from odradek.plugins.storage_tiered.stores import give_memory
from odradek.testing.object_stores import MemoryObjectStore

from .simulated import admin, image_of, in_cluster, until
from .test_idempotent_producers import reassign
from .test_replicas import read_all

STORE: Final = "tiered-replicas"
SETTINGS: Final = {
    "broker.session.timeout.ms": "9000",
    "default.replication.factor": "3",
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "min.insync.replicas": "2",
    "odradek.tiered.store": f"memory://{STORE}",
    "remote.log.manager.task.interval.ms": "300",
    "remote.log.storage.system.enable": "true",
}
TIERED: Final = {
    "remote.storage.enable": "true",
    "segment.ms": "100",
    "local.retention.ms": "1000",
    "flush.messages": "1",
}
PAUSE_S: Final = 0.02
"""Between two records: some of them share a segment."""


class WatchedStore(MemoryObjectStore):
    """A store that tells of every segment that is put, before it is there; who is told may have it refused."""

    def __init__(self) -> None:
        super().__init__(f"memory://{STORE}")
        self.on_segment: Callable[[], bool] = lambda: True
        give_memory(STORE, self)

    def put(self, name: str, data: Buffer | Path) -> None:
        if name.endswith(".log") and not self.on_segment():
            raise StoreUnavailableError(f"{name} does not arrive")
        super().put(name, data)


async def make_topic(cluster: Cluster, *replicas: int, **configs: str) -> None:
    async with admin(cluster, 1) as client:
        await client.create_topic(NewTopic("t", configs={**TIERED, **configs}, assignments=[replicas]))
    await until(lambda: all("t" in image_of(each).topics_by_name for each in cluster.brokers.values() if each.broker))


def state_of(cluster: Cluster) -> PartitionState:
    return image_of(cluster.brokers[1]).topics_by_name["t"].partitions[0]


def replica_of(host: BrokerHost) -> Replica:
    assert host.broker is not None
    return host.broker.parts.logs.replicas.get("t", 0)


def log_of(host: BrokerHost) -> TieredPartitionLog:
    log = replica_of(host).log
    assert isinstance(log, TieredPartitionLog)
    return log


def leader_log(cluster: Cluster) -> TieredPartitionLog:
    return log_of(cluster.brokers[state_of(cluster).leader])


def manifest_of(cluster: Cluster, store: MemoryObjectStore) -> Manifest:
    newest = load_newest(store, replica_of(cluster.brokers[state_of(cluster).leader]).partition)
    assert newest is not None
    return newest


class Writer:
    """Writes numbers, one after the other, with one idempotent producer."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.count = 0

    async def write(self, count: int) -> None:
        for _ in range(count):
            await self._producer.send("t", b"%d" % self.count, partition=0)
            self.count += 1
            await trio.sleep(PAUSE_S)

    async def write_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.write(1)

    def written(self) -> list[bytes]:
        return [b"%d" % number for number in range(self.count)]


def writer_settings() -> dict[str, object]:
    return {"acks": "all", "enable.idempotence": True, "request.timeout.ms": 2000}


def is_whole(manifest: Manifest) -> bool:
    """Say whether segments follow each other from the log's start on."""
    segments = manifest.segments
    return segments[0].base_offset <= manifest.log_start_offset and not manifest.gaps


def test_who_leads_next_sends_on_where_a_leader_died_in_an_upload_and_who_begins_anew_begins_at_the_tier() -> None:
    store = WatchedStore()

    async def main(cluster: Cluster) -> None:
        await make_topic(cluster, 2, 3, 1)
        victim = cluster.brokers[2]
        sent: list[int] = []

        def dies_in_the_fourth() -> bool:
            sent.append(state_of(cluster).leader)
            if len(sent) == 4:
                victim.crash()
            return len(sent) != 4

        store.on_segment = dies_in_the_fourth
        async with cluster.producer("producer", writer_settings()) as producer:
            writer = Writer(producer)
            await writer.write_until(lambda: len(sent) >= 8)
            assert sent[:8] == [2, 2, 2, 2, 3, 3, 3, 3]

            await writer.write_until(lambda: leader_log(cluster).local_log_start_offset > 20)
            assert is_whole(manifest_of(cluster, store))

            victim.host.disk = Disk(cluster.world, "an empty one")
            victim.start()
            await victim.wait_serving()
            await writer.write_until(lambda: len(state_of(cluster).isr) == 3)
            begun = log_of(victim)
            assert begun.log_start_offset == 0
            assert begun.local_log_start_offset > 20
            assert begun.epoch_entries()[0] == (0, 0)

            cluster.brokers[3].crash()
            await until(lambda: state_of(cluster).leader == 2 and replica_of(victim).is_leader)
            end = manifest_of(cluster, store).end_offset
            await writer.write_until(lambda: manifest_of(cluster, store).end_offset > end + 20)
        assert manifest_of(cluster, store).leader_epoch == state_of(cluster).leader_epoch
        assert is_whole(manifest_of(cluster, store))
        assert await read_all(cluster) == writer.written()

    in_cluster(main, settings=SETTINGS)


def test_every_broker_keeps_its_own_local_retention_and_a_deleted_topic_leaves_nothing() -> None:
    store = WatchedStore()

    async def main(cluster: Cluster) -> None:
        await make_topic(cluster, 2, 3, 1)
        senders: set[int] = set()

        def note_sender() -> bool:
            senders.add(state_of(cluster).leader)
            return True

        store.on_segment = note_sender
        logs = [log_of(host) for host in cluster.brokers.values()]
        async with cluster.producer("producer", writer_settings()) as producer:
            writer = Writer(producer)
            await writer.write_until(lambda: all(log.local_log_start_offset > 10 for log in logs))
        assert senders == {2}
        assert {log.log_start_offset for log in logs} == {0}
        assert await read_all(cluster) == writer.written()

        async with admin(cluster, 3) as client:
            await client.delete_topic("t")
        await until(lambda: set(store.objects) == {"odradek.json"})
        await trio.sleep(5)
        assert set(store.objects) == {"odradek.json"}

    in_cluster(main, settings=SETTINGS)


def test_a_leader_that_was_not_in_sync_sends_on_from_where_its_own_log_parts_from_what_was_sent() -> None:
    """Broker 3 is away while 2 sends on and lets go, leads alone when 2 is gone, and is followed by 2 afterwards."""
    store = WatchedStore()

    async def main(cluster: Cluster) -> None:
        await make_topic(cluster, 2, 3, **{"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
        first, second = cluster.brokers[2], cluster.brokers[3]
        async with cluster.producer("producer", writer_settings()) as producer:
            writer = Writer(producer)
            await writer.write_until(lambda: leader_log(cluster).local_log_start_offset > 10)
            await until(lambda: log_of(second).log_end_offset == writer.count)
            second.crash()
            common = writer.count
            await writer.write_until(lambda: log_of(first).local_log_start_offset > common + 10)
            sent = manifest_of(cluster, store)
            first.crash()
            second.start()
            await until(lambda: state_of(cluster).leader == 3 and replica_of(second).is_leader)
            lost = range(log_of(second).log_end_offset, writer.count)
            assert len(lost) > 10, "it was not in sync"

            first_of_its_own = writer.count
            await writer.write_until(lambda: manifest_of(cluster, store).end_offset > sent.end_offset + 20)
        written = [b"%d" % number for number in range(first_of_its_own) if number not in lost]
        written += writer.written()[first_of_its_own:]
        now = manifest_of(cluster, store)
        assert is_whole(now)
        assert now.leader_epoch == state_of(cluster).leader_epoch
        assert await read_all(cluster) == written
        gone = {segment.uid for segment in sent.segments} - {segment.uid for segment in now.segments}
        assert {segment.uid for segment in now.abandoned} == gone != set()
        assert set(now.object_names()) <= set(store.objects), "what nobody reads any more is there all the same"

        first.start()
        await until(lambda: len(state_of(cluster).isr) == 2)
        second.crash()
        await until(lambda: state_of(cluster).leader == 2 and replica_of(first).is_leader)
        async with cluster.producer("another", writer_settings()) as producer:
            writer = Writer(producer)
            await writer.write_until(lambda: manifest_of(cluster, store).end_offset > now.end_offset + 20)
        assert is_whole(manifest_of(cluster, store))
        assert await read_all(cluster) == written + writer.written()

    in_cluster(main, settings=SETTINGS)


async def switch(cluster: Cluster, value: str) -> None:
    async with admin(cluster, 1) as client:
        await client.alter_configs(ResourceType.TOPIC, "t", {"remote.storage.enable": value})


def test_a_broker_that_is_down_while_its_topic_loses_its_tier_and_gets_it_again_goes_on_with_the_others() -> None:
    store = WatchedStore()

    async def main(cluster: Cluster) -> None:
        await make_topic(cluster, 2, 3, 1, **{"remote.log.delete.on.disable": "true"})
        away = cluster.brokers[3]
        async with cluster.producer("producer", writer_settings()) as producer:
            writer = Writer(producer)
            await writer.write_until(lambda: log_of(away).local_log_start_offset > 10)
            before = manifest_of(cluster, store)
            away.crash()
            await writer.write(5)
            await switch(cluster, "false")
            await until(lambda: not manifest_of(cluster, store).segments)
            assert manifest_of(cluster, store).version > before.version
            assert not [name for name in store.objects if name.endswith(".log")]
            begins = replica_of(cluster.brokers[2]).log.log_start_offset
            await writer.write(5)
            await switch(cluster, "true")
            await writer.write_until(lambda: leader_log(cluster).local_log_start_offset > begins + 5)

            away.start()
            await until(lambda: len(state_of(cluster).isr) == 3)
            await writer.write_until(lambda: log_of(away).local_log_start_offset > begins + 20)
            cluster.brokers[2].crash()
            await until(lambda: state_of(cluster).leader == 3 and replica_of(away).is_leader)
            end = manifest_of(cluster, store).end_offset
            await writer.write_until(lambda: manifest_of(cluster, store).end_offset > end + 20)
        now = manifest_of(cluster, store)
        assert is_whole(now)
        assert set(now.object_names()) <= set(store.objects)
        assert log_of(away).log_start_offset == begins
        assert await read_all(cluster) == writer.written()[begins:]

    in_cluster(main, settings=SETTINGS)


def test_a_tiered_replica_without_a_record_moves_away_and_its_broker_lives_on() -> None:
    WatchedStore()

    async def main(cluster: Cluster) -> None:
        await make_topic(cluster, 2, 3)
        left = cluster.brokers[2]
        await reassign(cluster, [3, 1])
        await until(lambda: state_of(cluster).replicas == (3, 1))
        await until(lambda: image_of(left).topics_by_name["t"].partitions[0].replicas == (3, 1))
        async with cluster.producer("producer", writer_settings()) as producer:
            await Writer(producer).write(3)
        assert left.broker is not None
        assert left.broker.parts.logs.replicas.topics["t"].elsewhere

    in_cluster(main, settings=SETTINGS)
