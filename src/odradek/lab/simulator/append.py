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

from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition
from odradek.testing.faults import PowerLoss

from .accidents import Accidents
from .cluster import Cluster
from .oracle import Oracle, PromiseBrokenError, Sent
from .promises import promises_of
from .reading import read_logs, text_of
from .runs import Run, Scenario
from .seeds import WORKLOAD, between, is_chosen
from .world import MICROSECOND, MILLISECOND, SECOND

if TYPE_CHECKING:
    from random import Random

    from odradek.client.delivery import OnDelivery, RecordMetadata
    from odradek.client.producer import Producer

    from .disk_accidents import DiskAccidents

TOPIC: Final = "records"
RECORDS_MIN: Final = 30
"""How many records each producer sends at least."""
HASTE: Final = 100
"""After so many turns a producer takes its time: records are what a run costs, accidents what it is for."""
CALM_NS: Final = 2 * SECOND
QUIET_S: Final = 60
"""After so long nothing is underway any more, not even on a link that stalls."""
FILLER_BYTES_MAX: Final = 20_000


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


class Append:
    """One run of the scenario.

    Attributes:
        accidents: What each run must have exercised of them.
    """

    accidents: tuple[str, ...] = ("crashes",)

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._random = run.world.seeds.stream(WORKLOAD)
        self._plan = plan = Plan.drawn(self._random)
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
                for number in range(1, self._plan.producers + 1):
                    writers.start_soon(self._produce, f"producer-{number}")
                writers.start_soon(self._accidents.run)
            await self.check()
            readers.cancel_scope.cancel()
        self._run.count("acknowledged", self._oracle.acknowledged_count)
        self._run.count("delivered", self._oracle.delivered_count)
        self._run.require(*self.accidents, "sent", "delivered", *(() if self._plan.acks == "0" else ("acknowledged",)))
        await self._broker.stop()

    # -- clients -----------------------------------------------------------------------------------------------------

    async def _produce(self, name: str) -> None:
        plan = self._plan
        settings: dict[str, object] = {
            "acks": plan.acks,
            "enable.idempotence": plan.is_idempotent,
            "delivery.timeout.ms": 60_000,
            "request.timeout.ms": 5_000,
            "linger.ms": 0,
        }
        source = self._run.world.seeds.stream(WORKLOAD, name)
        for life in itertools.count(1):
            try:
                async with self._cluster.producer(name, settings) as producer:
                    await self._send(producer, f"{name}.{life}", source)
            except ClientError as error:
                # After a loss of power its broker may know less of it than it does.
                self._run.count("producers that gave up")
                self._run.world.note("gave up", name, type(error).__name__)
            else:
                return

    async def _send(self, producer: Producer, name: str, source: Random) -> None:
        for number in itertools.count():
            if self._accidents.are_over and number >= RECORDS_MIN:
                return
            for _ in range(1 + between(source, 0, 20)):
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
            pause_ns_max = self._plan.pause_ns_max if number < HASTE else CALM_NS
            await trio.sleep(between(source, MICROSECOND, pause_ns_max) / SECOND)

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

    async def consume(self) -> None:
        """Read on, and check what comes."""
        settings = {"auto.offset.reset": "earliest", "group.id": None, "request.timeout.ms": 5_000}
        async with self._cluster.consumer("consumer-1", settings) as consumer:
            consumer.assign([TopicPartition(TOPIC, number) for number in range(self._plan.partitions)])
            while True:
                for record in await consumer.poll(timeout_ms=1_000):
                    now_ns = self._run.world.now_ns
                    self._oracle.delivered(record.partition, record.offset, text_of(record.value), now_ns)

    # -- the end -----------------------------------------------------------------------------------------------------

    async def check(self) -> None:
        """Read everything from the beginning, once what is underway has arrived."""
        await trio.sleep(QUIET_S)
        logs = await read_logs(self._cluster, TOPIC, self._plan.partitions, {})
        for partition, log in logs.items():
            for offset, text in log:
                self._oracle.delivered(partition, offset, text, self._run.world.now_ns)
            self._oracle.check_log(partition, log)


async def append(run: Run) -> None:
    """Run the scenario."""
    async with trio.open_nursery() as nursery:
        await Append(run, nursery).run()


APPEND: Final = Scenario(
    "append",
    "producers and a consumer, while their broker crashes and their network fails",
    append,
    ("crashes with records on their way", "process crashes", "power losses, torn"),
)
