"""Shell: the scenario `compaction`: a compacted topic is written and read while its broker crashes, swaps included.

Drawn from the seed: partitions, writers and their keys, which of them write in transactions, how often segments are
rolled, how long tombstones stay, each accident. One crash in three comes by operations on files that take each other's
place. The topic is read from its beginning again and again.

As in `transactions`, everything is flushed before it is acknowledged where power is lost.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from odradek.client.errors import TransactionAbortableError
from odradek.kernel.peers.errors import ClientError

from .accidents import Accidents
from .cluster import Cluster
from .committing import commit
from .compaction_oracle import CompactionOracle, ReadRecord, Write, WriteFate
from .faults import EVENTS, OPERATIONS, operations_on
from .reading import read_ends, read_on, read_records
from .runs import Run, Scenario, main_of
from .seeds import WORKLOAD, between, is_chosen
from .world import MICROSECOND, MILLISECOND, SECOND

if TYPE_CHECKING:
    from random import Random

    from odradek.client.delivery import OnDelivery, RecordMetadata
    from odradek.client.fetched_records import ConsumerRecord
    from odradek.client.producer import Producer
    from odradek.testing.faults import PowerLoss

TOPIC: Final = "records"
NAME_HEADER: Final = "name"
SWAP_MARKS: Final = (".cleaned", ".swap", ".deleted")
WRITES_MIN: Final = 30
"""How many records each writer writes at least."""
QUIET_S: Final = 120
FILLER_BYTES_MAX: Final = 2_000


@attrs.frozen
class Plan:
    """What was drawn for a run."""

    partitions: int
    writers: int
    keys: int
    roll_ms: int
    delete_retention_ms: int
    has_power_losses: bool
    crashes: int
    has_trouble: bool
    pause_ns_max: int

    @classmethod
    def drawn(cls, source: Random) -> Plan:
        """Draw one."""
        return cls(
            partitions=1 + source.randrange(2),
            writers=2 + source.randrange(2),
            keys=1 + source.randrange(6),
            roll_ms=source.choice((500, 2_000, 10_000)),
            delete_retention_ms=source.choice((5_000, 30_000, 86_400_000)),
            has_power_losses=is_chosen(source, 0.6),
            crashes=1 + source.randrange(4),
            has_trouble=is_chosen(source, 0.3),
            pause_ns_max=source.choice((200 * MILLISECOND, SECOND, 3 * SECOND)),
        )

    @property
    def settings(self) -> dict[str, str]:
        """The broker's."""
        return {
            "num.partitions": str(self.partitions),
            "log.cleanup.policy": "compact",
            "log.cleaner.backoff.ms": "1000",
            "log.cleaner.delete.retention.ms": str(self.delete_retention_ms),
            "log.cleaner.min.cleanable.ratio": "0.01",
            "log.roll.ms": str(self.roll_ms),
            "log.segment.delete.delay.ms": "1000",
            **({"log.flush.interval.messages": "1"} if self.has_power_losses else {}),
        }


