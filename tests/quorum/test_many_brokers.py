"""A controller of many brokers and partitions works in short steps, and twice as many partitions are twice the work.

What 100,000 partitions take is in `benchmarks/metadata.py`; here calls are counted, so that no machine is too slow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import trio

from odradek.kernel.controller.metadata_log import MetadataLog
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest
from tests.controller.controller_requests import create_topics, topic
from tests.dispatch.test_bounded_requests import LongestStep

from .term_nodes import Node, register

BROKERS = range(1, 31)
BUSY, STOPPING, OTHER = 2, 3, 4
PARTITIONS = 50
CALLS_MAX = 15_000
"""So many calls may a step make: a millisecond or three of work."""


class Counted(LongestStep):
    """Counts all calls, too."""

    def __init__(self) -> None:
        super().__init__()
        self.all = 0

    def end(self, name: str) -> None:
        longest, self.calls = self.calls, 0
        super().end(name)
        self.all += self.calls
        self.calls = max(longest, self.calls)


@attrs.frozen
class Took:
    """How many calls the longest step of something made, and all of it."""

    longest: int
    all: int


async def counted(work: Callable[[], Awaitable[object]]) -> Took:
    steps = Counted()
    trio.lowlevel.add_instrument(steps)
    await work()
    trio.lowlevel.remove_instrument(steps)
    return Took(steps.calls, steps.all)


class Cluster:
    """Brokers, by their heartbeats, and topics all of whose partitions one of them leads."""

    def __init__(self, metadata: MetadataLog) -> None:
        self.metadata = metadata

    async def fill(self, topics: int) -> None:
        await register(self.metadata, *BROKERS)
        replicas = {index: [BUSY, STOPPING, OTHER] for index in range(PARTITIONS)}
        for number in range(topics):
            await self.metadata.ask(create_topics(topic(f"t{number}", -1, -1, replicas)))

    async def beat(self, broker_id: int, *, stop: bool = False) -> bool:
        image = self.metadata.image
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=image.brokers[broker_id].broker_epoch,
            current_metadata_offset=image.offset,
            want_shut_down=stop,
        )
        is_over: bool = (await self.metadata.ask(request)).should_shut_down
        return is_over

    async def heartbeats(self) -> None:
        for broker_id in BROKERS:
            if broker_id not in (BUSY, STOPPING):
                await self.beat(broker_id)

    async def fence(self) -> None:
        epoch = self.metadata.image.brokers[BUSY].broker_epoch
        await self.metadata.submit(lambda controller, _: controller.change_broker(BUSY, epoch, fence=True))

    async def drain(self) -> None:
        while not await self.beat(STOPPING, stop=True):
            await self.heartbeats()

    @property
    def leaders(self) -> set[int]:
        return {state.leader for each in self.metadata.image.topics_by_name.values() for state in each.partitions}


def took(topics: int) -> dict[str, Took]:
    """Return what is done about so many topics takes."""
    found: dict[str, Took] = {}

    async def main() -> None:
        async with Node().running() as node:
            cluster = Cluster(await node.lead(1))
            await cluster.fill(topics)
            leaders = [cluster.leaders]
            for work in (cluster.heartbeats, cluster.fence, cluster.drain):
                found[work.__name__] = await counted(work)
                leaders.append(cluster.leaders)
            assert leaders == [{BUSY}, {BUSY}, {STOPPING}, {OTHER}]

    trio.run(main)
    return found


def test_steps_are_short_and_work_grows_with_the_partitions_that_it_is_about() -> None:
    small, large = took(15), took(30)

    assert {name: each for name, each in large.items() if each.longest > CALLS_MAX} == {}
    assert large["heartbeats"].all <= 1.1 * small["heartbeats"].all, "who is well costs the same, however much there is"
    for name in ("fence", "drain"):
        assert large[name].all <= 2.2 * small[name].all, name
        assert large[name].longest <= 1.2 * small[name].longest, name
