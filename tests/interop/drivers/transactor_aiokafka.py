"""Transactional producer of aiokafka: see `transactor_lines`; its asyncio stays in this process."""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiokafka runs on nothing else
import importlib
import sys
import time
from typing import TYPE_CHECKING, Any

from .json_lines import DriverError, serve
from .transactor_lines import BATCH, HEARTBEAT_MS, LIMIT_S, SESSION_MS

if TYPE_CHECKING:
    from collections.abc import Callable

# The client's type hints are incomplete: what comes from it is Any.
aiokafka: Any = importlib.import_module("aiokafka")

BOOTSTRAP, TRANSACTIONAL_ID = sys.argv[1:3] if len(sys.argv) > 1 else ("", "")
TIMEOUT_S = 20
FAILURES = (aiokafka.errors.KafkaError, asyncio.TimeoutError, AssertionError, DriverError)
"""aiokafka's producer asserts its own state: after one error it answers with an AssertionError."""


def error_of(error: Exception) -> DriverError:
    """Reduce an exception."""
    return DriverError(getattr(error, "errno", -1) if isinstance(error, aiokafka.errors.KafkaError) else -1, str(error))


class Transactor:
    """The producer; made with its first transaction."""

    def __init__(self) -> None:
        self.producer: Any = None

    async def begin(self) -> None:
        """Begin a transaction."""
        await self._take_id()
        await self.producer.begin_transaction()

    async def _take_id(self) -> None:
        """Take the transactional id; what was open under it is then aborted."""
        if self.producer is None:
            producer = aiokafka.AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=TRANSACTIONAL_ID)
            try:
                await asyncio.wait_for(producer.start(), TIMEOUT_S)
            except FAILURES:
                await producer.stop()
                raise
            self.producer = producer

    async def send(self, *, topic: str, values: list[str]) -> None:
        """Produce, and wait until everything is acknowledged."""
        futures = [await self.producer.send(topic, value.encode(), partition=0) for value in values]
        for future in futures:
            await asyncio.wait_for(future, TIMEOUT_S)

    async def end(self, *, commit: bool) -> None:
        """Commit or abort."""
        ended = self.producer.commit_transaction() if commit else self.producer.abort_transaction()
        await asyncio.wait_for(ended, TIMEOUT_S)

    async def transform(self, *, group: str, source: str, target: str, end: int) -> int:
        """Read as a member of the group, change and produce until the group stands at `end`."""
        deadline_s = time.monotonic() + LIMIT_S  # noqa: TID251 - a limit for a client that hangs
        transactions_count = 0
        async with aiokafka.AIOKafkaConsumer(
            source,
            bootstrap_servers=BOOTSTRAP,
            group_id=group,
            group_instance_id=TRANSACTIONAL_ID,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        ) as consumer:
            while time.monotonic() < deadline_s:  # noqa: TID251 - as above
                try:
                    # First: it asks where the group stands without `require_stable`, so nothing may be open.
                    await self._take_id()
                    position = await self._stand(consumer, source)
                    while position < end:
                        position = await self._transform_some(consumer, position, source, target, group)
                        transactions_count += 1
                except FAILURES as error:
                    sys.stderr.write(f"{error!r}\n")
                    await self._give_up()
                    continue
                return transactions_count
        raise DriverError(-1, f"{transactions_count} transactions in time")

    async def _stand(self, consumer: Any, source: str) -> int:
        """Read from where the group stands; return that place."""
        partition = aiokafka.TopicPartition(source, 0)
        deadline_s = time.monotonic() + TIMEOUT_S  # noqa: TID251 - a limit for a client that hangs
        while partition not in consumer.assignment():
            if time.monotonic() > deadline_s:  # noqa: TID251 - as above
                raise DriverError(-1, "nothing was assigned")
            await consumer.getmany(timeout_ms=100)
        position: int = await consumer.committed(partition) or 0
        consumer.seek(partition, position)
        return position

    async def _transform_some(self, consumer: Any, position: int, source: str, target: str, group: str) -> int:
        """Run one transaction; return where the group stands then."""
        partition = aiokafka.TopicPartition(source, 0)
        found = (await consumer.getmany(timeout_ms=5000, max_records=BATCH)).get(partition, [])
        if not found or found[0].offset != position:
            raise DriverError(-1, f"at {position} was read: {found[:1]}")
        await self.producer.begin_transaction()
        await self.send(topic=target, values=[each.value.decode() + "!" for each in found])
        offsets = {partition: found[-1].offset + 1}
        await asyncio.wait_for(self.producer.send_offsets_to_transaction(offsets, group), TIMEOUT_S)
        await self.end(commit=True)
        return position + len(found)

    async def _give_up(self) -> None:
        """Begin anew: the transactional id stays, and who takes it next aborts what is open."""
        if self.producer is not None:
            producer, self.producer = self.producer, None
            try:
                await asyncio.wait_for(producer.stop(), TIMEOUT_S)
            except FAILURES as error:
                sys.stderr.write(f"stop: {error!r}\n")


def main() -> None:
    """Serve operations until standard input ends."""
    transactor = Transactor()
    with asyncio.Runner() as one_loop:

        def blocking(coroutine: Callable[..., Any]) -> Callable[..., Any]:
            return lambda **arguments: one_loop.run(coroutine(**arguments))

        serve(
            {
                "begin": blocking(transactor.begin),
                "send": blocking(transactor.send),
                "end": blocking(transactor.end),
                "transform": blocking(transactor.transform),
            },
            error_of,
        )


if __name__ == "__main__":
    main()
