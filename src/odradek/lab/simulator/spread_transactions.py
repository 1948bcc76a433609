"""Shell: the scenario `spread_transactions`: transactions over three brokers that crash and lose each other.

Producers, coordinators and the partitions of a transaction lie on different brokers, all with three replicas and
`min.insync.replicas=2`. Brokers but the controller's crash, lose their power, and are cut off from each other, one at a
time: the next when every replica has caught up. Then nothing aborted may have been read, and of each transaction all or
nothing, once, in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import NewTopic

from .cluster import Cluster
from .faults import DOWN_NS_MAX, Crash, arm
from .runs import Run, Scenario
from .seeds import FAULTS, WORKLOAD, between, is_chosen
from .transactions import TOPIC, Plan, TransactionLoad
from .world import MILLISECOND, SECOND, SimulationError

if TYPE_CHECKING:
    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost

QUIET_S: Final = 60
"""After so long nothing is underway any more, and what nobody ended has been aborted."""
CATCH_UP_S_MAX: Final = 300
"""So long all replicas may take until they are in sync again."""
PAUSE_NS_MIN: Final = 200 * MILLISECOND
"""Accidents are far apart here; without pauses there would be hundreds of transactions between two."""
STATE_TOPIC: Final = "__transaction_state"
SETTINGS: Final = {
    "broker.session.timeout.ms": "9000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "10000",
    "transaction.state.log.num.partitions": "3",
}


class SpreadTransactions:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._faults = run.world.seeds.stream(FAULTS, "brokers")
        drawn = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        self._plan = plan = attrs.evolve(drawn, pause_ns_max=max(drawn.pause_ns_max, PAUSE_NS_MIN))
        run.world.note("plan", *attrs.astuple(plan))
        self._cluster = Cluster(run.world, nursery)
        self._cluster.add_brokers(3, {**SETTINGS, **run.settings})
        self._are_accidents_over = False
        self._load = TransactionLoad(run, self._cluster, plan, lambda: self._are_accidents_over)

    async def run(self) -> None:
        """Let everything happen, then check."""
        await self._cluster.start()
        async with self._cluster.admin("admin") as admin:
            await admin.create_topic(NewTopic(TOPIC, self._plan.partitions))
        async with trio.open_nursery() as readers:
            readers.start_soon(self._load.consume)
            async with trio.open_nursery() as writers:
                writers.start_soon(self._load.produce)
                writers.start_soon(self._have_accidents)
            await trio.sleep(QUIET_S)
            await self._wait_in_sync()
            await self._load.check()
            readers.cancel_scope.cancel()
        await self._cluster.stop()

    # -- accidents ---------------------------------------------------------------------------------------------------

    async def _have_accidents(self) -> None:
        for number in range(self._plan.crashes):
            await self._wait_in_sync()
            await trio.sleep(between(self._faults, MILLISECOND, 5 * SECOND) / SECOND)
            await self._crash(self._cluster.brokers[self._faults.choice((2, 3))])
            if self._plan.has_trouble and number % 2 == 0:
                await self._wait_in_sync()
                await self._cut()
        await self._wait_in_sync()
        self._are_accidents_over = True

    async def _crash(self, victim: BrokerHost) -> None:
        crash = Crash.drawn(self._faults)
        if not self._plan.has_power_losses:
            crash = attrs.evolve(crash, style=None)
        await arm(self._cluster.world, victim, crash, lambda style: self._on_crash(victim, style)).wait()
        await victim.wait_ended()
        await trio.sleep(crash.down_ns / SECOND)
        if crash.style is not None:
            victim.host.power_on()
        victim.start()
        await victim.wait_serving()

    def _on_crash(self, victim: BrokerHost, style: PowerLoss | None) -> None:
        self._run.count("crashes")
        self._run.count("process crashes" if style is None else f"power losses, {style.value}")
        if self._load.open_count:
            self._run.count("crashes with a transaction open")
        if victim.broker is not None:
            runtime = victim.broker.parts.requests.coordinators.by_topic[STATE_TOPIC]
            states = [metadata.state for _partition, shard in runtime.shards() for metadata in shard.ids.values()]
            for state in states:
                self._run.count(f"crashes of a coordinator, {state.name}")

    async def _cut(self) -> None:
        """Cut what one broker sends to another, or both ways."""
        network, source = self._cluster.network, self._faults
        names = sorted(f"broker-{number}" for number in self._cluster.brokers)
        source.shuffle(names)
        one, other = (network.hosts[name] for name in names[:2])
        ways = [(one, other), (other, one)] if is_chosen(source, 0.5) else [(one, other)]
        self._run.count("cuts")
        for way in ways:
            network.cut(*way)
        await trio.sleep(between(source, MILLISECOND, 2 * DOWN_NS_MAX) / SECOND)
        for way in ways:
            network.heal(*way)

    async def _wait_in_sync(self) -> None:
        with trio.move_on_after(CATCH_UP_S_MAX):
            while not self._is_in_sync():  # noqa: ASYNC110 - the world tells nobody what happens in it
                await trio.sleep(0.1)
            return
        raise SimulationError(f"the replicas are not in sync after {CATCH_UP_S_MAX} s")

    def _is_in_sync(self) -> bool:
        controller = self._cluster.brokers[1].broker
        assert controller is not None, "the controller's broker stays"
        topics = controller.parts.published.image.topics_by_name
        return {TOPIC, STATE_TOPIC} <= topics.keys() and all(
            len(state.isr) == len(self._cluster.brokers) for topic in topics.values() for state in topic.partitions
        )


async def spread_transactions(run: Run) -> None:
    """Run the scenario."""
    async with trio.open_nursery() as nursery:
        await SpreadTransactions(run, nursery).run()


SPREAD_TRANSACTIONS: Final = Scenario(
    "spread_transactions",
    "three brokers: producers commit and abort, while brokers crash and lose each other",
    spread_transactions,
    (
        "crashes with a transaction open",
        "process crashes",
        "crashes of a coordinator, ONGOING",
        "transactions, aborted",
    ),
)
