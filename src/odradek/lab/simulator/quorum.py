"""Shell: the scenario `quorum`: any of three nodes may die, the controller's included, and the metadata is kept.

All three vote. Topics are made, changed and deleted, and records produced, while nodes crash, alone or as many at once
as `promises.py` allows, stand still, lose each other, and tell wrong times; the next accident comes when all is in sync
again. Then everything that was answered is so on every node, nobody led beside another one in an epoch, and what two
nodes hold of the metadata log below both high watermarks is the same; no record that was acknowledged is lost.
"""

from __future__ import annotations

import itertools
from enum import Enum
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import NewTopic
from odradek.client.admin_values import ResourceType
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.quorum.node import QuorumNode
from odradek.kernel.records.batch import iterate_batches

from .cluster import Cluster
from .cluster_accidents import SETTINGS, ClusterAccidents
from .metadata_oracle import MetadataOracle, SeenTopic, check_same
from .oracle import Oracle
from .promises import IN_SYNC, losses_of
from .record_load import TOPIC, Load, RecordLoad
from .runs import Run, Scenario, main_of
from .seeds import FAULTS, WORKLOAD, between, is_chosen
from .world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from odradek.client.admin import Admin
    from odradek.kernel.broker import Broker
    from odradek.kernel.quorum.quorum_log import QuorumLog
    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost

VOTERS: Final = 3
TURNS_MIN: Final = 10
"""How often each client does something at least once the accidents are over."""
PAUSE_NS_MAX: Final = 2 * SECOND
LOOK_S: Final = 0.005
"""So often somebody looks who leads."""
QUIET_S: Final = 30
PROGRESS_S_MAX: Final = 60
"""So long after an accident something new is decided, at most."""
SETTING: Final = "retention.ms"
SETTING_UNIT: Final = 1 << 40
"""So that nothing is deleted for it."""


class Accident(Enum):
    """What befalls nodes."""

    CRASH = "one crashes"
    LEADER = "the controller's crashes"
    SEVERAL = "several crash at once"
    CUT = "one loses another"
    PAUSE = "one stands still"
    DISK = "one's disk is replaced"
    CLOCKS = "one's clocks go wrong"


ACCIDENTS: Final = (*Accident, Accident.LEADER, Accident.CUT)
"""What is drawn from."""


@attrs.frozen
class Plan:
    """What was drawn for a run."""

    partitions: int
    admins: int
    accidents: int
    far_ns: int
    snapshot_bytes: int

    @classmethod
    def drawn(cls, source: Random) -> Plan:
        """Draw one."""
        return cls(
            partitions=1 + source.randrange(2),
            admins=1 + source.randrange(2),
            accidents=1 + source.randrange(4),
            far_ns=source.choice((MILLISECOND, 20 * MILLISECOND, 200 * MILLISECOND)),
            snapshot_bytes=source.choice((500, 5_000, 20 << 20)),
        )


