"""Shell: the scenario `append`: producers and a consumer go on while their broker crashes and their network fails.

Drawn from the seed: how many partitions and producers, `acks`, whether producers are idempotent, whether the topic is
flushed with each batch, how often the broker crashes, how and when, and what happens to the network. In the end the
broker serves, everything is whole, and the logs are read from their beginning.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.testing.faults import PowerLoss

from .accidents import Accidents
from .cluster import Cluster
from .oracle import Oracle
from .promises import promises_of
from .record_load import Load, RecordLoad
from .runs import Run, Scenario, main_of
from .seeds import WORKLOAD, is_chosen
from .world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from .disk_accidents import DiskAccidents

TURNS_MIN: Final = 30
"""How often each producer sends at least."""
HASTE: Final = 100
"""After so many turns a producer takes its time: records are what a run costs, accidents what it is for."""
CALM_NS: Final = 2 * SECOND
QUIET_S: Final = 60
"""After so long nothing is underway any more, not even on a link that stalls."""


@attrs.frozen
class Plan:
    """What was drawn for a run."""

    partitions: int
    producers: int
    acks: str
    is_idempotent: bool
    flush_messages: int
    crashes: int
    has_trouble: bool
    pause_ns_max: int

    @classmethod
    def drawn(cls, source: Random) -> Plan:
        """Draw one."""
        is_idempotent = is_chosen(source, 0.7)
        return cls(
            partitions=1 + source.randrange(3),
            producers=1 + source.randrange(2),
            acks="all" if is_idempotent else source.choice(("all", "1", "0")),
            is_idempotent=is_idempotent,
            flush_messages=source.choice((0, 1)),
            crashes=1 + source.randrange(4),
            has_trouble=is_chosen(source, 0.5),
            pause_ns_max=source.choice((30 * MILLISECOND, 100 * MILLISECOND, 500 * MILLISECOND)),
        )

    @property
    def load(self) -> Load:
        """What clients do."""
        settings = {"acks": self.acks, "enable.idempotence": self.is_idempotent, "delivery.timeout.ms": 60_000}
        return Load(self.partitions, self.producers, settings, burst_max=20, filler_bytes_max=20_000)


class Append:
    """One run of the scenario.

    Attributes:
        accidents: What each run must have exercised of them.
    """

    accidents: tuple[str, ...] = ("crashes",)

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        self._oracle = Oracle(promises_of(plan.acks, plan.flush_messages), is_idempotent=plan.is_idempotent)
        self._cluster = Cluster(run.world, nursery)
        self._broker = self._cluster.add_broker(
            {
                "num.partitions": str(plan.partitions),
                **({"log.flush.interval.messages": "1"} if plan.flush_messages else {}),
                **run.settings,
            }
        )
        self._accidents = self.new_accidents()
        self._load = RecordLoad(run, self._cluster, self._oracle, plan.load, self._turns)

    def new_accidents(self) -> Accidents | DiskAccidents:
        """Plan what befalls the broker."""
        return Accidents(
            self._run,
            self._cluster,
            self._broker,
            crashes=self._plan.crashes,
            has_trouble=self._plan.has_trouble,
            on_crash=self._on_crash,
        )

    def _on_crash(self, style: PowerLoss | None) -> None:
        run, oracle = self._run, self._oracle
        if oracle.open_count:
            run.count("crashes with records on their way")
        if style is None:
            oracle.died(run.world.now_ns)
        else:
            oracle.lost_power(run.world.now_ns)

    async def run(self) -> None:
        """Let everything happen, then check."""
        async with trio.open_nursery() as readers:
            readers.start_soon(self.consume)
            async with trio.open_nursery() as writers:
                self._load.produce_in(writers)
                writers.start_soon(self._accidents.run)
            await self.check()
            readers.cancel_scope.cancel()
        self._run.count("acknowledged", self._oracle.acknowledged_count)
        self._run.count("delivered", self._oracle.delivered_count)
        self._run.require(*self.accidents, "sent", "delivered", *(() if self._plan.acks == "0" else ("acknowledged",)))
        await self._broker.stop()

    def _turns(self) -> Iterator[int]:
        for number in itertools.count():
            if self._accidents.are_over and number >= TURNS_MIN:
                return
            yield self._plan.pause_ns_max if number < HASTE else CALM_NS

    async def consume(self) -> None:
        """Read on, and check what comes."""
        await self._load.consume()

    async def check(self) -> None:
        """Read everything from the beginning, once what is underway has arrived."""
        await trio.sleep(QUIET_S)
        await self._load.check()


APPEND: Final = Scenario(
    "append",
    "producers and a consumer, while their broker crashes and their network fails",
    main_of(Append),
    ("crashes with records on their way", "process crashes", "power losses, torn"),
)
