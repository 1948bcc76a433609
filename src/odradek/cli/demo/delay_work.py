"""Shell: what the demo of delayed records does with this project's own client: remind, withdraw, and see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from odradek.client import Consumer, Producer
from odradek.kernel.delay.headers import DELAY_CANCEL, DELAY_ID, DELIVER_AT
from odradek.kernel.machine.clock import SystemClock
from odradek.kernel.types import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

POLL_MS: Final = 200
LINGER_S: Final = 0.3
"""So long whoever has seen all looks for more."""
WAIT_S_MAX: Final = 60
"""The demo fails when what was due has not come by then."""


class Reminder(NamedTuple):
    """A record to be seen at a time, in epoch milliseconds; `name` is what it can be withdrawn by."""

    key: bytes
    value: bytes
    due_ms: int
    name: bytes = b""

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """What its producer says of it."""
        named = [(DELAY_ID, self.name)] if self.name else []
        return [(DELIVER_AT, str(self.due_ms).encode()), *named]


class Seen(NamedTuple):
    """A record as a consumer got it, and when; its timestamp is the time at which it was due."""

    key: bytes
    value: bytes
    due_ms: int
    seen_ms: int


async def remind(bootstrap: str, topic: str, reminders: Sequence[Reminder], on_progress: Callable[[int], None]) -> None:
    """Produce reminders, each acknowledged.

    Raises:
        ClientError: One could not be written.
    """
    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        await _produce(producer, topic, reminders, on_progress)


async def _produce(
    producer: Producer, topic: str, reminders: Sequence[Reminder], on_progress: Callable[[int], None]
) -> None:
    deliveries = [
        await producer.enqueue(topic, each.value, key=each.key, headers=each.headers, partition=0) for each in reminders
    ]
    for number, delivery in enumerate(deliveries, 1):
        await delivery.wait()
        on_progress(number)


async def withdraw(bootstrap: str, topic: str, name: bytes) -> None:
    """Withdraw what waits under a name, as any client does."""
    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        await producer.send(topic, None, headers=[(DELAY_CANCEL, name)], partition=0)


async def remind_in_transaction(
    bootstrap: str, topic: str, transactional_id: str, reminders: Sequence[Reminder], *, commits: bool
) -> None:
    """Produce reminders in a transaction, and commit it, or not."""
    settings = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id}
    async with Producer(settings) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await _produce(producer, topic, reminders, lambda _count: None)
        await (producer.commit_transaction() if commits else producer.abort_transaction())


async def see(
    bootstrap: str, topic: str, position: int, count: int, on_progress: Callable[[int], None]
) -> tuple[list[Seen], int]:
    """Read partition 0 until so many records were seen, and then a little longer.

    Returns:
        What was seen, and up to where was read. Fewer than asked for where they do not come in a minute.
    """
    partition, clock = TopicPartition(topic, 0), SystemClock()
    seen: list[Seen] = []
    settings = {"bootstrap.servers": bootstrap, "isolation.level": IsolationLevel.READ_COMMITTED.name.lower()}
    async with Consumer(settings) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, position)
        with trio.move_on_after(WAIT_S_MAX) as patience:
            while True:
                records = await consumer.poll(timeout_ms=POLL_MS)
                now_ms = clock.now_ms()
                seen += [Seen(each.key or b"", each.value or b"", each.timestamp, now_ms) for each in records]
                on_progress(len(seen))
                if len(seen) >= count and patience.deadline > trio.current_time() + LINGER_S:
                    patience.deadline = trio.current_time() + LINGER_S
        return seen, await consumer.position(partition)
