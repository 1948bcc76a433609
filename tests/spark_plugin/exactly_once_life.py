"""A query that writes exactly once to a real broker, by real tasks, and dies where it is told to; no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from odradek.kernel.peers.errors import ClientError
from odradek.spark_plugin.client import Client
from odradek.spark_plugin.client.clock import SystemPausingClock
from odradek.spark_plugin.worker import TaskIdentity
from odradek.spark_plugin.writing.transactions import WrittenPartition
from odradek.spark_plugin.writing.write_task import TaskWriter, abort, commit, plan_write

if TYPE_CHECKING:
    from collections.abc import Callable

PARTITIONS = 2
BATCHES = 2


class DiedError(Exception):
    """The whole process is gone."""


class DyingClient(Client):
    """Counts what it asks of coordinators, and when it begins to write; dies at one of these.

    Attributes:
        dies_at: The number of that request, from 1.
        is_done: Whether the broker has answered it by then.
    """

    dies_at: int | None = None
    is_done = False
    count = 0
    accident: Callable[[], object] | None = None
    """What happens to others instead of the death of this one."""

    def _dies(self, *, is_done: bool) -> None:
        if self.count != self.dies_at or is_done is not self.is_done:
            return
        if self.accident is None:
            raise DiedError
        accident, self.accident, self.dies_at = self.accident, None, None
        accident()

    def call_coordinator(self, *args: Any, **kwargs: Any) -> Any:
        """Ask, unless it dies before."""
        self.count += 1
        self._dies(is_done=False)
        answer = super().call_coordinator(*args, **kwargs)
        self._dies(is_done=True)
        return answer

    def lease(self, node_id: int) -> Any:
        """Lease, unless it dies before; a connection is leased to write."""
        self.count += 1
        self._dies(is_done=False)
        connection = super().lease(node_id)
        self._dies(is_done=True)
        return connection


@attrs.define
class Life:
    """One query, through all its runs.

    Attributes:
        bootstrap: The broker.
        topic: Where it writes.
        accident: What happens in the first run instead of its death; None for that.
        runs_count: How many runs there were.
        requests_count: How many requests the last run made.
    """

    bootstrap: str
    topic: str
    accident: Callable[[], object] | None = None
    runs_count: int = 0
    requests_count: int = 0
    _next_batch: int = 0

    @property
    def expected(self) -> list[bytes]:
        """Everything that is to be in the topic."""
        return sorted(row for batch in range(BATCHES) for part in range(PARTITIONS) for row in rows_of(batch, part))

    def run_to_the_end(self, dies_at: int | None, *, is_done: bool) -> None:
        """Run once and die, then run until it is done."""
        try:
            self.run(dies_at, is_done=is_done)
        except (DiedError, ClientError):  # a query that fails is started again, too
            self.run(None, is_done=False)

    def run(self, dies_at: int | None, *, is_done: bool) -> None:
        """Run all batches that are not noted as done."""
        self.runs_count += 1
        options = {
            "kafka.bootstrap.servers": self.bootstrap,
            "topic": self.topic,
            "exactlyOnce": "true",
            "kafka.transaction.timeout.ms": "60000",
        }
        plan = plan_write(options, [("value", "binary")], is_stream=True, is_overwriting=False)
        with DyingClient(plan.client) as client:
            client.dies_at, client.is_done, client.accident = dies_at, is_done, self.accident
            try:
                while self._next_batch < BATCHES:
                    written: list[WrittenPartition] = []
                    try:
                        written.extend(self._task(plan, client, number) for number in range(PARTITIONS))
                        commit(plan, written, client=client)
                    except ClientError:
                        abort(plan, written, client=client)
                        raise
                    self._next_batch += 1
            finally:
                self.requests_count = client.count

    def _task(self, plan: Any, client: Client, number: int) -> WrittenPartition:
        identity = TaskIdentity(
            query_id=self.topic,
            run_id=f"run-{self.runs_count}",
            batch_id=self._next_batch,
            partition_id=number,
            attempt_number=0,
            task_attempt_id=number,
        )
        rows = [pa.record_batch([pa.array(rows_of(self._next_batch, number), pa.binary())], names=["value"])]
        return TaskWriter(plan, client, SystemPausingClock(), identity).write(rows)


def rows_of(batch_id: int, partition_id: int) -> list[bytes]:
    """Return the rows of one partition of a batch."""
    return [b"%d/%d/%d" % (batch_id, partition_id, number) for number in range(3)]
