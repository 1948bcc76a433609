"""UpdateFeatures raises `kraft.version` of a cluster whose voters its configuration names, as with Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from odradek.kernel.broker import read_broker_options
from odradek.kernel.metadata.features import KRAFT_VERSION, METADATA_VERSION
from odradek.kernel.quorum.formatting import Formatting
from odradek.kernel.wire.messages.api_57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.lab.simulator.cluster import DATA_DIR, Cluster

from .simulated import admin, image_of, in_cluster, in_quorum_of_three, until
from .test_quorum_of_three import described, ids

T = TypeVar("T")
UPGRADE, SAFE_DOWNGRADE = 1, 2
SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@broker-1:9093,2@broker-2:9093,3@broker-3:9093",
}


async def begin_formatted(cluster: Cluster) -> None:
    """Have brokers serve on directories that `kafka-storage format` made."""
    for node_id, broker in cluster.brokers.items():
        options = [f"{key}={text}" for key, text in SETTINGS.items()]
        options += [f"node.id={node_id}", f"listeners=A://broker-{node_id}:1,CONTROLLER://broker-{node_id}:9093"]
        options += ["listener.security.protocol.map=A:PLAINTEXT,CONTROLLER:PLAINTEXT"]
        config = read_broker_options(config=None, environment={}, options=options, data_dir=DATA_DIR).config
        machine = broker.host.start_process().machine
        Formatting(config, machine, cluster_id="S4jBaEvCTACtMag0jR0sWw").run()
        broker.host.kill_process()
    await cluster.start()


def with_fixed_voters(main: Callable[[Cluster], Awaitable[T]]) -> T:
    """Run a task in a world with three voters whom their configuration names, and nobody founded."""
    return in_cluster(main, voters=3, begin=begin_formatted)


async def update(
    cluster: Cluster, *levels: tuple[str, int], kind: int = UPGRADE, validate_only: bool = False
) -> str | None:
    """Ask broker 2 for levels, and return why they are refused."""
    updates = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level in levels]
    broker = cluster.brokers[2].broker
    assert broker is not None
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=updates, validate_only=validate_only)
    answer = await broker.parts.metadata.calls.ask(request)
    return answer.error_message if answer.error_code else None


def has_named(cluster: Cluster) -> list[bool]:
    """Which brokers know by their own metadata that the version is raised."""
    return [image_of(each).features.get(KRAFT_VERSION) == 1 for each in cluster.brokers.values()]


def test_voters_that_are_fixed_may_change_once_the_version_is_raised_and_it_stays() -> None:
    async def main(cluster: Cluster) -> list[object]:
        await until(lambda: all(len(image_of(each).controllers) == 3 for each in cluster.brokers.values()))
        told: list[object] = [
            await update(cluster, (KRAFT_VERSION, 1), validate_only=True),
            await update(cluster, (KRAFT_VERSION, 1), (METADATA_VERSION, 1)),
            {each.directory_id.int for each in (await described(cluster, 1)).voters},
            await update(cluster, (KRAFT_VERSION, 1)),
            await update(cluster, (KRAFT_VERSION, 1)),
            await update(cluster, (KRAFT_VERSION, 0), kind=SAFE_DOWNGRADE),
        ]
        await until(lambda: all(has_named(cluster)))
        quorum = await described(cluster, 3)
        follower = next(each for each in quorum.voters if each.replica_id != quorum.leader_id)
        async with admin(cluster, quorum.leader_id) as client:
            await client.remove_raft_voter(follower.replica_id, follower.directory_id)
        for broker in cluster.brokers.values():
            broker.crash()
        for broker in cluster.brokers.values():
            broker.start()
        for broker in cluster.brokers.values():
            await broker.wait_serving()
        after = await described(cluster, 1)
        return [*told, len({each.directory_id for each in quorum.voters}), follower.replica_id in ids(after.voters)]

    trial, whole, before, raised, again, lowered, directories, is_back = with_fixed_voters(main)

    assert (trial, raised, again) == (None, None, None)
    assert str(whole).startswith("The update failed for all features since the following feature had an error: ")
    assert before == {0}, "what is refused as a whole names nobody"
    assert "Can't downgrade the version of this feature." in str(lowered)
    assert (directories, is_back) == (3, False)


def test_a_voter_that_a_new_leader_has_not_heard_of_has_no_directory_to_be_named_by() -> None:
    async def main(cluster: Cluster) -> tuple[str | None, str | None]:
        await until(lambda: all(len(image_of(each).controllers) == 3 for each in cluster.brokers.values()))
        quorum = await described(cluster, 1)
        away = next(each for each in ids(quorum.voters) if each not in (quorum.leader_id, 2))
        cluster.brokers[away].crash()
        leader = next(each for each in cluster.brokers if each == quorum.leader_id)
        cluster.brokers[leader].crash()
        cluster.brokers[leader].start()
        await cluster.brokers[leader].wait_serving()
        trial = await update(cluster, (KRAFT_VERSION, 1), validate_only=True)
        return trial, await update(cluster, (KRAFT_VERSION, 1))

    trial, told = with_fixed_voters(main)

    assert told is not None
    assert trial == told, "who only tries is told the same"
    assert "Directory id must be known for all of the voters" in told


def test_a_founded_cluster_has_the_version_from_the_beginning() -> None:
    async def main(cluster: Cluster) -> tuple[list[bool], str | None]:
        return has_named(cluster), await update(cluster, (KRAFT_VERSION, 1))

    assert in_quorum_of_three(main) == ([True] * 3, None)
