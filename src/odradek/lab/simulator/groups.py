"""Shell: the scenario `groups`: members of a group come and go while their broker crashes and their network fails.

Drawn from the seed: the group's protocol, partitions, members and whether they are static, whether they commit or
consume, transform and produce in transactions, each accident. Members leave, are killed, and are cut off for longer
than their session. In the end those that are there read on until everything is committed.

As in `transactions`, everything is flushed before it is acknowledged where power is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition

from .accidents import Accidents
from .cluster import Cluster
from .group_members import GROUP, INPUT, OUTPUT, Member, MemberPlan
from .group_oracle import GroupOracle
from .oracle import Oracle, PromiseBrokenError, Sent
from .promises import promises_of
from .reading import read_ends, read_logs
from .runs import Run, Scenario, main_of
from .seeds import FAULTS, WORKLOAD, between, is_chosen
from .world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from random import Random

    from odradek.testing.faults import PowerLoss

PROTOCOLS: Final[dict[str, dict[str, object]]] = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}
SESSION_MS: Final = 10_000
BROKER_SETTINGS: Final = {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "2000",
}
ENDINGS: Final = ("leave", "crash", "crash", "cut")
ENDINGS_MIN: Final = 3
"""How many lives of a member end before it stays."""
RECORDS_MIN: Final = 20
QUIET_S: Final = 120
PATIENCE_S: Final = 400
"""After so long without accidents everything is committed."""


@attrs.frozen
class Plan:
    """What was drawn for a run."""

    protocol: str
    partitions: int
    members: int
    is_static: bool
    is_transactional: bool
    has_power_losses: bool
    crashes: int
    has_trouble: bool
    pause_ns_max: int

    @classmethod
    def drawn(cls, source: Random) -> Plan:
        """Draw one."""
        return cls(
            protocol=source.choice([*PROTOCOLS]),
            partitions=1 + source.randrange(4),
            members=2 + source.randrange(2),
            is_static=is_chosen(source, 0.2),
            is_transactional=is_chosen(source, 0.4),
            has_power_losses=is_chosen(source, 0.5),
            crashes=1 + source.randrange(3),
            has_trouble=is_chosen(source, 0.5),
            pause_ns_max=source.choice((SECOND, 2 * SECOND, 5 * SECOND)),
        )


class Groups:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        self._oracle = GroupOracle(may_overtake=plan.has_trouble)
        self._records = Oracle(promises_of("all", 1), is_idempotent=True)
        self._cluster = Cluster(run.world, nursery)
        settings = {**BROKER_SETTINGS, "num.partitions": str(plan.partitions)}
        if plan.has_power_losses:
            settings["log.flush.interval.messages"] = "1"
        self._broker = self._cluster.add_broker({**settings, **run.settings})
        self._accidents = Accidents(
            run,
            self._cluster,
            self._broker,
            crashes=plan.crashes,
            has_trouble=plan.has_trouble,
            on_crash=self._on_crash,
            has_power_losses=plan.has_power_losses,
        )
        self._are_settled = False
        self._members = [
            Member(run, self._cluster, self._oracle, self._records, self._plan_of(number))
            for number in range(1, plan.members + 1)
        ]

    def _plan_of(self, number: int) -> MemberPlan:
        plan, name = self._plan, f"member-{number}"
        settings = dict(PROTOCOLS[plan.protocol])
        if plan.protocol != "consumer":
            settings["session.timeout.ms"] = SESSION_MS
        if plan.is_static:
            settings["group.instance.id"] = name
        return MemberPlan(name, settings, plan.is_transactional, plan.pause_ns_max)

    def _on_crash(self, _style: PowerLoss | None) -> None:
        if any(member.is_committing for member in self._members):
            self._run.count("crashes with a commit on its way")

    async def run(self) -> None:
        """Let everything happen, then check."""
        plan, run = self._plan, self._run
        async with trio.open_nursery() as others:
            others.start_soon(self._observe)
            async with trio.open_nursery() as members:
                async with trio.open_nursery() as producers:
                    producers.start_soon(self._produce)
                    async with trio.open_nursery() as accidents:
                        accidents.start_soon(self._accidents.run)
                        for member in self._members:
                            settled = trio.Event()
                            members.start_soon(self._let_live, member, settled)
                            accidents.start_soon(settled.wait)
                    self._are_settled = True
                await self._wait_committed()
                for member in self._members:
                    member.leaves = True
            others.cancel_scope.cancel()
        ends = await read_ends(self._cluster, INPUT, plan.partitions)
        if plan.is_transactional:
            logs = await read_logs(self._cluster, OUTPUT, plan.partitions, {"isolation.level": "read_committed"})
            self._oracle.transformed(value for log in logs.values() for _, value in log)
        self._oracle.check(ends)
        for partition, log in (await read_logs(self._cluster, INPUT, plan.partitions, {})).items():
            self._records.check_log(partition, log)
        run.count("told what is committed", self._oracle.told_count)
        run.count("commits that were overtaken", self._oracle.overtaken_count)
        run.count("delivered", self._records.delivered_count)
        run.count(f"protocol {plan.protocol}, {'transactions' if plan.is_transactional else 'commits'}")
        run.require("crashes", "delivered", "commits", "told what is committed", "endings of lives")
        await self._broker.stop()

    async def _wait_committed(self) -> None:
        """Wait until the members have committed everything that there is."""
        with trio.move_on_after(PATIENCE_S):
            await trio.sleep(QUIET_S)
            ends = await read_ends(self._cluster, INPUT, self._plan.partitions)
            while not self._oracle.has_committed(ends):  # noqa: ASYNC110 - the oracle wakes nobody
                await trio.sleep(1)
            return
        raise PromiseBrokenError("processed", f"{PATIENCE_S} s after the last accident not everything is committed")

    # -- lives -------------------------------------------------------------------------------------------------------

    async def _let_live(self, member: Member, settled: trio.Event) -> None:
        """Let a member live again and again, until it may stay; it leaves when it is told to."""
        source = self._run.world.seeds.stream(FAULTS, member.name)
        endings_count = 0
        while not (self._accidents.are_over and endings_count >= ENDINGS_MIN):
            endings_count += 1
            member.leaves = False
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_life, member, source.choice(ENDINGS), source)
                await self._cluster.run_client(member.name, member.live)
                nursery.cancel_scope.cancel()
            await trio.sleep(between(source, MILLISECOND, 10 * SECOND) / SECOND)
        member.leaves = False
        settled.set()
        while not member.leaves:
            await self._cluster.run_client(member.name, member.live)
            await trio.sleep(1)

    async def _end_life(self, member: Member, ending: str, source: Random) -> None:
        await trio.sleep(between(source, SECOND, 60 * SECOND) / SECOND)
        self._run.count("endings of lives")
        self._run.count(f"members: {ending}")
        self._run.world.note(ending, member.name)
        if ending == "cut":
            await self._cut_off(member, between(source, SESSION_MS, 4 * SESSION_MS))
        if ending == "crash":
            self._cluster.client_host(member.name).kill_process()
        else:
            member.leaves = True
            await trio.sleep_forever()

    async def _cut_off(self, member: Member, duration_ms: int) -> None:
        network = self._cluster.network
        here, there = self._cluster.client_host(member.name).host, self._broker.host.host
        pairs = ((here, there), (there, here))
        for source, target in pairs:
            network.cut(source, target)
        try:
            await trio.sleep(duration_ms / 1_000)
        finally:
            for source, target in pairs:
                network.heal(source, target)
        await trio.sleep(duration_ms / 1_000)

    # -- others ------------------------------------------------------------------------------------------------------

    async def _produce(self) -> None:
        settings = {"linger.ms": 0, "delivery.timeout.ms": 2_000_000, "request.timeout.ms": 5_000}
        source = self._run.world.seeds.stream(WORKLOAD, "producer")
        number = 0
        async with self._cluster.producer("producer", settings) as producer:
            while not (self._are_settled and number >= RECORDS_MIN):
                record = Sent("producer", number, source.randrange(self._plan.partitions))
                number += 1
                self._records.sent(record)
                told = await producer.send(INPUT, record.value, partition=record.partition)
                self._records.acknowledged(record, told.offset, self._run.world.now_ns)
                await trio.sleep(between(source, MILLISECOND, self._plan.pause_ns_max) / SECOND)

    async def _observe(self) -> None:
        """Ask for what is committed, again and again."""
        source = self._run.world.seeds.stream(WORKLOAD, "observer")
        settings = {"group.id": GROUP, "isolation.level": "read_committed", "request.timeout.ms": 5_000}
        partitions = [TopicPartition(INPUT, number) for number in range(self._plan.partitions)]
        async with self._cluster.consumer("observer", {**settings, "default.api.timeout.ms": 10_000}) as consumer:
            while True:
                await trio.sleep(between(source, MILLISECOND, 5 * SECOND) / SECOND)
                floors = [self._oracle.floor(place.partition) for place in partitions]
                try:
                    told = await consumer.committed(partitions)
                except ClientError:
                    self._run.count("observations that failed")
                    continue
                for place, floor in zip(partitions, floors, strict=True):
                    found = told[place]
                    self._oracle.told(place.partition, 0 if found is None else found.offset, floor)


GROUPS: Final = Scenario(
    "groups",
    "members of a group come, go, die and are cut off, while their broker crashes and their network fails",
    main_of(Groups),
    (
        "commits that were refused",
        "crashes with a commit on its way",
        "members: crash",
        "members: cut",
        "members: leave",
        "partitions taken away",
        "power losses, torn",
        "process crashes",
        *(f"protocol {name}, {kind}" for name in PROTOCOLS for kind in ("commits", "transactions")),
        "transactions, aborted",
    ),
)
