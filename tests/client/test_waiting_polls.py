"""A poll that waits costs nothing, on virtual time."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from .virtual_cluster import PROTOCOLS, virtual_cluster

STEPS_MAX = 5_000
"""In a minute: some for each fetch that waits half a second, and for heartbeats."""


class StepCounter(trio.abc.Instrument):
    """Counts how often a task runs, and cancels a run in which tasks keep each other awake: no time would pass."""

    def __init__(self) -> None:
        self.count = 0
        self.scope = trio.CancelScope()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count."""
        self.count += 1
        if self.count == 10 * STEPS_MAX:
            self.scope.cancel()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("topic", ["empty", "missing"])
def test_a_poll_that_waits_leaves_the_processor_alone(protocol: str, topic: str) -> None:
    counter = StepCounter()

    async def test() -> None:
        with counter.scope:
            async with virtual_cluster({"empty": 2}) as cluster, cluster.consumer("a", protocol) as alone:
                alone.subscribe([topic])
                assert await alone.poll(timeout_ms=60_000) == []
                assert trio.current_time() == pytest.approx(60)

    trio.run(test, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[counter])

    assert counter.count < STEPS_MAX
