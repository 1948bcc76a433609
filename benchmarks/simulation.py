"""What a simulated broker costs: `python -m benchmarks.simulation [--requests 3000] [--rounds 3]`.

| row | what |
|---|---|
| idle hour | an hour of virtual time of one broker that nobody asks, its start included |
| requests | of our producer to one broker, one at a time with acks=all: how many a second, both together |

Processor time of this process, which does nothing else; the best of some rounds.
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import TYPE_CHECKING

import trio

from odradek.lab.simulator.cluster import Cluster
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.trace import Trace
from odradek.lab.simulator.world import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HOUR_S = 3600


def cost_of(use: Callable[[Cluster], Awaitable[None]]) -> float:
    """Return the processor time, in seconds, of a run in which one broker serves."""
    world = World(Seeds(1), Trace(None))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            broker = cluster.add_broker({})
            broker.start()
            await broker.wait_serving()
            await use(cluster)
            await broker.stop()
            nursery.cancel_scope.cancel()

    began = time.process_time()
    run_in_world(world, main)
    return time.process_time() - began


async def idle(_cluster: Cluster) -> None:
    """Let an hour pass."""
    await trio.sleep(HOUR_S)


async def nothing(_cluster: Cluster) -> None:
    """Stop at once."""


def asking(count: int) -> Callable[[Cluster], Awaitable[None]]:
    """Return what sends so many records, each in a request of its own."""

    async def ask(cluster: Cluster) -> None:
        async with cluster.producer("client", {"linger.ms": 0, "acks": "all"}) as producer:
            for _ in range(count):
                await producer.send("records", b"value")

    return ask


def main() -> None:
    """Run the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # a host of a simulation is no port that strangers reach
    start = min(cost_of(nothing) for _ in range(arguments.rounds))
    hour = min(cost_of(idle) for _ in range(arguments.rounds))
    asked = min(cost_of(asking(arguments.requests)) for _ in range(arguments.rounds))
    print(f"start and stop  {start:8.3f} s")
    print(f"idle hour       {hour:8.3f} s")
    print(f"requests        {arguments.requests / (asked - start):8.0f} a second of one core")


if __name__ == "__main__":
    main()