class Quorum:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._faults = run.world.seeds.stream(FAULTS, "brokers")
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        self._metadata = MetadataOracle()
        self._records = Oracle(IN_SYNC, is_idempotent=True)
        self._cluster = Cluster(run.world, nursery)
        own = {
            "controller.quorum.auto.join.enable": "true",
            "metadata.log.max.record.bytes.between.snapshots": str(plan.snapshot_bytes),
        }
        self._cluster.add_brokers(VOTERS, {**SETTINGS, **own, **run.settings}, voters=VOTERS)
        self._cluster.set_apart(self._faults.choice([*self._cluster.brokers]), plan.far_ns)
        self._accidents = ClusterAccidents(
            run, self._cluster, self._faults, {TOPIC}, self._on_crash, spared=(), all_topics=False
        )
        load = Load(plan.partitions, 1, {"acks": "all", "enable.idempotence": True}, 5, 1_000)
        self._load = RecordLoad(run, self._cluster, self._records, load, self._turns)
        self._names = itertools.count(1)
        self._are_accidents_over = False

    async def run(self) -> None:
        """Let everything happen, then check."""
        async with trio.open_nursery() as watching:
            watching.start_soon(self._watch_leaders)
            await self._cluster.start()
            await self._make_topic()
            async with trio.open_nursery() as clients:
                self._load.produce_in(clients)
                for number in range(self._plan.admins):
                    clients.start_soon(self._administer, f"admin-{number + 1}")
                clients.start_soon(self._have_accidents)
            await trio.sleep(QUIET_S)
            await self._check_nodes()
            await self._load.check()
            watching.cancel_scope.cancel()
        self._run.count("answered", self._metadata.answered_count)
        self._run.count("acknowledged", self._records.acknowledged_count)
        self._run.count("epochs", self._metadata.epochs_count)
        self._run.require("accidents", "answered", "acknowledged", "epochs")
        await self._cluster.stop()

    async def _make_topic(self) -> None:
        self._metadata.creation_asked(TOPIC, self._plan.partitions)
        async with self._cluster.admin("admin") as admin:
            await admin.create_topic(NewTopic(TOPIC, self._plan.partitions))
        self._metadata.created(TOPIC)
        await self._accidents.wait_in_sync()

    def _turns(self) -> Iterator[int]:
        numbers = itertools.count()
        while not (self._are_accidents_over and next(numbers) >= TURNS_MIN):
            yield PAUSE_NS_MAX

    # -- who leads ---------------------------------------------------------------------------------------------------

    def _living(self) -> Iterator[tuple[int, Broker]]:
        for number, host in self._cluster.brokers.items():
            if host.broker is not None:
                yield number, host.broker

    def _leader(self) -> BrokerHost | None:
        for number, broker in self._living():
            if led_epoch(broker) is not None:
                return self._cluster.brokers[number]
        return None

    async def _watch_leaders(self) -> None:
        while True:
            for number, broker in self._living():
                epoch = led_epoch(broker)
                if epoch is not None:
                    self._metadata.leads(number, epoch)
            await trio.sleep(LOOK_S)

    # -- clients -----------------------------------------------------------------------------------------------------

    async def _administer(self, name: str) -> None:
        """Ask for one thing after the other, each time of a topic of its own."""
        source = self._run.world.seeds.stream(WORKLOAD, name)
        for pause_ns_max in self._turns():
            async with self._cluster.admin(name) as admin:
                try:
                    await self._ask(admin, f"t{next(self._names)}", source)
                except ClientError as error:
                    self._run.count("not answered")
                    self._run.world.note("not answered", name, type(error).__name__)
            await trio.sleep(between(source, MILLISECOND, pause_ns_max) / SECOND)

    async def _ask(self, admin: Admin, topic: str, source: Random) -> None:
        oracle, partitions = self._metadata, 1 + source.randrange(2)
        oracle.creation_asked(topic, partitions)
        await admin.create_topic(NewTopic(topic, partitions))
        oracle.created(topic)
        for number in range(1, 1 + source.randrange(3)):
            oracle.setting_asked(topic, number)
            await admin.alter_configs(ResourceType.TOPIC, topic, {SETTING: str(number * SETTING_UNIT)})
            oracle.setting_answered(topic)
        if is_chosen(source, 0.3):
            oracle.growth_asked(topic, partitions + 1)
            await admin.create_partitions(topic, partitions + 1)
            oracle.grown(topic)
        if is_chosen(source, 0.5):
            oracle.deletion_asked(topic)
            await admin.delete_topic(topic)
            oracle.deleted(topic)

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
                await self._accidents.crash(self._leader())
            case Accident.SEVERAL:
                losses = losses_of(2, is_flushed=False)
                await self._accidents.crash_several(losses.deaths_max, losses.power_losses_max)
            case Accident.CUT:
                await self._accidents.cut()
            case Accident.DISK:
                victim = self._leader() if is_chosen(self._faults, 0.4) else None
                self._run.count("replaced disks of the controller", int(victim is not None))
                await self._accidents.crash(victim, replaces_disk=True)
                await self._wait_voting()
            case Accident.PAUSE:
                await self._accidents.pause()
            case Accident.CLOCKS:
                await self._accidents.skew()

    async def _wait_voting(self) -> None:
        """Wait until all nodes vote, each from the directory that it has."""
        with trio.fail_after(PROGRESS_S_MAX):
            while not self._all_vote():  # noqa: ASYNC110 - the world tells nobody what happens in it
                await trio.sleep(LOOK_S)

    def _all_vote(self) -> bool:
        replicas = {number: _replica(broker) for number, broker in self._living()}
        own = {(number, replica.directory_id) for number, replica in replicas.items()}
        named = [replica.voters for replica in replicas.values() if replica.voters is not None]
        return len(named) == VOTERS and all(
            {(voter.voter_id, voter.voter_directory_id) for voter in voters.voters} == own for voters in named
        )

    def _on_crash(self, victim: BrokerHost, _style: PowerLoss | None) -> None:
        if victim is self._leader():
            self._run.count("crashes of the controller")

    # -- what is there -----------------------------------------------------------------------------------------------

    async def _check_nodes(self) -> None:
        """See that something new is decided soon, that all nodes hear of it, and that they know the same."""
        with trio.fail_after(PROGRESS_S_MAX):
            async with self._cluster.admin("progress") as admin:
                name = f"p{next(self._names)}"
                self._metadata.creation_asked(name, 1)
                await admin.create_topic(NewTopic(name, 1))
                self._metadata.created(name)
            # What was answered is in the newest image: all have it in a moment in which all have the same.
            while len({broker.parts.published.image.offset for _, broker in self._living()}) > 1:  # noqa: ASYNC110 - the world tells nobody what happens in it
                await trio.sleep(LOOK_S)
        for number, broker in self._living():
            self._metadata.check(f"node {number}", _topics_of(broker))
        for (one, first), (other, second) in itertools.combinations(self._living(), 2):
            between_them = f"nodes {one} and {other}"
            images = first.parts.published.image, second.parts.published.image
            if images[0].offset == images[1].offset:
                check_same("agree", f"images of {between_them}", *images)
            logs = [_committed(broker) for broker in (first, second)]
            start, end = max(log[0] for log in logs), min(log[1] for log in logs)
            parts = [[batch for base, batch in log[2] if start <= base < end] for log in logs]
            check_same("committed", f"the logs of {between_them} in [{start}, {end})", *parts)
        self._run.count("agreements")


