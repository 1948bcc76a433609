"""Shell: the scenario `spread_transactions`: transactions over three brokers that crash, stand still, lose each other.

Producers, coordinators and the partitions of a transaction lie on different brokers, all with three replicas and
`min.insync.replicas=2`; with `--set odradek.election=quorum`, or `odradek.internal.election=quorum`, replicas vote.
Brokers crash, lose their power, alone or as many at once as `promises.py` allows, stand still, and are cut off from
each other: the next when every replica has caught up. Then nothing aborted may have been read, and of each transaction
all or nothing, once, in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import NewTopic

from .cluster import Cluster
from .cluster_accidents import SETTINGS, ClusterAccidents
from .pace import Pace
from .promises import losses_of, votes_in
from .runs import Run, Scenario, main_of
from .seeds import FAULTS, WORKLOAD, between
from .transactions import TOPIC, Plan, TransactionLoad
from .world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost

QUIET_S: Final = 60
"""After so long nothing is underway any more, and what nobody ended has been aborted."""
HASTE: Final = 8
"""So many transactions after an accident has begun, hit somebody or ended producers take their time."""
LOOK_S: Final = 0.001
"""So often somebody looks whether a transaction is open: then an accident may come."""
STATE_TOPIC: Final = "__transaction_state"


class SpreadTransactions:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._faults = run.world.seeds.stream(FAULTS, "brokers")
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        self._cluster = Cluster(run.world, nursery)
        self._cluster.add_brokers(3, {**SETTINGS, "transaction.state.log.num.partitions": "3", **run.settings})
        self._accidents = ClusterAccidents(
            run,
            self._cluster,
            self._faults,
            {TOPIC, STATE_TOPIC},
            self._on_crash,
            has_power_losses=plan.has_power_losses,
        )
        self._are_accidents_over = False
        self._pace = Pace(HASTE, plan.pause_ns_max)
        self._load = TransactionLoad(
            run, self._cluster, plan, lambda: self._are_accidents_over, self._pace.pause_ns_max
        )

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
            await self._accidents.wait_in_sync()
            await self._load.check()
            readers.cancel_scope.cancel()
        await self._cluster.stop()

    # -- accidents ---------------------------------------------------------------------------------------------------

    async def _have_accidents(self) -> None:
        for number in range(self._plan.crashes):
            await self._accidents.wait_in_sync()
            await trio.sleep(between(self._faults, MILLISECOND, 5 * SECOND) / SECOND)
            # The first is a crash: in a run without one coordinators would not have died.
            choices = (self._accidents.crash, self._crash_several, self._accidents.pause)[: 2 if not number else 3]
            await self._befall(self._faults.choice(choices))
            if self._plan.has_trouble and number % 2 == 0:
                await self._accidents.wait_in_sync()
                await self._befall(self._accidents.cut)
        await self._accidents.wait_in_sync()
        self._are_accidents_over = True

    async def _befall(self, accident: Callable[[], Awaitable[None]]) -> None:
        """Let something happen to somebody as soon as a transaction is open."""
        self._pace.hurry()
        while not self._load.open_count:  # noqa: ASYNC110 - the world tells nobody what happens in it
            await trio.sleep(LOOK_S)
        await accident()
        self._pace.hurry()

    async def _crash_several(self) -> None:
        losses = losses_of(2, is_flushed=False, votes=votes_in(self._run.settings))
        await self._accidents.crash_several(losses.deaths_max, losses.power_losses_max)

    def _on_crash(self, victim: BrokerHost, _style: PowerLoss | None) -> None:
        self._pace.hurry()
        if self._load.open_count:
            self._run.count("crashes with a transaction open")
        assert victim.broker is not None, "it lives until it has crashed"
        runtime = victim.broker.parts.requests.coordinators.by_topic[STATE_TOPIC]
        for _, shard in runtime.shards():
            for metadata in shard.ids.values():
                self._run.count(f"crashes of a coordinator, {metadata.state.name}")


SPREAD_TRANSACTIONS: Final = Scenario(
    "spread_transactions",
    "three brokers: producers commit and abort, while brokers crash, stand still and lose each other",
    main_of(SpreadTransactions),
    (
        "crashes with a transaction open",
        "process crashes",
        "crashes of a coordinator, ONGOING",
        "pauses",
        "transactions, aborted",
    ),
)
