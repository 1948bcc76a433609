"""Shell: what the demo of failed records does with this project's own client: work, fail, and go on."""

from __future__ import annotations

import zoneinfo
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import trio

from odradek.client import Consumer, Producer
from odradek.kernel.machine.clock import SystemClock
from odradek.kernel.retry.headers import read_failure
from odradek.kernel.types import TopicPartition

from .client_work import read_partition
from .data import DemoRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.client import ConsumerRecord

POLL_MS: Final = 200
NOWHERE: Final = "nowhere"
"""Why a zone that there is not cannot be worked on."""
LINGER_S: Final = 0.3
"""So long whoever has seen all looks for more."""
WAIT_S_MAX: Final = 60
"""The demo fails when what was to come has not come by then."""
GROUP: Final = "calendar"
RESULTS: Final = "calendar-entries"
RECORDS_A_TRANSACTION: Final = 50
TRANSACTIONAL_ID: Final = "calendar-1"


class CannotWorkError(Exception):
    """Why a record cannot be worked on."""


class Attempt(NamedTuple):
    """A record that a worker got.

    Attributes:
        record: The record.
        number: How often it had been given back.
        seen_ms: When it was seen, epoch milliseconds.
        reason: Why it failed; empty where it did not.
        failed_ms: When the worker gave it back; 0 where it did not.
    """

    record: ConsumerRecord
    number: int
    seen_ms: int
    reason: str = ""
    failed_ms: int = 0

    @property
    def key(self) -> bytes:
        """The zone."""
        return self.record.key or b""

    @property
    def value(self) -> bytes:
        """The change, as it was produced."""
        return self.record.value or b""


def write_down(record: ConsumerRecord, attempt: int, region: str, works_from: int) -> None:
    """Do the worker's work on a change of clocks: find its zone, and ask its region's calendar.

    Args:
        record: The change.
        attempt: How often it was given back before.
        region: Whose calendar does not answer at first.
        works_from: From which attempt on it does.

    Raises:
        CannotWorkError: There is no such zone, or its calendar does not answer.
    """
    zone = DemoRecord(b"", record.value or b"", 0).change["zone"]
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        raise CannotWorkError(NOWHERE) from None
    if zone.startswith(f"{region}/") and attempt < works_from:
        raise CannotWorkError(f"the calendar of {region} does not answer")


def _settings(bootstrap: str, **more: object) -> dict[str, object]:
    return {"bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest", **more}


async def work_off(
    bootstrap: str,
    topics: Sequence[str],
    work: Callable[[ConsumerRecord, int], None],
    is_over: Callable[[Sequence[Attempt]], bool],
    on_progress: Callable[[int], None],
) -> list[Attempt]:
    """Be a worker of the group: work on what comes, and have it given back where that fails.

    Args:
        bootstrap: Where the broker is.
        topics: What the group reads.
        work: Given a record and how often it was given back; raises where it cannot work on it.
        is_over: Given what was done so far; whether that is all.
        on_progress: Called with how many records came.
    """
    clock = SystemClock()
    done: list[Attempt] = []
    async with Consumer(_settings(bootstrap, **{"max.poll.records": RECORDS_A_TRANSACTION})) as consumer:
        consumer.subscribe(topics)
        with trio.move_on_after(WAIT_S_MAX) as patience:
            while True:
                for record in await consumer.poll(timeout_ms=POLL_MS):
                    attempt = Attempt(record, read_failure(record.headers).attempts, clock.now_ms())
                    try:
                        work(record, attempt.number)
                    except CannotWorkError as error:
                        attempt = attempt._replace(reason=str(error), failed_ms=clock.now_ms())
                        await consumer.retry(record, reason=attempt.reason)
                    done.append(attempt)
                await consumer.commit()
                on_progress(len(done))
                if is_over(done) and patience.deadline > trio.current_time() + LINGER_S:
                    patience.deadline = trio.current_time() + LINGER_S
    return done


class CrashError(Exception):
    """What happens to a worker in the middle of a transaction."""


class Life(NamedTuple):
    """What a worker did until it ended, or died: results that count, and what was failed in vain."""

    written: int
    lost: int = 0


async def work_in_transactions(
    bootstrap: str,
    topics: Sequence[str],
    work: Callable[[ConsumerRecord, int], None],
    entries_wanted: int,
    crash_after: int | None,
    on_progress: Callable[[int], None],
) -> Life:
    """Be a worker whose results, failed records and offsets count together or not at all.

    Args:
        bootstrap: Where the broker is.
        topics: What the group reads.
        work: As `work_off` takes it.
        entries_wanted: It ends when it has written so many results.
        crash_after: It dies with its transaction open, everything sent, when it has ended so many; None for never.
        on_progress: Called with how many results it has written.

    Returns:
        What it did.
    """
    written = transactions = 0
    settings = _settings(
        bootstrap,
        **{"enable.auto.commit": False, "isolation.level": "read_committed", "max.poll.records": RECORDS_A_TRANSACTION},
    )
    failed: list[ConsumerRecord] = []
    try:
        async with (
            Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL_ID}) as producer,
            Consumer(settings) as consumer,
        ):
            consumer.subscribe(topics)
            with trio.move_on_after(WAIT_S_MAX):
                while written < entries_wanted:
                    records = await consumer.poll(timeout_ms=POLL_MS)
                    if not records:
                        continue
                    async with producer.transaction():
                        failed = await _handle(consumer, producer, records, work)
                        if transactions == crash_after:
                            await _die(producer)
                    transactions += 1
                    written += len(records) - len(failed)
                    on_progress(written)
    except CrashError:
        return Life(written, len(failed))
    return Life(written)


async def _handle(
    consumer: Consumer,
    producer: Producer,
    records: Sequence[ConsumerRecord],
    work: Callable[[ConsumerRecord, int], None],
) -> list[ConsumerRecord]:
    """Work on records in an open transaction: results, failed records, and how far was read. Return what failed."""
    failed: list[ConsumerRecord] = []
    for record in records:
        try:
            work(record, read_failure(record.headers).attempts)
        except CannotWorkError as error:
            failed.append(record)
            await consumer.retry(record, reason=str(error), producer=producer)
        else:
            await producer.enqueue(RESULTS, record.value, key=record.key, partition=0)
    await producer.send_offsets(consumer.consumed(), consumer.group_metadata)
    return failed


async def _die(producer: Producer) -> NoReturn:
    """Die, once the broker has all that was sent."""
    await producer.flush()
    raise CrashError


async def read_entries(bootstrap: str) -> Counter[bytes]:
    """Return the results that count, by how often each is there."""
    entries = await read_partition(bootstrap, TopicPartition(RESULTS, 0), "read_committed")
    return Counter(record.value or b"" for record in entries)
