"""Shell: the scenario `quorum`: any of three nodes may die, the controller's included, and the metadata is kept.

All three vote. Topics are made, changed and deleted, and records produced, while nodes crash, alone or as many at once
as `promises.py` allows, stand still, lose each other, tell wrong times, and stop to vote and vote again; the next
accident comes when all is in sync again. Then everything that was answered is so on every node; no record that was
acknowledged is lost. Of the quorum what must be true at any moment is looked at all the time (`quorum_watch.py`).
"""

from __future__ import annotations

import itertools
import math
from enum import Enum
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.kernel.types import TopicPartition

from .cluster import Cluster
from .cluster_accidents import SETTINGS, ClusterAccidents
from .disk import DiskFaults
from .metadata_oracle import MetadataOracle, check_same
from .oracle import Oracle
from .promises import ELECTION, IN_SYNC, losses_of, votes_in
from .promises import QUORUM as VOTE
from .quorum_admins import QuorumAdmins, topics_of
from .quorum_oracle import QuorumOracle
from .quorum_watch import QuorumWatch
from .record_load import TOPIC, Load, RecordLoad
from .runs import Run, Scenario, main_of
from .seeds import FAULTS, WORKLOAD, between, is_chosen
from .world import MILLISECOND, SECOND, SimulationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from odradek.kernel.broker import Broker
    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost

VOTERS: Final = 3
TURNS_MIN: Final = 3
"""How often each client does something at least once the accidents are over."""
PAUSE_NS_MAX: Final = 2 * SECOND
LOOK_S: Final = 0.005
ASK_S: Final = 0.05
"""After so long a broker is asked again, which costs it a request."""
QUIET_S: Final = 5
PROGRESS_S_MAX: Final = 60
"""So long after an accident something new is decided, at most."""
FAR_NS: Final = (MILLISECOND, 20 * MILLISECOND, 200 * MILLISECOND)
"""How far one node is from the others."""
SYNC_NS_MAX: Final = (20 * MILLISECOND, 20 * MILLISECOND, 200 * MILLISECOND, SECOND)
"""How long a host's disk takes at most for a sync, one of these."""
SMALL_INDEXES: Final = {"log.index.size.max.bytes": "4096"}


class Accident(Enum):
    """What befalls nodes."""

    CRASH = "one crashes"
    LEADER = "the controller's crashes"
    ELECTION = "one crashes in the middle of a vote"
    SEVERAL = "several crash at once"
    CUT = "one loses another"
    PAUSE = "one stands still"
    DISK = "one's disk is replaced"
    CLOCKS = "one's clocks go wrong"
    VOTERS = "one stops to vote and votes again while something else happens"


ACCIDENTS: Final = (*Accident, Accident.LEADER, Accident.ELECTION, Accident.CUT)
"""What is drawn from."""


@attrs.frozen
class Plan:
    """What was drawn for a run."""

    partitions: int
    admins: int
    accidents: int
    far_ns: int
    snapshot_bytes: int
    joins: bool

    @classmethod
    def drawn(cls, source: Random) -> Plan:
        """Draw one."""
        return cls(
            partitions=1 + source.randrange(2),
            admins=1 + source.randrange(2),
            accidents=1 + source.randrange(4),
            far_ns=source.choice(FAR_NS),
            snapshot_bytes=source.choice((500, 5_000, 20 << 20)),
            joins=is_chosen(source, 0.5),
        )


