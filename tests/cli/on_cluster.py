"""Commands against three brokers on the simulator's time."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs

from odradek.cli import build_parser
from odradek.cli.cluster_calls import ClusterCalls
from odradek.client import Admin
from odradek.lab.simulator.cluster import Cluster
from tests.cluster.simulated import admin, in_cluster


def parsed(*words: str) -> argparse.Namespace:
    """Return what a command line says."""
    return build_parser(words).parse_args(words)


@attrs.frozen
class Commands:
    """A cluster, and somebody who works on it."""

    cluster: Cluster
    admin: Admin

    async def run(self, work: Callable[[argparse.Namespace, ClusterCalls], Awaitable[Any]], *words: str) -> int:
        """Do the work of a command; return its exit status."""
        topics = {topic.name: topic for topic in await self.admin.list_topics(with_internal=True)}
        status: int | None = await work(parsed(*words), ClusterCalls(self.admin, topics))
        return status or 0


@asynccontextmanager
async def commands(cluster: Cluster) -> AsyncIterator[Commands]:
    """Work on a cluster for the time of an `async with`."""
    async with admin(cluster, 1) as opened:
        yield Commands(cluster, opened)


def on_three_brokers(test: Callable[[Commands], Awaitable[None]]) -> None:
    """Run a test against three brokers, the first of which keeps the metadata."""

    async def main(cluster: Cluster) -> None:
        async with commands(cluster) as opened:
            await test(opened)

    in_cluster(main)
