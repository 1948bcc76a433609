"""What an admin client asks every broker for, right after one of them died: the others tell what there is."""

from __future__ import annotations

import pytest
import trio

from odradek.lab.simulator.cluster import Cluster

from .simulated import admin, in_cluster

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