class Quorum:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._faults = run.world.seeds.stream(FAULTS, "brokers")
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        self._metadata, self._votes = MetadataOracle(), QuorumOracle()
        self._records = Oracle(IN_SYNC, is_idempotent=True, is_dense=run.settings.get(ELECTION) != VOTE)
        self._cluster = Cluster(run.world, nursery)
        own = {
            "controller.quorum.auto.join.enable": str(plan.joins).lower(),
            "metadata.log.max.record.bytes.between.snapshots": str(plan.snapshot_bytes),
        }
        self._cluster.add_brokers(VOTERS, {**SETTINGS, **SMALL_INDEXES, **own, **run.settings}, voters=VOTERS)
        self._cluster.set_apart(self._faults.choice([*self._cluster.brokers]), plan.far_ns)
        self._slow_disks()
        self._watch = QuorumWatch(run, self._cluster.brokers, self._votes)
        self._admins = QuorumAdmins(run, self._cluster, self._watch, self._votes, self._metadata)
        self._accidents = ClusterAccidents(
            run, self._cluster, self._faults, {TOPIC}, self._on_crash, spared=(), all_topics=False
        )
        load = Load(plan.partitions, 1, {"acks": "all", "enable.idempotence": True}, 5, 1_000)
        self._load = RecordLoad(run, self._cluster, self._records, load, self._turns)
        self._are_accidents_over = False

    def _slow_disks(self) -> None:
        for host in self._cluster.brokers.values():
            sync_ns_max = self._faults.choice(SYNC_NS_MAX)
            host.host.disk.faults = DiskFaults(sync_ns_max=sync_ns_max)
            self._run.count("slow disks", int(sync_ns_max == max(SYNC_NS_MAX)))

    async def run(self) -> None:
        """Let everything happen, then check."""
        self._run.world.before_time = self._watch.look
        await self._cluster.start()
        await self._admins.make(TOPIC, self._plan.partitions)
        await self._accidents.wait_in_sync()
        async with trio.open_nursery() as clients:
            self._load.produce_in(clients)
            for number in range(self._plan.admins):
                clients.start_soon(self._admins.administer, f"admin-{number + 1}", self._turns())
            clients.start_soon(self._have_accidents)
        await trio.sleep(QUIET_S)
        await self._accidents.wait_in_sync()
        await self._check_nodes()
        await self._load.check()
        self._run.count("answered", self._metadata.answered_count)
        self._run.count("acknowledged", self._records.acknowledged_count)
        self._run.count("epochs", self._votes.epochs_count)
        self._run.count("votes", self._votes.votes_count)
        self._run.require("accidents", "answered", "acknowledged", "epochs", "votes")
        await self._cluster.stop()

    def _turns(self) -> Iterator[int]:
        numbers = itertools.count()
        while not (self._are_accidents_over and next(numbers) >= TURNS_MIN):
            yield PAUSE_NS_MAX

    # -- accidents ---------------------------------------------------------------------------------------------------

    async def _have_accidents(self) -> None:
        for _ in range(self._plan.accidents):
            await trio.sleep(between(self._faults, MILLISECOND, 5 * SECOND) / SECOND)
            accident = self._faults.choice(ACCIDENTS)
            self._run.world.note("accident", accident.name)
            await self._befall(accident)
            self._run.count(f"accidents: {accident.value}")
            self._run.count("accidents")
            await self._accidents.wait_in_sync()
            await self._check_nodes()
        self._are_accidents_over = True

    async def _befall(self, accident: Accident) -> None:
        match accident:
            case Accident.CRASH:
                await self._accidents.crash()
            case Accident.LEADER:
                await self._accidents.crash(self._watch.leader())
            case Accident.ELECTION:
                nodes = [*self._cluster.brokers.values()]
                leader = self._watch.leader() or self._faults.choice(nodes)
                await self._accidents.crash_in_election(leader, self._faults.choice(nodes))
            case Accident.SEVERAL:
                losses = losses_of(2, is_flushed=False, votes=votes_in(self._run.settings))
                await self._accidents.crash_several(losses.deaths_max, losses.power_losses_max)
            case Accident.CUT:
                await self._accidents.cut()
            case Accident.DISK:
                await self._replace_disk()
            case Accident.VOTERS:
                await self._change_voters()
            case Accident.PAUSE:
                await self._accidents.pause()
            case Accident.CLOCKS:
                await self._accidents.skew()

    async def _replace_disk(self) -> None:
        """Replace a disk; its node votes again by itself, or somebody sees to that."""
        brokers = self._cluster.brokers
        leader = self._watch.leader()
        victim = leader if leader and is_chosen(self._faults, 0.4) else self._faults.choice([*brokers.values()])
        node_id = next(number for number, host in brokers.items() if host is victim)
        former = self._watch.voter(node_id)
        self._run.count("replaced disks of the controller", int(victim is leader))
        await self._accidents.crash(victim, replaces_disk=True)
        with trio.fail_after(PROGRESS_S_MAX):
            if former is not None and not self._plan.joins:
                await self._admins.remove_voter(former)
                await self._admins.add_voter(node_id)
            await self._wait_voting()
        if self._run.settings.get(ELECTION) == VOTE:
            await self._have_records_voted_for(node_id)

    async def _have_records_voted_for(self, node_id: int) -> None:
        """Have the records' replicas on a new disk vote again, as an operator does: moved away from it and back."""
        others = [number for number in self._cluster.brokers if number != node_id]
        async with self._cluster.admin("reassigning admin") as admin:
            for replicas in (others, [*others, node_id]):
                wanted = {TopicPartition(TOPIC, number): replicas for number in range(self._plan.partitions)}
                if refused := await admin.alter_partition_reassignments(wanted):
                    raise SimulationError(f"voters are not changed: {refused}")
                with trio.fail_after(PROGRESS_S_MAX):
                    while await admin.list_partition_reassignments():  # noqa: ASYNC110 - nobody tells
                        await trio.sleep(ASK_S)
        self._run.count("replaced disks of voted records")

    async def _change_voters(self) -> None:
        """Have one stop to vote and vote again, while something else happens to any of them."""
        meanwhile = self._faults.choice((Accident.CUT, Accident.CUT, Accident.CRASH, Accident.LEADER, Accident.PAUSE))
        with trio.fail_after(math.inf) as patience:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._vote_again)
                await self._befall(meanwhile)
                patience.deadline = trio.current_time() + PROGRESS_S_MAX
        await self._wait_voting()

    async def _vote_again(self) -> None:
        await trio.sleep(between(self._faults, MILLISECOND, 5 * SECOND) / SECOND)
        node_id = self._faults.choice([*self._cluster.brokers])
        voter = self._watch.voter(node_id)
        if voter is not None:
            await self._admins.remove_voter(voter)
            await trio.sleep(between(self._faults, MILLISECOND, 10 * SECOND) / SECOND)
            await self._admins.add_voter(node_id)

    async def _wait_voting(self) -> None:
        """Wait until all nodes vote, each from the directory that it has."""
        with trio.fail_after(PROGRESS_S_MAX):
            while not self._watch.all_vote():  # noqa: ASYNC110 - the world tells nobody what happens in it
                await trio.sleep(LOOK_S)

    def _on_crash(self, victim: BrokerHost, _style: PowerLoss | None) -> None:
        if victim is self._watch.leader():
            self._run.count("crashes of the controller")

    # -- what is there -----------------------------------------------------------------------------------------------

    def _living(self) -> Iterator[tuple[int, Broker]]:
        for number, host in self._cluster.brokers.items():
            if host.broker is not None:
                yield number, host.broker

    async def _check_nodes(self) -> None:
        """See that something new is decided soon, that all nodes hear of it, and that they know the same."""
        with trio.fail_after(PROGRESS_S_MAX):
            await self._admins.make_next()
            # What was answered is in the newest image: all have it in a moment in which all have the same.
            while len({broker.parts.published.image.offset for _, broker in self._living()}) > 1:  # noqa: ASYNC110 - the world tells nobody what happens in it
                await trio.sleep(LOOK_S)
        for number, broker in self._living():
            self._metadata.check(f"node {number}", topics_of(broker))
        for (one, first), (other, second) in itertools.combinations(self._living(), 2):
            images = first.parts.published.image, second.parts.published.image
            check_same("agree", f"images of nodes {one} and {other}", *images)
        self._run.count("agreements")


QUORUM: Final = Scenario(
    "quorum",
    "three nodes that vote: topics are made and changed, records produced, while any of them crashes or is cut off",
    main_of(Quorum),
    (
        "process crashes",
        "crashes of the controller",
        "replaced disks of the controller",
        "crashes in an election",
        "slow disks",
        "voters removed",
        "voters added",
        *(f"accidents: {each.value}" for each in Accident),
    ),
)
