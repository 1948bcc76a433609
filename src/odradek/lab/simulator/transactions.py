"""Shell: the scenario `transactions`: producers commit and abort while their broker crashes and their network fails.

Drawn from the seed: partitions, producers, how many records a transaction has, whether it is aborted on purpose, each
accident. What a loss of power may take is left to the scenario `append`: where power is lost here, everything is
flushed before it is acknowledged. A producer that is told that its transaction failed, or is not told what became of
it, goes on as a new one of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client.errors import TransactionAbortableError
from odradek.kernel.peers.errors import ClientError

from .accidents import Accidents
from .cluster import Cluster
from .committing import commit
from .oracle import PromiseBrokenError
from .reading import read_ends, read_logs, read_on, text_of
from .runs import Run, Scenario, main_of
from .seeds import WORKLOAD, between, is_chosen
from .transaction_oracle import Fate, Transaction, TransactionOracle
from .world import MICROSECOND, MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from odradek.client.fetched_records import ConsumerRecord
    from odradek.client.producer import Producer
    from odradek.testing.faults import PowerLoss

TOPIC: Final = "records"
COMMITTED: Final = {"isolation.level": "read_committed"}
TRANSACTIONS_MIN: Final = 10
"""How many transactions each producer has at least."""
QUIET_S: Final = 120
"""After so long nothing is underway any more, and what nobody ended has been aborted."""


@attrs.frozen
class Plan:
    """What was drawn for a run."""

    partitions: int
    producers: int
    has_power_losses: bool
    crashes: int
    has_trouble: bool
    pause_ns_max: int

    @classmethod
    def drawn(cls, source: Random) -> Plan:
        """Draw one."""
        return cls(
            partitions=1 + source.randrange(3),
            producers=1 + source.randrange(2),
            has_power_losses=is_chosen(source, 0.5),
            crashes=1 + source.randrange(4),
            has_trouble=is_chosen(source, 0.5),
            pause_ns_max=source.choice((MILLISECOND, 50 * MILLISECOND, 500 * MILLISECOND)),
        )


class TransactionLoad:
    """What producers and a consumer do. Life: made; `produce` and `consume` as tasks; `check` when it is quiet.

    Attributes:
        open_count: How many transactions are open now.
    """

    def __init__(
        self, run: Run, cluster: Cluster, plan: Plan, is_over: Callable[[], bool], pause_ns_max: Callable[[], int]
    ) -> None:
        """Prepare it.

        Args:
            run: Where it is counted.
            cluster: Where it happens.
            plan: How much of it.
            is_over: Returns whether nothing more goes wrong: then producers end.
            pause_ns_max: Returns how long a producer pauses at most after the transaction that it has just ended.
        """
        self._run = run
        self._cluster = cluster
        self._plan = plan
        self._is_over = is_over
        self._pause_ns_max = pause_ns_max
        self._oracle = TransactionOracle()
        self.open_count = 0

    async def produce(self) -> None:
        """Have all producers make their transactions."""
        async with trio.open_nursery() as writers:
            for number in range(1, self._plan.producers + 1):
                writers.start_soon(self._produce, f"producer-{number}")

    async def check(self) -> None:
        """Read everything, and hold it against what was told; count what happened."""
        partitions = self._plan.partitions
        self._oracle.check(await read_logs(self._cluster, TOPIC, partitions, COMMITTED))
        ends = await read_ends(self._cluster, TOPIC, partitions)
        if ends != (readable := await read_ends(self._cluster, TOPIC, partitions, COMMITTED)):
            raise PromiseBrokenError(
                "ended",
                f"a transaction is open for ever: partitions end at {ends}, for readers "
                f"of what is committed at {readable}",
            )
        for fate, count in self._oracle.counts.items():
            self._run.count(f"transactions, {fate.value}", count)
        self._run.count("delivered", self._oracle.delivered_count)
        self._run.require("crashes", "delivered", "transactions, committed")

    async def _produce(self, name: str) -> None:
        settings: dict[str, object] = {
            "transactional.id": name,
            "transaction.timeout.ms": 20_000,
            "delivery.timeout.ms": 15_000,
            "request.timeout.ms": 5_000,
            "max.block.ms": 15_000,
            "linger.ms": 0,
        }
        source = self._run.world.seeds.stream(WORKLOAD, name)
        number, served = 0, False
        while True:
            try:
                async with self._cluster.producer(name, settings) as producer:
                    while not (served and number >= TRANSACTIONS_MIN):  # until one is committed when all is well again
                        number, is_over = number + 1, self._is_over()
                        is_committed = await self._transact(producer, Transaction(name, number), source)
                        served = served or (is_over and is_committed)
                        await trio.sleep(between(source, MICROSECOND, self._pause_ns_max()) / SECOND)
                    break
            except ClientError as error:
                self._run.count("producers that gave up")
                self._run.world.note("gave up", name, type(error).__name__)
                await trio.sleep(0.1)
        if is_chosen(source, 0.5):
            await self._leave(name, settings, Transaction(name, number + 1), source)

    async def _transact(self, producer: Producer, transaction: Transaction, source: Random) -> bool:
        """Make one transaction; return whether it was committed; raises when nobody knows what became of it."""
        fate = Fate.UNKNOWN
        self._oracle.begun(transaction)
        self.open_count += 1
        try:
            await producer.begin_transaction()
            for _ in range(1 + between(source, 0, 10)):
                partition = source.randrange(self._plan.partitions)
                value = self._oracle.sent(transaction, partition) + " " + "x" * between(source, 0, 2_000)
                await producer.enqueue(TOPIC, value, partition=partition)
                await trio.sleep(between(source, MICROSECOND, self._plan.pause_ns_max // 4) / SECOND)
            if is_chosen(source, 0.2):
                await producer.abort_transaction()
                fate = Fate.ABORTED
            else:
                await commit(producer)
                fate = Fate.COMMITTED
        except TransactionAbortableError:
            await producer.abort_transaction()
            fate = Fate.ABORTED
        finally:
            self.open_count -= 1
            self._oracle.ended(transaction, fate)
        return fate is Fate.COMMITTED

    async def _leave(self, name: str, settings: Mapping[str, object], transaction: Transaction, source: Random) -> None:
        """Have a process of a producer be killed with a transaction open: the coordinator is to end it."""
        host = f"{name}'s last"

        async def main() -> None:
            async with self._cluster.producer(host, settings) as producer:
                await producer.begin_transaction()
                partition = source.randrange(self._plan.partitions)
                await producer.enqueue(TOPIC, self._oracle.sent(transaction, partition), partition=partition)
                await producer.flush()
                self._run.count("producers that were killed")
                self._cluster.client_host(host).kill_process()

        self._oracle.begun(transaction)
        try:
            await self._cluster.run_client(host, main)
        finally:
            self._oracle.ended(transaction, Fate.UNKNOWN)

    async def consume(self) -> None:
        """Read on, until cancelled."""
        await read_on(self._cluster, "consumer-1", TOPIC, self._plan.partitions, COMMITTED, self._delivered)

    def _delivered(self, record: ConsumerRecord) -> None:
        self._oracle.delivered(record.partition, record.offset, text_of(record.value))


class Transactions:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        cluster = Cluster(run.world, nursery)
        settings = {"num.partitions": str(plan.partitions)}
        if plan.has_power_losses:
            settings["log.flush.interval.messages"] = "1"
        self._broker = cluster.add_broker({**settings, **run.settings})
        self._accidents = Accidents(
            run,
            cluster,
            self._broker,
            crashes=plan.crashes,
            has_trouble=plan.has_trouble,
            on_crash=self._on_crash,
            has_power_losses=plan.has_power_losses,
        )
        self._load = TransactionLoad(run, cluster, plan, lambda: self._accidents.are_over, lambda: plan.pause_ns_max)

    def _on_crash(self, _style: PowerLoss | None) -> None:
        if self._load.open_count:
            self._run.count("crashes with a transaction open")

    async def run(self) -> None:
        """Let everything happen, then check."""
        async with trio.open_nursery() as readers:
            readers.start_soon(self._load.consume)
            async with trio.open_nursery() as writers:
                writers.start_soon(self._load.produce)
                writers.start_soon(self._accidents.run)
            await trio.sleep(QUIET_S)
            await self._load.check()
            readers.cancel_scope.cancel()
        await self._broker.stop()


TRANSACTIONS: Final = Scenario(
    "transactions",
    "producers commit and abort, while their broker crashes and their network fails",
    main_of(Transactions),
    ("crashes with a transaction open", "process crashes", "power losses, torn", "transactions, aborted"),
)
