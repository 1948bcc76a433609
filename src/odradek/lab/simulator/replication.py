"""Shell: the scenario `replication`: three brokers; what all in-sync replicas have acknowledged outlives one of them.

Producers with `acks=all` and a consumer go on while brokers crash, lose their power, and lose each other, under
`min.insync.replicas=2`; the broker that is the controller stays. One of them is lost at a time: the next when every
replica has caught up. Then nothing acknowledged may be lost, doubled or out of order, whatever the disks have lost, and
two logs agree wherever both hold an offset below both high watermarks.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import NewTopic

from .cluster import Cluster
from .cluster_accidents import SETTINGS, ClusterAccidents
from .oracle import Oracle, PromiseBrokenError
from .promises import IN_SYNC
from .record_load import TOPIC, Load, RecordLoad
from .runs import Run, Scenario, main_of
from .seeds import FAULTS, WORKLOAD, between, is_chosen
from .world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost

TURNS_MIN: Final = 30
"""How often each producer sends at least once the accidents are over."""
QUIET_S: Final = 30


@attrs.frozen
class Plan:
    """What was drawn for a run."""

    partitions: int
    producers: int
    is_idempotent: bool
    accidents: int
    fetchers: int
    pause_ns_max: int

    @classmethod
    def drawn(cls, source: Random) -> Plan:
        """Draw one."""
        return cls(
            partitions=1 + source.randrange(3),
            producers=1 + source.randrange(2),
            is_idempotent=is_chosen(source, 0.7),
            accidents=1 + source.randrange(3),
            fetchers=1 + source.randrange(2),
            pause_ns_max=source.choice((100 * MILLISECOND, 300 * MILLISECOND, SECOND)),
        )

    @property
    def load(self) -> Load:
        """What clients do."""
        settings = {"acks": "all", "enable.idempotence": self.is_idempotent, "delivery.timeout.ms": 120_000}
        return Load(self.partitions, self.producers, settings, burst_max=10, filler_bytes_max=5_000)


class Replication:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._faults = run.world.seeds.stream(FAULTS, "brokers")
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        self._oracle = Oracle(IN_SYNC, is_idempotent=plan.is_idempotent)
        self._cluster = Cluster(run.world, nursery)
        self._cluster.add_brokers(3, {**SETTINGS, "num.replica.fetchers": str(plan.fetchers), **run.settings})
        self._accidents = ClusterAccidents(run, self._cluster, self._faults, {TOPIC}, self._on_crash)
        self._load = RecordLoad(run, self._cluster, self._oracle, plan.load, self._turns)
        self._are_accidents_over = False

    async def run(self) -> None:
        """Let everything happen, then check."""
        await self._cluster.start()
        await self._make_topic()
        async with trio.open_nursery() as readers:
            readers.start_soon(self._load.consume)
            async with trio.open_nursery() as writers:
                self._load.produce_in(writers)
                writers.start_soon(self._have_accidents)
            await self._check()
            readers.cancel_scope.cancel()
        self._run.count("acknowledged", self._oracle.acknowledged_count)
        self._run.count("delivered", self._oracle.delivered_count)
        self._run.require("accidents", "acknowledged", "delivered")
        await self._cluster.stop()

    async def _make_topic(self) -> None:
        async with self._cluster.admin("admin") as admin:
            await admin.create_topic(NewTopic(TOPIC, self._plan.partitions))
        await self._accidents.wait_in_sync()

    # -- accidents ---------------------------------------------------------------------------------------------------

    async def _have_accidents(self) -> None:
        for _ in range(self._plan.accidents):
            await trio.sleep(between(self._faults, MILLISECOND, 5 * SECOND) / SECOND)
            self._run.count("accidents")
            if is_chosen(self._faults, 0.6):
                await self._accidents.crash()
            else:
                await self._accidents.cut()
            await self._accidents.wait_in_sync()
            self._check_agreement()
        self._are_accidents_over = True

    def _on_crash(self, victim: BrokerHost, _style: PowerLoss | None) -> None:
        assert victim.broker is not None, "it lives until it has crashed"
        replicas = victim.broker.parts.logs.replicas
        held = [replicas.find(TOPIC, number) for number in range(self._plan.partitions)]
        if any(replica is not None and replica.is_leader for replica in held):
            self._run.count("crashes of a leader")

    # -- replicas ----------------------------------------------------------------------------------------------------

    def _check_agreement(self) -> None:
        """Compare all logs of each partition as far as each two say that it is committed."""
        for number in range(self._plan.partitions):
            held = []
            for host in self._cluster.brokers.values():
                assert host.broker is not None, "all brokers live between accidents"
                replica = host.broker.parts.logs.replicas.get(TOPIC, number)
                batches = [bytes(batch) for batch in replica.log.batches(replica.log.log_start_offset)]
                held.append((replica, batches))
            for (one, batches), (other, others) in itertools.combinations(held, 2):
                end = min(one.high_watermark, other.high_watermark)
                if _below(batches, end) != _below(others, end):
                    raise PromiseBrokenError("agreement", f"partition {number} differs below {end}: {one}, {other}")
        self._run.count("agreements")

    def _turns(self) -> Iterator[int]:
        numbers = itertools.count()
        while not (self._are_accidents_over and next(numbers) >= TURNS_MIN):
            yield self._plan.pause_ns_max

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _check(self) -> None:
        """Read everything from the beginning, once what is underway has arrived."""
        await trio.sleep(QUIET_S)
        await self._accidents.wait_in_sync()
        self._check_agreement()
        await self._load.check()


def _below(batches: list[bytes], end: int) -> list[bytes]:
    return [batch for batch in batches if int.from_bytes(batch[:8]) < end]


REPLICATION: Final = Scenario(
    "replication",
    "three brokers: producers and a consumer, while brokers crash and lose each other",
    main_of(Replication),
    ("process crashes", "power losses, torn", "cuts", "crashes of a leader", "agreements"),
)
