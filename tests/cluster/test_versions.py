"""A cluster whose brokers are exchanged one after the other for a build with newer records, and back."""

from __future__ import annotations

from contextvars import ContextVar

import pytest
import trio

from odradek.client import NewTopic
from odradek.kernel.cluster import metadata_copy
from odradek.kernel.controller import metadata_log, snapshots
from odradek.kernel.errors import ConfigError
from odradek.kernel.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_ELR,
    METADATA_VERSION_MAX,
)
from odradek.kernel.metadata.image import MetadataDelta, MetadataImage
from odradek.kernel.metadata.records import MetadataRecord, UnknownRecordError, decode_record, is_newer
from odradek.kernel.types import Buffer
from odradek.kernel.wire.messages.api_57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.lab.simulator.cluster import BrokerHost, Cluster

from .simulated import admin, image_of, in_cluster, until

OLD = METADATA_VERSION_ELR - 1
HELD_BACK = {"odradek.metadata.version.max": str(OLD)}
NEW = {"odradek.metadata.version.max": str(METADATA_VERSION_MAX)}
UPGRADE, SAFE_DOWNGRADE = 1, 2


IS_OLD_BUILD: ContextVar[bool] = ContextVar("IS_OLD_BUILD", default=False)
"""Whether what runs is a broker of a build that has no records of levels above `OLD`."""


