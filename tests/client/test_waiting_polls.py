"""A poll that waits costs nothing, on virtual time."""

from __future__ import annotations

import pytest
import trio

from odradek.lab.simulator.logs import living

from .simulated_cluster import PROTOCOLS, SimulatedCluster, with_cluster

STEPS_MAX = 5_000
"""In a minute: some for each fetch that waits half a second, and for heartbeats."""


class StepCounter(trio.abc.Instrument):
    """Counts how often tasks of the client run; a run in which they keep each other awake ends: no time would pass."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count it, unless it is of a broker."""
        if task.context.get(living) is None:
            self.count += 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("topic", ["empty", "missing"])
def test_a_poll_that_waits_leaves_the_processor_alone(protocol: str, topic: str) -> None:
    counter = StepCounter()

    async def test(cluster: SimulatedCluster) -> None:
        async with cluster.consumer("a", protocol) as alone:
            start_s = trio.current_time()
            alone.subscribe([topic])
            trio.lowlevel.add_instrument(counter)
            assert await alone.poll(timeout_ms=60_000) == []
            assert trio.current_time() - start_s == pytest.approx(60)

    with_cluster(test, {"empty": 2})

    assert 0 < counter.count < STEPS_MAX
