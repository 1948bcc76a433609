"""Brokers without an id join a cluster on virtual time: each takes one that is free, and keeps it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import pytest
import trio

from odradek.kernel.cluster.joining import joined_config
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.errors import ConfigError, CorruptionError, StorageError, UnansweredError
from odradek.kernel.machine.files import read_file, replace_file
from odradek.kernel.machine.system.machine import real_machine
from odradek.lab.simulator.cluster import BROKER_SETTINGS, CONTROLLER_PORT, DATA_DIR, PORT, BrokerHost, Cluster
from odradek.lab.simulator.machine import SimulatedHost
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World

from .simulated import LIMIT_S, image_of, until

T = TypeVar("T")

OF_CLIENTS = f"broker-2:{PORT}"
ANY = ",".join(f"broker-{number}:{PORT}" for number in (1, 2, 3))
OF_CONTROLLERS = f"broker-3:{CONTROLLER_PORT}"
TIMEOUT = {"initial.broker.registration.timeout.ms": "3000"}


def beside_three(main: Callable[[Cluster], Awaitable[T]], *, seed: int = 1, voters: int = 3) -> T:
    """Run a task in a world with three brokers that keep the metadata, and return what it returns."""
    world = World(Seeds(seed))

    async def root() -> T:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            cluster.add_brokers(3, {}, voters=voters)
            await cluster.start()
            result = await main(cluster)
            nursery.cancel_scope.cancel()
        return result

    return run_in_world(world, root, limit_ns=LIMIT_S * SECOND)


def newcomer(cluster: Cluster, name: str, address: str, settings: Mapping[str, str] | None = None) -> BrokerHost:
    """A host whose broker has no id, as `odradek serve --join ADDRESS` starts it; it does not live yet."""
    host = SimulatedHost(cluster.world, cluster.network, name)
    own = {
        "process.roles": "broker",
        "listeners": f"PLAINTEXT://{name}:{PORT}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": address,
    }
    return BrokerHost(cluster, host, {**BROKER_SETTINGS, **own, **(settings or {})})


def id_of(broker: BrokerHost) -> int:
    assert broker.broker is not None
    return broker.broker.options.config.node_id


def kept_id(broker: BrokerHost) -> int:
    """The id that its directory says."""
    assert broker.broker is not None
    return decode_meta_properties(read_file(broker.broker.machine.files, DATA_DIR / META_PROPERTIES)).node_id


async def failure_of(broker: BrokerHost) -> Exception:
    """What a broker ends by that is started now."""
    failures: list[Exception] = []
    broker.on_failure = failures.append
    broker.start()
    await broker.wait_ended()
    error = failures[0]
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@pytest.mark.parametrize("address", [OF_CLIENTS, OF_CONTROLLERS])
def test_who_joins_at_once_by_any_address_takes_different_ids_and_keeps_them(address: str) -> None:
    async def main(cluster: Cluster) -> list[list[int]]:
        joining = [newcomer(cluster, f"later-{number}", address) for number in range(4)]
        for broker in joining:
            broker.start()
        for broker in joining:
            await broker.wait_serving()
        told = [[id_of(broker) for broker in joining]]
        for broker in joining:
            broker.crash()
        for broker in reversed(joining):
            broker.start()
            await broker.wait_serving()
        told.append([id_of(broker) for broker in joining])
        await until(lambda: len(image_of(joining[0]).brokers) == 7)
        return [*told, sorted(image_of(joining[0]).brokers)]

    first, again, known = beside_three(main)

    assert sorted(first) == [1001, 1002, 1003, 1004]
    assert again == first
    assert known == [1, 2, 3, 1001, 1002, 1003, 1004]


def test_a_broker_without_a_disk_joins_one_that_keeps_the_metadata_alone() -> None:
    async def main(cluster: Cluster) -> int:
        joining = newcomer(cluster, "later", OF_CLIENTS, {"odradek.storage": "memory"})
        joining.start()
        await joining.wait_serving()
        return id_of(joining)

    assert beside_three(main, voters=1) == 1001


@pytest.mark.parametrize("seed", range(1, 4))
def test_ids_differ_although_the_controller_dies_while_they_are_taken(seed: int) -> None:
    async def main(cluster: Cluster) -> tuple[list[int], list[int]]:
        joining = [newcomer(cluster, f"later-{number}", ANY) for number in range(3)]
        for broker in joining:
            broker.start()
        await trio.sleep(0.004 * seed)
        known = cluster.brokers[1].broker
        assert known is not None
        figures = known.parts.metadata.calls.kept().quorum_figures()
        assert figures is not None
        cluster.brokers[figures.leader_id].crash()
        for broker in joining:
            await broker.wait_serving()
        return [id_of(broker) for broker in joining], [kept_id(broker) for broker in joining]

    ids, kept = beside_three(main, seed=seed)

    assert len(set(ids)) == 3
    assert kept == ids


def test_a_broker_alone_takes_nobody_in_and_says_so() -> None:
    async def main(cluster: Cluster) -> Exception:
        alone = newcomer(cluster, "alone", "", {"process.roles": "broker,controller"})
        alone.start()
        await alone.wait_serving()
        return await failure_of(newcomer(cluster, "later", f"alone:{PORT}"))

    failure = beside_three(main)

    assert isinstance(failure, ConfigError)
    assert "the broker at alone:9092 keeps its metadata alone, and takes nobody in" in str(failure)


def test_where_nobody_is_that_is_said_in_the_end() -> None:
    async def main(cluster: Cluster) -> Exception:
        return await failure_of(newcomer(cluster, "later", "broker-1:4711", TIMEOUT))

    failure = beside_three(main)

    assert isinstance(failure, UnansweredError)
    assert "no controller answered at broker-1:4711 within 3000 ms" in str(failure)


def test_a_broker_that_is_said_to_be_of_another_cluster_takes_no_id() -> None:
    async def main(cluster: Cluster) -> tuple[Exception, list[int]]:
        other = {"odradek.cluster.id": "S4jBaEvCTACtMag0jR0sWw"}
        failure = await failure_of(newcomer(cluster, "later", OF_CONTROLLERS, other))
        return failure, sorted(image_of(cluster.brokers[1]).brokers)

    failure, known = beside_three(main)

    assert isinstance(failure, ConfigError)
    assert ", and not S4jBaEvCTACtMag0jR0sWw" in str(failure)
    assert known == [1, 2, 3]


FOREIGN = MetaProperties("S4jBaEvCTACtMag0jR0sWw", 7, UUID(int=7))


@pytest.mark.parametrize(
    ("content", "kind", "what"),
    [
        (encode_meta_properties(FOREIGN), StorageError, "belongs to cluster S4jBaEvCTACtMag0jR0sWw, not to"),
        (b"node.id=7", CorruptionError, "/data/meta.properties: not a meta.properties"),
    ],
)
def test_a_directory_that_is_not_this_clusters_is_refused_and_no_id_is_taken(
    content: bytes, kind: type[Exception], what: str
) -> None:
    async def main(cluster: Cluster) -> tuple[Exception, list[int]]:
        later = newcomer(cluster, "later", OF_CLIENTS)
        files = later.host.start_process().machine.files
        files.mkdir(DATA_DIR)
        replace_file(files, DATA_DIR / META_PROPERTIES, content, is_durable=True)
        later.host.kill_process()
        return await failure_of(later), sorted(image_of(cluster.brokers[1]).brokers)

    failure, known = beside_three(main)

    assert isinstance(failure, kind)
    assert what in str(failure)
    assert known == [1, 2, 3]


def test_a_directory_that_cannot_be_read_may_say_an_id_so_none_is_taken(tmp_path: Path) -> None:
    (tmp_path / META_PROPERTIES).mkdir()
    texts = {
        "log.dirs": str(tmp_path),
        "process.roles": "broker",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",
    }
    config = BrokerConfig(builtin_registry(), {key: Setting(text, "") for key, text in texts.items()})

    with pytest.raises(StorageError, match=r"cannot .*meta\.properties"):
        trio.run(joined_config, config, real_machine())
