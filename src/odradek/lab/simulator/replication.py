"""Shell: the scenario `replication`: what the in-sync replicas of three brokers have acknowledged outlives accidents.

Producers and a consumer go on, mostly under `min.insync.replicas=2`, while brokers crash, alone or as many at once as
`promises.py` allows, stand still, lose each other, and tell wrong times. The next accident comes when every replica has
caught up. Then nothing acknowledged with `acks=all`, and nothing that was read, may be lost, doubled or out of order,
whatever the disks have lost, and two logs agree wherever both hold an offset below both high watermarks.

With `--set odradek.election=quorum` the replicas vote, and a majority has what is acknowledged. Now and then one of the
voters is to go as an accident comes, and comes back after it.
"""

from __future__ import annotations

import itertools
from enum import Enum
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import NewTopic
from odradek.kernel.types import TopicPartition

from .cluster import Cluster
from .cluster_accidents import SETTINGS, ClusterAccidents
from .oracle import Oracle, PromiseBrokenError, Sent
from .pace import Pace
from .promises import ELECTION, IN_SYNC, QUORUM, Replicated, losses_of
from .record_load import TOPIC, Load, RecordLoad
from .runs import Run, Scenario, main_of
from .seeds import FAULTS, WORKLOAD, between, is_chosen
from .world import MILLISECOND, SECOND, SimulationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from odradek.client import Admin
    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost

TURNS_MIN: Final = 30
"""How often each producer sends at least once the accidents are over."""
HASTE: Final = 100
"""So many turns after an accident has begun or ended producers take their time."""
LOOK_S: Final = 0.001
"""So often somebody looks whether records are on their way: then an accident may come."""
ASK_S: Final = 0.05
"""After so long a broker is asked again, which costs it a request."""
QUIET_S: Final = 30
MOVED_S_MAX: Final = 300
"""So long voters may take until they are again who they were."""


class Accident(Enum):
    """What befalls brokers."""

    CRASH = "one crashes"
    SEVERAL = "several crash at once"
    CUT = "one loses another"
    PAUSE = "one stands still"
    AWAY = "some stand still, and others lose their power"
    CLOCKS = "one's clocks go wrong"


WHILE_VOTERS_CHANGE: Final = frozenset({Accident.CRASH, Accident.CUT, Accident.PAUSE})
"""What two voters outlive as well as three: one of them has all that was acknowledged."""
MIN_ISR: Final = (2, 2, 2, 1, 3)
"""What `min.insync.replicas` is drawn from."""
ACCIDENTS: Final = (*Accident, Accident.CRASH, Accident.PAUSE)
"""What is drawn from."""


@attrs.frozen
class Plan:
    """What was drawn for a run."""

    partitions: int
    producers: int
    acks: str
    is_idempotent: bool
    is_flushed: bool
    accidents: int
    fetchers: int
    far_ns: int
    request_timeout_ms: int
    pause_ns_max: int
    min_isr: int
    votes: bool

    @classmethod
    def drawn(cls, source: Random, *, votes: bool) -> Plan:
        """Draw one, but for the election: that is chosen."""
        acks = source.choice(("all", "all", "all", "all", "all", "1"))
        return cls(
            partitions=1 + source.randrange(3),
            producers=1 + source.randrange(2),
            acks=acks,
            is_idempotent=is_chosen(source, 0.7) and acks == "all",
            is_flushed=is_chosen(source, 0.3),
            accidents=1 + source.randrange(3),
            fetchers=1 + source.randrange(2),
            far_ns=source.choice((MILLISECOND, 20 * MILLISECOND, 200 * MILLISECOND)),
            request_timeout_ms=source.choice((5_000, 30_000)),
            pause_ns_max=source.choice((100 * MILLISECOND, 300 * MILLISECOND, SECOND)),
            min_isr=source.choice(MIN_ISR),
            votes=votes,
        )

    @property
    def losses(self) -> Replicated:
        """How many brokers may be lost."""
        return losses_of(self.min_isr, is_flushed=self.is_flushed, votes=self.votes)

    @property
    def load(self) -> Load:
        """What clients do."""
        settings = {
            "acks": self.acks,
            "enable.idempotence": self.is_idempotent,
            "request.timeout.ms": self.request_timeout_ms,
            "delivery.timeout.ms": 120_000,
        }
        return Load(self.partitions, self.producers, settings, burst_max=10, filler_bytes_max=5_000)


class ReadersOracle(Oracle):
    """What must be true where only what a consumer has read is promised."""

    def acknowledged(self, record: Sent, offset: int, now_ns: int) -> None:
        """See `Oracle.acknowledged`: it says nothing here."""
        super().acknowledged(record, -1, now_ns)