def _topics_of(broker: Broker) -> dict[str, SeenTopic]:
    image = broker.parts.published.image
    found = {}
    for topic in image.topics_by_name.values():
        setting = int(image.topic_config(topic.name).get(SETTING, "0")) // SETTING_UNIT
        found[topic.name] = SeenTopic(topic.topic_id, len(topic.partitions), setting)
    return found


def _committed(broker: Broker) -> tuple[int, int, list[tuple[int, bytes]]]:
    """Return where a node's metadata log starts, what is committed of it, and its batches with their base offsets."""
    log = _replica(broker)
    start, end = log.start_offset, log.high_watermark
    data = log.batches(start, end, 1 << 30) if start < end else b""
    batches = iterate_batches(memoryview(data))
    return start, end, [(each.base_offset, data[at : at + each.length_bytes]) for at, each in batches]


def _replica(broker: Broker) -> QuorumLog:
    node = broker.parts.metadata.node
    assert isinstance(node, QuorumNode), "all of them keep the metadata"
    return node.replica


def led_epoch(broker: Broker) -> int | None:
    """Return the epoch in which a broker's node is the controller, None where it is not."""
    keeping = broker.parts.metadata.calls.keeping if broker.has_parts else None
    return None if keeping is None or keeping.log is None else keeping.log.leader_epoch


QUORUM: Final = Scenario(
    "quorum",
    "three nodes that vote: topics are made and changed, records produced, while any of them crashes or is cut off",
    main_of(Quorum),
    (
        "process crashes",
        "crashes of the controller",
        "replaced disks of the controller",
        *(f"accidents: {each.value}" for each in Accident),
    ),
)
