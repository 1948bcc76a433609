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
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition

from .cluster import Cluster
from .cluster_accidents import SETTINGS, ClusterAccidents
from .oracle import Oracle, PromiseBrokenError, Sent
from .promises import IN_SYNC
from .reading import read_logs, text_of
from .runs import Run, Scenario
from .seeds import FAULTS, WORKLOAD, between, is_chosen
from .world import MICROSECOND, MILLISECOND, SECOND

if TYPE_CHECKING:
    from random import Random

    from odradek.client.delivery import OnDelivery, RecordMetadata
    from odradek.client.producer import Producer
    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost

TOPIC: Final = "records"
RECORDS_MIN: Final = 30
"""How many records each producer sends at least."""
QUIET_S: Final = 30
FILLER_BYTES_MAX: Final = 5_000


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


class Replication:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._random = run.world.seeds.stream(WORKLOAD)
        self._faults = run.world.seeds.stream(FAULTS, "brokers")
        self._plan = plan = Plan.drawn(self._random)
        run.world.note("plan", *attrs.astuple(plan))
        self._oracle = Oracle(IN_SYNC, is_idempotent=plan.is_idempotent)
        self._cluster = Cluster(run.world, nursery)
        self._cluster.add_brokers(3, {**SETTINGS, "num.replica.fetchers": str(plan.fetchers), **run.settings})
        self._accidents = ClusterAccidents(run, self._cluster, self._faults, {TOPIC}, self._on_crash)
        self._are_accidents_over = False

    async def run(self) -> None:
        """Let everything happen, then check."""
        await self._cluster.start()
        await self._make_topic()
        async with trio.open_nursery() as readers:
            readers.start_soon(self._consume)
            async with trio.open_nursery() as writers:
                for number in range(1, self._plan.producers + 1):
                    writers.start_soon(self._produce, f"producer-{number}")
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

    # -- clients -----------------------------------------------------------------------------------------------------

    async def _produce(self, name: str) -> None:
        settings: dict[str, object] = {
            "acks": "all",
            "enable.idempotence": self._plan.is_idempotent,
            "delivery.timeout.ms": 120_000,
            "request.timeout.ms": 5_000,
            "linger.ms": 0,
        }
        source = self._run.world.seeds.stream(WORKLOAD, name)
        for life in itertools.count(1):
            try:
                async with self._cluster.producer(name, settings) as producer:
                    await self._send(producer, f"{name}.{life}", source)
            except ClientError as error:
                self._run.count("producers that gave up")
                self._run.world.note("gave up", name, type(error).__name__)
            else:
                return

    async def _send(self, producer: Producer, name: str, source: Random) -> None:
        numbers = itertools.count()
        while not (self._are_accidents_over and next(numbers) >= RECORDS_MIN):
            for _ in range(1 + between(source, 0, 10)):
                record = Sent(name, self._run.coverage.get("sent", 0), source.randrange(self._plan.partitions))
                self._run.count("sent")
                self._oracle.sent(record)
                value = record.value + " " + "x" * between(source, 0, FILLER_BYTES_MAX)
                try:
                    await producer.enqueue(
                        TOPIC, value, partition=record.partition, on_delivery=self._on_delivery(record)
                    )
                except ClientError:
                    self._oracle.given_up()
                    raise
            await trio.sleep(between(source, MICROSECOND, self._plan.pause_ns_max) / SECOND)

    def _on_delivery(self, record: Sent) -> OnDelivery:
        run = self._run

        def told(metadata: RecordMetadata | None, error: ClientError | None) -> None:
            if metadata is None:
                run.count("given up")
                self._oracle.given_up()
                return
            try:
                self._oracle.acknowledged(record, metadata.offset, run.world.now_ns)
            except PromiseBrokenError as broken:  # the producer would only log it
                run.fail(broken)

        return told

    async def _consume(self) -> None:
        settings = {"auto.offset.reset": "earliest", "group.id": None, "request.timeout.ms": 5_000}
        async with self._cluster.consumer("consumer-1", settings) as consumer:
            consumer.assign([TopicPartition(TOPIC, number) for number in range(self._plan.partitions)])
            while True:
                for record in await consumer.poll(timeout_ms=1_000):
                    now_ns = self._run.world.now_ns
                    self._oracle.delivered(record.partition, record.offset, text_of(record.value), now_ns)

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _check(self) -> None:
        """Read everything from the beginning, once what is underway has arrived."""
        await trio.sleep(QUIET_S)
        await self._accidents.wait_in_sync()
        self._check_agreement()
        logs = await read_logs(self._cluster, TOPIC, self._plan.partitions, {})
        for partition, log in logs.items():
            for offset, text in log:
                self._oracle.delivered(partition, offset, text, self._run.world.now_ns)
            self._oracle.check_log(partition, log)


def _below(batches: list[bytes], end: int) -> list[bytes]:
    return [batch for batch in batches if int.from_bytes(batch[:8]) < end]


async def replication(run: Run) -> None:
    """Run the scenario."""
    async with trio.open_nursery() as nursery:
        await Replication(run, nursery).run()


REPLICATION: Final = Scenario(
    "replication",
    "three brokers: producers and a consumer, while brokers crash and lose each other",
    replication,
    ("process crashes", "power losses, torn", "cuts", "crashes of a leader", "agreements"),
)