@pytest.fixture(autouse=True)
def _builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the brokers that `start_as` starts as the old build read no newer record."""

    def decode(value: Buffer) -> MetadataRecord:
        if IS_OLD_BUILD.get() and is_newer(value, OLD):
            raise UnknownRecordError(f"metadata record of version {value[2]} is unknown")
        return decode_record(value)

    for reader in (metadata_copy, metadata_log, snapshots):
        monkeypatch.setattr(reader, "decode_record", decode)


def start_as(broker: BrokerHost, settings: dict[str, str]) -> None:
    """Let a broker begin, held back: of the old build."""
    token = IS_OLD_BUILD.set(settings == HELD_BACK)
    broker.start(settings)
    IS_OLD_BUILD.reset(token)


async def create(cluster: Cluster, node_id: int, name: str) -> None:
    """Create a topic by a broker, and wait until all know it."""
    async with admin(cluster, node_id) as client:
        await client.create_topic(NewTopic(name, 3, 3))
    await until(lambda: all(name in image_of(each).topics_by_name for each in cluster.brokers.values()))


async def restart(cluster: Cluster, node_id: int, settings: dict[str, str]) -> None:
    broker = cluster.brokers[node_id]
    await broker.stop()
    start_as(broker, settings)
    await broker.wait_serving()
    await until(lambda: not image_of(cluster.brokers[1]).brokers[node_id].is_fenced)


async def update(cluster: Cluster, *updates: tuple[str, int, int]) -> str | None:
    """Ask the controller for levels, and return why it refuses."""
    request = UpdateFeaturesRequest(
        timeout_ms=10_000,
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates
        ],
    )
    broker = cluster.brokers[1].broker
    assert broker is not None
    answer = await broker.parts.metadata.calls.ask(request)
    return answer.error_message if answer.error_code else None


def test_a_cluster_is_rolled_forward_and_back() -> None:
    async def main(cluster: Cluster) -> list[object]:
        told: list[object] = [image_of(cluster.brokers[2]).metadata_version]
        await create(cluster, 2, "old")
        for node_id in (1, 2):
            await restart(cluster, node_id, NEW)
            await create(cluster, 3, f"with-{node_id}")
        told.append(await update(cluster, (METADATA_VERSION, METADATA_VERSION_MAX, UPGRADE)))
        await restart(cluster, 3, NEW)
        told.append(await update(cluster, (METADATA_VERSION, METADATA_VERSION_MAX, UPGRADE)))
        told.append(await update(cluster, (ELIGIBLE_LEADER_REPLICAS_VERSION, 1, UPGRADE)))
        await create(cluster, 2, "new")

        down = (ELIGIBLE_LEADER_REPLICAS_VERSION, 0, SAFE_DOWNGRADE), (METADATA_VERSION, OLD, SAFE_DOWNGRADE)
        told.append(await update(cluster, *down))
        for node_id in (3, 2, 1):
            await restart(cluster, node_id, HELD_BACK)
        await create(cluster, 3, "old-again")
        told.append(image_of(cluster.brokers[3]).metadata_version)
        told.append(sorted(image_of(cluster.brokers[3]).topics_by_name))
        return told

    before, refused, raised, eligible, lowered, after, topics = in_cluster(main, settings=HELD_BACK)

    assert (before, after) == (OLD, OLD)
    assert "Broker 3 only supports versions 7-22" in str(refused)
    assert (raised, eligible, lowered) == (None, None, None)
    assert topics == ["new", "old", "old-again", "with-1", "with-2"]


FOLLOWER = {
    "process.roles": "broker",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@broker-1:9093",
}
LOWER = (ELIGIBLE_LEADER_REPLICAS_VERSION, 0, SAFE_DOWNGRADE), (METADATA_VERSION, OLD, SAFE_DOWNGRADE)


@pytest.mark.parametrize("often", [{}, {"metadata.log.max.record.bytes.between.snapshots": "2000"}])
def test_after_a_downgrade_old_builds_begin_and_come_back_that_saw_nothing_of_it(often: dict[str, str]) -> None:
    async def main(cluster: Cluster) -> list[object]:
        await create(cluster, 2, "new")
        away, later = cluster.brokers[3], cluster.add_broker(FOLLOWER)
        away.crash()
        del cluster.brokers[3], cluster.brokers[4]
        await until(lambda: image_of(cluster.brokers[1]).brokers[3].is_fenced)
        assert await update(cluster, *LOWER) is None
        cluster.brokers |= {3: away, 4: later}
        for broker in (away, later):
            start_as(broker, HELD_BACK)
            await broker.wait_serving()
        await create(cluster, 4, "old-again")
        await restart(cluster, 1, HELD_BACK)
        await create(cluster, 3, "by-the-old-controller")
        return [sorted(image_of(each).topics_by_name) for each in cluster.brokers.values()]

    assert in_cluster(main, settings=often) == [["by-the-old-controller", "new", "old-again"]] * 4


def test_an_old_build_is_refused_by_a_newer_cluster_before_it_reads_anything() -> None:
    async def main(cluster: Cluster) -> Exception:
        await create(cluster, 2, "new")
        later, ended = cluster.add_broker(FOLLOWER), trio.Event()
        failures: list[Exception] = []

        def note(error: Exception) -> None:
            failures.append(error)
            ended.set()

        later.on_failure = note
        start_as(later, HELD_BACK)
        await ended.wait()
        return failures[0]

    error: BaseException = in_cluster(main)
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]

    assert isinstance(error, ConfigError)
    assert "the cluster has finalized metadata.version at level 30, this version of odradek supports 7 to 22" in str(
        error
    )


def test_a_topic_that_two_brokers_are_asked_for_at_once_is_made_once() -> None:
    async def main(cluster: Cluster) -> list[object]:
        for node_id in (2, 3):
            broker = cluster.brokers[node_id].broker
            assert broker is not None
            broker.parts.requests.topic_maker.create_soon(["wanted"])
        await until(lambda: all("wanted" in image_of(each).topics_by_name for each in cluster.brokers.values()))
        await until(lambda: len({image_of(each).offset for each in cluster.brokers.values()}) == 1)
        return [image_of(each).topics_by_name["wanted"].topic_id for each in cluster.brokers.values()]

    assert len(set(in_cluster(main))) == 1


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_broker_that_comes_back_is_eligible_only_if_it_stopped_cleanly(is_clean: bool) -> None:
    async def main(cluster: Cluster) -> set[tuple[bool, bool]]:
        async with admin(cluster, 2) as client:
            await client.create_topic(NewTopic("t", 1, 3, {"min.insync.replicas": "3"}))
        await until(lambda: "t" in image_of(cluster.brokers[3]).topics_by_name)
        controller, third = cluster.brokers[1], cluster.brokers[3]
        first_epoch = image_of(controller).brokers[3].broker_epoch
        seen: list[tuple[bool, bool]] = []

        def look(_delta: MetadataDelta, image: MetadataImage) -> None:
            state = image.topics_by_name["t"].partitions[0]
            if 3 not in state.isr:
                seen.append((image.brokers[3].broker_epoch > first_epoch, 3 in state.eligible_leader_replicas))

        assert controller.broker is not None
        controller.broker.parts.metadata.log.add_listener(look)
        if is_clean:
            await third.stop()
        else:
            third.crash()
            await until(lambda: image_of(controller).brokers[3].is_fenced)
        third.start()
        await third.wait_serving()
        return set(seen)

    assert in_cluster(main) == {(False, True), (True, is_clean)}
