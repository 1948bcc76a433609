"""Three brokers of which nobody wants anything: what they cost is how often they wake, so they wake together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
import trio

from odradek.client.admin_values import NewTopic
from odradek.lab.simulator.cluster import Cluster
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.trace import Trace
from odradek.lab.simulator.world import World

if TYPE_CHECKING:
    from trio.lowlevel import Task

SECONDS: Final = 20
TOGETHER_S: Final = 0.003
"""What a request and its answer take, and what these have to be done."""
WAKES_MAX: Final = 20
"""A second, of all three together."""


class Wakes(trio.abc.Instrument):
    """Counts when anything ran that had slept."""

    def __init__(self) -> None:
        self.count = 0
        self._last_s = 0.0

    def before_task_step(self, task: Task) -> None:
        """Take note of a time; those that follow at once are of one wake."""
        now_s = trio.current_time()
        self.count += now_s - self._last_s > TOGETHER_S
        self._last_s = now_s


@pytest.mark.parametrize("election", ["isr", "quorum"])
def test_idle_brokers_do_together_what_they_do_now_and_then(election: str) -> None:
    world, wakes = World(Seeds(1), Trace(None)), Wakes()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            cluster.add_brokers(3, {"odradek.election": election}, voters=3)
            await cluster.start()
            async with cluster.admin("admin") as admin:
                await admin.create_topic(NewTopic("t", 9, 3))
            await trio.sleep(SECONDS)
            trio.lowlevel.add_instrument(wakes)
            await trio.sleep(SECONDS)
            trio.lowlevel.remove_instrument(wakes)
            await cluster.stop()
            nursery.cancel_scope.cancel()

    run_in_world(world, main)

    assert 0 < wakes.count <= WAKES_MAX * SECONDS, wakes.count / SECONDS
