"""Shell: producers and a consumer of plain records, whose every word is checked by an `Oracle`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.kernel.peers.errors import ClientError

from .oracle import PromiseBrokenError, Sent
from .reading import read_logs, read_on, text_of
from .seeds import WORKLOAD, between
from .world import MICROSECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from random import Random

    from odradek.client.delivery import OnDelivery, RecordMetadata
    from odradek.client.fetched_records import ConsumerRecord
    from odradek.client.producer import Producer

    from .cluster import Cluster
    from .oracle import Oracle
    from .runs import Run

TOPIC: Final = "records"


@attrs.frozen
class Load:
    """How much of it there is.

    Attributes:
        partitions: How many the topic has.
        producers: How many send.
        settings: The producers', besides what all have.
        burst_max: How many records more than one are sent in a turn at most.
        filler_bytes_max: How much a record has at most besides what it says.
    """

    partitions: int
    producers: int
    settings: Mapping[str, object]
    burst_max: int
    filler_bytes_max: int


class RecordLoad:
    """Life: made; `produce_in` and `consume` as tasks; `check` when it is quiet."""

    def __init__(
        self, run: Run, cluster: Cluster, oracle: Oracle, load: Load, turns: Callable[[], Iterator[int]]
    ) -> None:
        """Prepare it.

        Args:
            run: Where it is counted.
            cluster: Where it happens.
            oracle: Told of everything.
            load: How much of it.
            turns: The turns of a producer, as long as it lives: after each it pauses for so many nanoseconds at most.
        """
        self._run = run
        self._cluster = cluster
        self._oracle = oracle
        self._load = load
        self._turns = turns
        self._numbers = itertools.count()
        self._read_up_to: dict[int, int] = {}

    # -- producers ---------------------------------------------------------------------------------------------------

    def produce_in(self, nursery: trio.Nursery) -> None:
        """Let all producers send, each a task that ends when it has had its turns."""
        for number in range(1, self._load.producers + 1):
            nursery.start_soon(self._produce, f"producer-{number}")

    async def _produce(self, name: str) -> None:
        settings = {"request.timeout.ms": 5_000, "linger.ms": 0, **self._load.settings}
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
        load = self._load
        for pause_ns_max in self._turns():
            for _ in range(1 + between(source, 0, load.burst_max)):
                record = Sent(name, next(self._numbers), source.randrange(load.partitions))
                self._run.count("sent")
                self._oracle.sent(record)
                value = record.value + " " + "x" * between(source, 0, load.filler_bytes_max)
                try:
                    await producer.enqueue(
                        TOPIC, value, partition=record.partition, on_delivery=self._on_delivery(record)
                    )
                except ClientError:
                    self._oracle.given_up()
                    raise
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

    # -- readers -----------------------------------------------------------------------------------------------------

    async def consume(self) -> None:
        """Read on, and check what comes."""
        settings = {"group.id": None}
        await read_on(self._cluster, "consumer-1", TOPIC, self._load.partitions, settings, self._delivered)

    def _delivered(self, record: ConsumerRecord) -> None:
        self._run.count("delivered while it goes on")
        self._oracle.followed(record.partition, self._read_up_to.get(record.partition, 0), record.offset)
        self._read_up_to[record.partition] = record.offset + 1
        self._oracle.delivered(record.partition, record.offset, text_of(record.value), self._run.world.now_ns)

    async def check(self) -> None:
        """Read everything from the beginning, and check it; everything is whole, and nothing underway."""
        logs = await read_logs(self._cluster, TOPIC, self._load.partitions, {})
        for partition, log in logs.items():
            self.check_log(partition, log)

    def check_log(self, partition: int, log: Sequence[tuple[int, str]]) -> None:
        """Check what a partition held from its beginning to its end: offsets and texts."""
        for offset, text in log:
            self._oracle.delivered(partition, offset, text, self._run.world.now_ns)
        self._oracle.check_log(partition, log)