class Replication:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._faults = run.world.seeds.stream(FAULTS, "brokers")
        self._moves = run.world.seeds.stream(FAULTS, "voters")
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD), votes=run.settings.get(ELECTION) == QUORUM)
        run.world.note("plan", *attrs.astuple(plan))
        oracle = Oracle if plan.acks == "all" else ReadersOracle
        self._oracle = oracle(IN_SYNC, is_idempotent=plan.is_idempotent, is_dense=not plan.votes)
        self._cluster = Cluster(run.world, nursery)
        own = {"num.replica.fetchers": str(plan.fetchers), "min.insync.replicas": str(plan.min_isr)}
        if plan.is_flushed:
            own["log.flush.interval.messages"] = "1"
        self._cluster.add_brokers(3, {**SETTINGS, **own, **run.settings})
        self._cluster.set_apart(self._faults.choice([*self._cluster.brokers]), plan.far_ns)
        self._accidents = ClusterAccidents(run, self._cluster, self._faults, {TOPIC}, self._on_crash)
        self._load = RecordLoad(run, self._cluster, self._oracle, plan.load, self._turns)
        self._pace = Pace(HASTE, plan.pause_ns_max)
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
        self._run.count(f"runs with {QUORUM if self._plan.votes else 'isr'}")
        self._run.count(f"runs with min.insync.replicas={self._plan.min_isr}")
        self._run.count("acknowledged", self._oracle.acknowledged_count)
        self._run.count("delivered", self._oracle.delivered_count)
        self._run.require("accidents", "delivered", *(("acknowledged",) if self._plan.acks == "all" else ()))
        await self._cluster.stop()

    async def _make_topic(self) -> None:
        async with self._cluster.admin("admin") as admin:
            await admin.create_topic(NewTopic(TOPIC, self._plan.partitions))
        await self._accidents.wait_in_sync()

    # -- accidents ---------------------------------------------------------------------------------------------------

    async def _have_accidents(self) -> None:
        for _ in range(self._plan.accidents):
            await trio.sleep(between(self._faults, MILLISECOND, 5 * SECOND) / SECOND)
            accident = self._faults.choice(ACCIDENTS)
            self._pace.hurry()
            while not self._oracle.open_count:  # noqa: ASYNC110 - the world tells nobody what happens in it
                await trio.sleep(LOOK_S)
            self._run.world.note("accident", accident.name)
            if self._plan.votes and accident in WHILE_VOTERS_CHANGE and is_chosen(self._moves, 0.5):
                await self._befall_as_voters_change(accident)
            else:
                await self._befall(accident)
            self._pace.hurry()
            self._run.count(f"accidents: {accident.value}")
            self._run.count("accidents")
            await self._accidents.wait_in_sync()
            self._check_agreement()
        self._are_accidents_over = True

    async def _befall(self, accident: Accident) -> None:
        accidents, losses = self._accidents, self._plan.losses
        match accident:
            case Accident.CRASH:
                await accidents.crash()
            case Accident.SEVERAL:
                await accidents.crash_several(losses.deaths_max, losses.power_losses_max)
            case Accident.CUT:
                await accidents.cut()
            case Accident.PAUSE:
                await accidents.pause()
            case Accident.AWAY:
                await accidents.lose_power_while_others_are_away(
                    losses.while_one_is_away_max, losses.while_two_are_away_max
                )
            case Accident.CLOCKS:
                await accidents.skew()

    async def _befall_as_voters_change(self, accident: Accident) -> None:
        """Have an accident while some partitions are to lose a voter; return when all have it again."""
        brokers = [*self._cluster.brokers]
        moved = [TopicPartition(TOPIC, each) for each in range(self._plan.partitions) if is_chosen(self._moves, 0.7)]
        async with self._cluster.admin("reassigning admin") as admin:
            await self._reassign(admin, {each: self._moves.sample(brokers, len(brokers) - 1) for each in moved})
            await trio.sleep(between(self._moves, 0, SECOND) / SECOND)
            await self._befall(accident)
            await self._reassign(admin, {each: self._moves.sample(brokers, len(brokers)) for each in moved})
            with trio.move_on_after(MOVED_S_MAX):
                while await admin.list_partition_reassignments():  # noqa: ASYNC110 - nobody tells
                    await trio.sleep(ASK_S)
                self._run.count("changes of voters", len(moved))
                return
            raise SimulationError(f"voters have not changed after {MOVED_S_MAX} s")

    @staticmethod
    async def _reassign(admin: Admin, wanted: dict[TopicPartition, list[int]]) -> None:
        refused = await admin.alter_partition_reassignments(wanted) if wanted else {}
        if refused:
            raise SimulationError(f"voters are not changed: {refused}")

    def _on_crash(self, victim: BrokerHost, _style: PowerLoss | None) -> None:
        if victim.leads({TOPIC}):
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

    def _check_at_rest(self) -> None:
        """Check that nothing is left to be committed, or told: all replicas of a partition end in one place."""
        for number in range(self._plan.partitions):
            ends = set()
            for host in self._cluster.brokers.values():
                assert host.broker is not None, "all brokers live between accidents"
                replica = host.broker.parts.logs.replicas.get(TOPIC, number)
                ends |= {replica.log.log_end_offset, replica.high_watermark, replica.last_stable_offset}
            if len(ends) > 1:
                raise PromiseBrokenError("at rest", f"replicas of partition {number} end at each of {sorted(ends)}")

    def _turns(self) -> Iterator[int]:
        numbers = itertools.count()
        while not (self._are_accidents_over and next(numbers) >= TURNS_MIN):
            yield self._pace.pause_ns_max()

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _check(self) -> None:
        """Read everything from the beginning, once what is underway has arrived."""
        await trio.sleep(QUIET_S)
        await self._accidents.wait_in_sync()
        self._check_agreement()
        self._check_at_rest()
        await self._load.check()


def _below(batches: list[bytes], end: int) -> list[bytes]:
    return [batch for batch in batches if int.from_bytes(batch[:8]) < end]


REPLICATION: Final = Scenario(
    "replication",
    "three brokers: producers and a consumer, while brokers crash, stand still, lose each other and tell wrong times",
    main_of(Replication),
    (
        "process crashes",
        "crashes of a leader",
        "pauses of a leader",
        *(f"accidents: {each.value}" for each in Accident),
        *(f"runs with min.insync.replicas={each}" for each in (1, 2, 3)),
    ),
)
