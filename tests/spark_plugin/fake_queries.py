"""A streaming query as Spark runs it, as far as its sink sees it: batches, tasks, attempts, runs; a step a request."""

from collections.abc import Generator, Iterator
from typing import Any, TypeAlias

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ClientError, ConnectionFailedError
from odradek.kernel.types import TopicPartition
from odradek.spark_plugin.writing.transaction_steps import (
    Ask,
    Coordination,
    Pause,
    Steps,
    TransactionalProducer,
    refused,
)
from odradek.spark_plugin.writing.transactions import PartitionOfBatch, WrittenPartition, abort_all, commit_all
from tests.spark_plugin.fake_transactions import FakeCluster

ANCHOR = TopicPartition("out", 0)
PARTITIONS = 2
ATTEMPTS_MAX = 4


class TaskDiedError(Exception):
    """The process of a task is gone."""


class DriverDiedError(Exception):
    """The driver is gone, and all of its run."""


@attrs.frozen
class Write:
    """Produce some records."""

    producer: TransactionalProducer
    partition: TopicPartition
    records: list[str]


Step: TypeAlias = Ask | Pause | Write
Acts: TypeAlias = Generator[Step, Any, Any]


def expected(batches_count: int) -> list[str]:
    """Return every record of so many batches."""
    return sorted(
        record for batch in range(batches_count) for number in range(PARTITIONS) for record in rows_of(batch, number)
    )


def rows_of(batch_id: int, partition_id: int) -> list[str]:
    """Return the rows of one partition of a batch: always the same ones."""
    return [f"{batch_id}/{partition_id}/{number}" for number in range(2)]


@attrs.define
class Checkpoint:
    """What survives of a query."""

    next_batch: int = 0


@attrs.define
class Query:
    """One run of a query; `acts` is all of it."""

    cluster: FakeCluster
    checkpoint: Checkpoint
    run_id: str
    batches_count: int
    commits_count: int = 0
    written: list[WrittenPartition] = attrs.field(factory=list)

    @property
    def coordination(self) -> Coordination:
        """How this run speaks to coordinators."""
        return Coordination(self.cluster.monotonic_ms, self.cluster.is_v2, self.cluster.timeout, 200, 20)

    def acts(self) -> Acts:
        """Run all batches that are not noted as done."""
        while self.checkpoint.next_batch < self.batches_count:
            batch_id = self.checkpoint.next_batch
            written: list[WrittenPartition] = []
            for number in range(PARTITIONS):
                one = yield from self._attempts(batch_id, number)
                written.append(one)
            try:
                self.commits_count += yield from commit_all(self.coordination, written)
            except ClientError:
                yield from abort_all(self.coordination, written)
                raise
            if self.checkpoint.next_batch == batch_id:
                self.checkpoint.next_batch = batch_id + 1

    def _attempts(self, batch_id: int, number: int) -> Acts:
        for attempt in range(ATTEMPTS_MAX):
            try:
                return (yield from self.task(batch_id, number, attempt))
            except (TaskDiedError, ClientError):
                if attempt == ATTEMPTS_MAX - 1:
                    raise
        raise AssertionError

    def task(self, batch_id: int, number: int, attempt: int) -> Acts:
        """Write one partition."""
        rows = rows_of(batch_id, number)
        part = PartitionOfBatch(
            coordination=self.coordination,
            query_id="Q",
            run_id=self.run_id,
            batch_id=batch_id,
            partition_id=number,
            attempt_number=attempt,
            anchor=ANCHOR,
        )
        if (yield from part.begin()):
            assert part.producer is not None
            yield from self.coordination.add_partitions(part.producer, [TopicPartition("out", number)])
            for row in rows:
                yield Write(part.producer, TopicPartition("out", number), [row])
            yield from part.finish(len(rows))
        else:
            part.check_replay(len(rows))
        return part.written(len(rows), 0)


def take(cluster: FakeCluster, step: Step) -> Any:
    """Do what a step says, and return the answer."""
    if isinstance(step, Pause):
        return None
    if isinstance(step, Ask):
        return cluster.ask(step)
    code = ErrorCode.CONCURRENT_TRANSACTIONS
    for _ in range(20):
        code = cluster.write(step.producer, step.partition, step.records)
        if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            break
    if code is not ErrorCode.NONE:
        raise refused(code, "Produce")
    return None


def drive(cluster: FakeCluster, acts: Acts, *, deaths: Iterator[tuple[int, str, bool]] | None = None) -> Any:
    """Run to the end, dying where told.

    Args:
        cluster: Who answers.
        acts: Of a query.
        deaths: `(number of the request, who dies, whether the broker has done it)`, rising. Who: `driver`, `task`, or
            `answer`, where nobody dies but the connection.
    """
    due = next(deaths, None) if deaths is not None else None
    answer: Any = None
    try:
        step = next(acts)
        while True:
            is_request = not isinstance(step, Pause)
            if due is not None and is_request and cluster.requests_count + 1 >= due[0]:
                _, who, is_done = due
                assert deaths is not None
                due = next(deaths, None)
                if is_done:
                    take(cluster, step)
                else:
                    cluster.requests_count += 1
                if who == "driver":
                    raise DriverDiedError
                error = TaskDiedError() if who == "task" else ConnectionFailedError("the connection broke")
                step = acts.throw(error)
                continue
            try:
                answer = take(cluster, step)
            except ClientError as error:
                step = acts.throw(error)
            else:
                step = acts.send(answer)
    except StopIteration as stop:
        return stop.value


def drive_steps(cluster: FakeCluster, steps: Steps[Any]) -> Any:
    """Run steps to their end, undisturbed."""
    return drive(cluster, steps)