class Compaction:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        self._oracle = CompactionOracle(plan.delete_retention_ms)
        self._cluster = Cluster(run.world, nursery)
        self._broker = self._cluster.add_broker({**plan.settings, **run.settings})
        self._accidents = Accidents(
            run,
            self._cluster,
            self._broker,
            crashes=plan.crashes,
            has_trouble=plan.has_trouble,
            on_crash=self._on_crash,
            has_power_losses=plan.has_power_losses,
            counted=(EVENTS, OPERATIONS, *map(operations_on, SWAP_MARKS)),
        )

    def _on_crash(self, _style: PowerLoss | None) -> None:
        names = [path.rpartition("/")[2] for path, _ in self._broker.host.disk.walk() if f"/{TOPIC}-" in path]
        for mark in SWAP_MARKS:
            if any(name.endswith(mark) for name in names):
                self._run.count(f"crashes with {mark} there")

    async def run(self) -> None:
        """Let everything happen, then check."""
        run, plan = self._run, self._plan
        async with trio.open_nursery() as readers:
            readers.start_soon(self._tail)
            readers.start_soon(self._read_again_and_again)
            async with trio.open_nursery() as writers:
                for number in range(1, plan.writers + 1):
                    writers.start_soon(self._write, f"writer-{number}", number % 2 == 0)
                writers.start_soon(self._accidents.run)
            await trio.sleep(QUIET_S)
            read_count = await self._read("last-reader")
            readers.cancel_scope.cancel()
        ends = await read_ends(self._cluster, TOPIC, plan.partitions)
        run.count("offsets that are gone", sum(ends.values()) - read_count)
        run.count("delivered", self._oracle.delivered_count)
        run.count("keys found gone", self._oracle.tombstones_gone_count)
        run.require("crashes", "delivered", "offsets that are gone", "reads from the beginning")
        await self._broker.stop()

    # -- writers -----------------------------------------------------------------------------------------------------

    async def _write(self, name: str, is_transactional: bool) -> None:
        settings: dict[str, object] = {
            "delivery.timeout.ms": 15_000,
            "request.timeout.ms": 5_000,
            "max.block.ms": 15_000,
            "linger.ms": 0,
        }
        if is_transactional:
            settings |= {"transactional.id": name, "transaction.timeout.ms": 20_000}
        source = self._run.world.seeds.stream(WORKLOAD, name)
        numbers = itertools.count()
        while True:
            try:
                async with self._cluster.producer(name, settings) as producer:
                    while not (self._accidents.are_over and next(numbers) >= WRITES_MIN):
                        if is_transactional:
                            await self._transact(producer, name, source)
                        else:
                            await self._send(producer, name, source)
                        await trio.sleep(between(source, MICROSECOND, self._plan.pause_ns_max) / SECOND)
                    return
            except ClientError as error:
                self._run.count("writers that gave up")
                self._run.world.note("gave up", name, type(error).__name__)
                await trio.sleep(0.1)

    def _drawn(self, name: str, source: Random) -> tuple[Write, dict[str, Any]]:
        """Draw a record, and return what it is sent by."""
        key = f"{name}-{source.randrange(self._plan.keys)}"
        partition = sum(key.encode()) % self._plan.partitions
        is_tombstone = is_chosen(source, 0.2)
        filler = "x" * between(source, 0, FILLER_BYTES_MAX)
        write = self._oracle.sent(key, partition, is_tombstone=is_tombstone, now_ms=self._run.world.wall_ms())
        return write, {
            "topic": TOPIC,
            "key": key,
            "value": None if is_tombstone else f"{write.name} {filler}",
            "partition": partition,
            "headers": [(NAME_HEADER, write.name.encode())],
        }

    async def _send(self, producer: Producer, name: str, source: Random) -> None:
        write, sent = self._drawn(name, source)
        write.offset = (await producer.send(**sent)).offset
        self._run.count("writes")
        self._oracle.settled([write], WriteFate.KEPT)

    async def _transact(self, producer: Producer, name: str, source: Random) -> None:
        writes: list[Write] = []
        try:
            await producer.begin_transaction()
            for _ in range(1 + between(source, 0, 5)):
                write, sent = self._drawn(name, source)
                writes.append(write)
                await producer.enqueue(**sent, on_delivery=_noting(write))
            if is_chosen(source, 0.3):
                await producer.abort_transaction()
                fate = WriteFate.ABORTED
            else:
                await commit(producer)
                fate = WriteFate.KEPT
        except TransactionAbortableError:
            await producer.abort_transaction()
            fate = WriteFate.ABORTED
        self._run.count(f"writes in transactions, {fate.value}", len(writes))
        self._oracle.settled(writes, fate)

    # -- readers -----------------------------------------------------------------------------------------------------

    async def _tail(self) -> None:
        settings = {"isolation.level": "read_committed"}
        await read_on(self._cluster, "tail", TOPIC, self._plan.partitions, settings, self._delivered)

    def _delivered(self, record: ConsumerRecord) -> None:
        self._oracle.delivered(_as_read(record))

    async def _read_again_and_again(self) -> None:
        source = self._run.world.seeds.stream(WORKLOAD, "reader")
        while True:
            await trio.sleep(between(source, MILLISECOND, 30 * SECOND) / SECOND)
            try:
                await self._read("again")
            except ClientError:
                self._run.count("reads that failed")

    async def _read(self, name: str) -> int:
        """Read everything from the beginning, and check it; return how many records there were."""
        world = self._run.world
        begun = self._oracle.begin(world.wall_ms())
        settings = {"isolation.level": "read_committed", "request.timeout.ms": 5_000}
        ends, found = await read_records(self._cluster, name, TOPIC, self._plan.partitions, settings)
        logs = [[_as_read(record) for record in records] for records in found.values()]
        self._oracle.check(begun, ends, logs, world.wall_ms())
        self._run.count("reads from the beginning")
        return sum(map(len, logs))


def _noting(write: Write) -> OnDelivery:
    def told(metadata: RecordMetadata | None, _error: ClientError | None) -> None:
        if metadata is not None:
            write.offset = metadata.offset

    return told


def _as_read(record: ConsumerRecord) -> ReadRecord:
    name = dict(record.headers)[NAME_HEADER]
    assert name is not None, "every record has a name"
    return ReadRecord(record.partition, record.offset, name.decode(), record.value is None)


COMPACTION: Final = Scenario(
    "compaction",
    "a compacted topic with tombstones and transactions, while its broker crashes, swaps of segments included",
    main_of(Compaction),
    (
        *(f"crashes with {mark} there" for mark in SWAP_MARKS),
        "keys found gone",
        "offsets that are gone",
        "power losses, torn",
        "process crashes",
        "writes in transactions, aborted",
    ),
)
