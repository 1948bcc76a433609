"""Clusters of simulated brokers: the first is the controller, too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from odradek.client.admin import Admin
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.peers.settings import ConnectionSettings
from odradek.lab.simulator.cluster import PORT, BrokerHost, Cluster
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World

T = TypeVar("T")

LIMIT_S = 600
CONNECTION = ConnectionSettings(
    bootstrap=(),
    client_id="asker",
    request_timeout_ms=30_000,
    retry_backoff_ms=100,
    send_buffer_bytes=-1,
    receive_buffer_bytes=-1,
)


@asynccontextmanager
async def three_brokers(
    world: World,
    settings: Mapping[str, str] | None = None,
    *,
    voters: int = 1,
    begin: Callable[[Cluster], Awaitable[None]] = Cluster.start,
) -> AsyncIterator[Cluster]:
    """Three brokers that serve, or that `begin` has begun; what is left of them ends with the block."""
    async with trio.open_nursery() as nursery:
        cluster = Cluster(world, nursery)
        cluster.add_brokers(3, settings or {}, voters=voters)
        await begin(cluster)
        yield cluster
        for broker in cluster.brokers.values():
            if broker.broker is not None:
                broker.crash()
        nursery.cancel_scope.cancel()


def in_cluster(
    main: Callable[[Cluster], Awaitable[T]],
    *,
    seed: int = 1,
    settings: Mapping[str, str] | None = None,
    voters: int = 1,
    begin: Callable[[Cluster], Awaitable[None]] = Cluster.start,
) -> T:
    """Run a task in a world with a cluster of three, see `three_brokers`, and return what it returns."""
    world = World(Seeds(seed))

    async def root() -> T:
        async with three_brokers(world, settings, voters=voters, begin=begin) as cluster:
            return await main(cluster)

    return run_in_world(world, root, limit_ns=LIMIT_S * SECOND)


def in_quorum_of_three(main: Callable[[Cluster], Awaitable[T]], settings: Mapping[str, str] | None = None) -> T:
    """Run a task in a world with three brokers, all of which are voters, and return what it returns."""
    return in_cluster(main, settings=settings, voters=3)


def image_of(broker: BrokerHost) -> MetadataImage:
    """The metadata that a broker that lives has."""
    assert broker.broker is not None
    return broker.broker.parts.published.image


def fenced_in(cluster: Cluster) -> dict[int, bool]:
    """Who is fenced, as the first broker knows it."""
    return {broker_id: broker.is_fenced for broker_id, broker in image_of(cluster.brokers[1]).brokers.items()}


async def until(condition: Callable[[], bool]) -> None:
    """Let time pass until something is so."""
    while not condition():  # noqa: ASYNC110 - the world tells nobody what happens in it
        await trio.sleep(0.01)


def admin(cluster: Cluster, node_id: int) -> Admin:
    """An admin client that asks this broker first."""
    settings = {"bootstrap.servers": f"broker-{node_id}:{PORT}", "client.id": f"admin-{node_id}"}
    return Admin(settings, machine=cluster.client_machine("admin"))
