"""Shell: the scenario `retry`: records that consumers fail, on three brokers that crash, stand still, lose each other.

Producers fail records to a group's retry topic. What comes back a worker fails again, mostly, in transactions that it
aborts now and then and makes once more; some of it nobody wants any more. In the end each failure that was acknowledged
has come back once, never before its level was over, or is a dead letter, once, and of what was aborted nothing is; and
no replica knows of anything that waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import attrs
import trio

from odradek.client import NewTopic
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.retry.headers import ATTEMPT, DEAD
from odradek.kernel.types import TopicPartition

from .reading import POLL_MS, read_records, text_of
from .retry_oracle import Failure, RetryOracle, Returned
from .runs import Run, Scenario, main_of
from .seeds import WORKLOAD, between, is_chosen
from .waiting_load import COMMITTED, WaitingLoad, producer_settings

if TYPE_CHECKING:
    from random import Random

    from odradek.client.admin import Admin
    from odradek.client.consumer import Consumer
    from odradek.client.delivery import OnDelivery
    from odradek.client.fetched_records import ConsumerRecord
    from odradek.client.producer import Producer

RETRY: Final = "work.group.retry"
LETTERS: Final = "work.group.dlq"
LEVELS_MS: Final = (5, 100, 2_000)
ATTEMPTS: Final = len(LEVELS_MS)
NAME: Final = "failure"
"""The header that says which failure it is: one of the record's own, which comes back with it."""
WORKER: Final = "worker"
QUIET_S: Final = 120
"""After so long everything was given back as often as may be, and what nobody ended has been aborted."""


class Retries(WaitingLoad[Failure]):
    """One run of the scenario."""

    topics: ClassVar = (RETRY, LETTERS)

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._oracle = RetryOracle()
        super().__init__(run, nursery, self._oracle)

    async def _make_topics(self, admin: Admin) -> None:
        letters = {"odradek.retry.dead.letters.of": RETRY}
        await admin.create_topic(NewTopic(LETTERS, self._plan.partitions, configs=letters))
        configs = {
            "odradek.retry.topic": "work",
            "odradek.retry.group": "group",
            "odradek.retry.levels": ",".join(f"{level_ms}ms" for level_ms in LEVELS_MS),
            "odradek.retry.attempts": str(ATTEMPTS),
            **self._of_topics,
        }
        await admin.create_topic(NewTopic(RETRY, self._plan.partitions, configs=configs))

    def _delivered_count(self) -> int:
        return self._oracle.returned_count

    # -- what fails --------------------------------------------------------------------------------------------------

    def _records(self, name: str, source: Random, transaction: str) -> list[Failure]:
        del transaction  # in which one it was says nothing of when it comes back
        count = 1 + between(source, 0, 3)
        return [self._failure(name, source, source.randrange(self._plan.partitions)) for _ in range(count)]

    def _failure(self, name: str, source: Random, partition: int, before: Failure | None = None) -> Failure:
        """Return a failure of a new record, or of one that came back."""
        number = next(self._numbers)
        attempts = 0 if before is None else before.attempts + 1
        is_over = is_chosen(source, 0.1) or attempts == ATTEMPTS
        now_ms = self._cluster.client_machine(name).clock.now_ms()
        return Failure(
            name=f"{name}/{number}",
            value=f"record/{number}" if before is None else before.value,
            partition=partition,
            attempts=attempts,
            is_over=is_over,
            due_ms=0 if is_over else now_ms + LEVELS_MS[attempts],
        )

    async def _enqueue(self, producer: Producer, record: Failure, on_delivery: OnDelivery | None = None) -> None:
        headers = [(NAME, record.name.encode())]
        if record.attempts:
            headers.append((ATTEMPT, b"%d" % record.attempts))
        if record.is_over and record.attempts < ATTEMPTS:
            headers.append((DEAD, b"1"))
        await producer.enqueue(
            RETRY, record.value, partition=record.partition, headers=headers, on_delivery=on_delivery
        )

    # -- the worker --------------------------------------------------------------------------------------------------

    async def _consume(self) -> None:
        source = self._run.world.seeds.stream(WORKLOAD, WORKER)
        common = {"auto.offset.reset": "earliest", "request.timeout.ms": 5_000}
        async with self._cluster.consumer(WORKER, {**common, **COMMITTED}) as consumer:
            consumer.assign([TopicPartition(RETRY, number) for number in range(self._plan.partitions)])
            while True:
                try:
                    async with self._cluster.producer(WORKER, producer_settings(WORKER)) as producer:
                        while True:
                            await self._work(consumer, producer, source)
                except ClientError as error:  # of the producer: what it was about to fail is done with
                    self._run.count("workers that gave up")
                    self._run.world.note("gave up", WORKER, type(error).__name__)
                    await trio.sleep(0.1)

    async def _work(self, consumer: Consumer, producer: Producer, source: Random) -> None:
        """Read some of what came back, and fail most of it again, in as many transactions as it takes."""
        clock = self._cluster.client_machine(WORKER).clock
        failures = []
        for record in await consumer.poll(timeout_ms=POLL_MS):
            before = self._oracle.read(record.partition, _returned(record), clock.now_ms())
            if is_chosen(source, 0.8):
                failures.append(self._failure(WORKER, source, record.partition, before))
        while failures and not await self._transact_all(producer, failures, source):
            failures = [self._once_more(failure) for failure in failures]

    def _once_more(self, failure: Failure) -> Failure:
        """Return what is failed in the place of what was aborted; not earlier, so it is not due earlier."""
        return attrs.evolve(failure, name=f"{WORKER}/{next(self._numbers)}")

    # -- what must be true -------------------------------------------------------------------------------------------

    async def _check(self) -> None:
        """Read both topics from the beginning, once all is due and what is underway has arrived."""
        await trio.sleep(QUIET_S)
        await self._accidents.wait_in_sync()
        logs = []
        for topic in (RETRY, LETTERS):
            _, found = await read_records(self._cluster, "reader", topic, self._plan.partitions, COMMITTED)
            logs.append({number: [_returned(record) for record in records] for number, records in found.items()})
        self._oracle.check_logs(*logs)
        self._run.count("dead letters", self._oracle.dead_count)
        self._check_nothing_waits()


def _returned(record: ConsumerRecord) -> Returned:
    headers = dict(record.headers)
    return Returned(
        record.offset, text_of(headers.get(NAME) or b""), text_of(record.value), int(headers.get(ATTEMPT) or b"0")
    )


RETRIES: Final = Scenario(
    "retry",
    "three brokers: failed records come back once, never early, or are dead letters once, whatever befalls brokers",
    main_of(Retries),
    (
        "crashes of a leader while records wait",
        "dead letters",
        "process crashes",
        "pauses",
        "transactions, aborted",
        "transactions, committed",
    ),
)
