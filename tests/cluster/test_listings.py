"""What clients are told of brokers right after one of them died, and what they ask all of them for."""

from __future__ import annotations

import pytest
import trio

from odradek.kernel.metadata.published_image import LOST_MS_MAX
from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, fenced_in, in_cluster, until

SOON_S = 10.0
"""Far less than a client's patience of a minute, in virtual time."""


@pytest.mark.parametrize("is_forgotten", [False, True], ids=["known by all", "known by the client alone"])
def test_who_has_left_is_not_waited_for(is_forgotten: bool) -> None:
    async def main(cluster: Cluster) -> list[object]:
        async with admin(cluster, 1) as client:
            assert await client.list_groups() == []
            cluster.brokers[3].crash()
            if is_forgotten:
                await trio.sleep(SOON_S)
            with trio.fail_after(SOON_S):
                return [await client.list_groups(), await client.list_transactions()]

    assert in_cluster(main) == [[], []]


def test_who_died_is_named_for_a_moment_longer_than_it_leads() -> None:
    async def main(cluster: Cluster) -> list[set[int]]:
        async with admin(cluster, 1) as client:
            cluster.brokers[3].crash()
            await until(lambda: fenced_in(cluster)[3])
            named = []
            for _ in range(2):
                await client.opened().update(timeout_ms=1_000)
                named.append(set(client.opened().cluster.nodes))
                await trio.sleep(LOST_MS_MAX / 1_000)
            return named

    assert in_cluster(main) == [{1, 2, 3}, {1, 2}]
