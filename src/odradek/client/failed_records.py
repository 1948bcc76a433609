"""Shell: what a consumer does with a record that it failed: it goes to its group's retry topic, and comes back later.

*Source:* `docs/how-to/retry-failed-records.md`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.retry.headers import (
    ATTEMPT,
    DEAD,
    ORIGIN,
    REASON,
    Origin,
    first_failed_headers,
    parse_origin,
)
from odradek.kernel.retry.names import may_be_retry_topic, retry_topics

from .accumulator import record_size
from .errors import ClientUsageError
from .settings import COMMON_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.kernel.machine.machine import Machine

    from .delivery import RecordMetadata
    from .fetched_records import ConsumerRecord
    from .producer import Producer


LARGE_BYTES: Final = 1 << 19
"""A record of more travels compressed: it was taken compressed, perhaps, from who had raised `max.request.size`."""
LARGE_SETTINGS: Final = {"max.request.size": 1 << 26, "buffer.memory": 1 << 26, "compression.type": "gzip"}
"""As much as a retry topic takes of one batch at most, by a codec that every client has."""


def failed_headers(
    record: ConsumerRecord, group_id: str, reason: str, *, is_dead: bool
) -> list[tuple[str, bytes | None]]:
    """Return the headers that a record is failed with: its own, and what is to be said.

    One that did not come back begins anew, whatever its headers say: somebody copied it with them.
    """
    if came_back(record, group_id):
        kept = [header for header in record.headers if header[0] not in (REASON, DEAD)]
    else:
        kept = first_failed_headers(record.headers, Origin(record.topic, record.partition, record.offset))
    if reason:
        kept.append((REASON, reason.encode()))
    if is_dead:
        kept.append((DEAD, b"1"))
    return kept


def came_back(record: ConsumerRecord, group_id: str) -> bool:
    """Return whether a record came back on a retry topic of the group, rather than was read at first.

    A dead letter, or what somebody else failed, has an attempt and no origin: then the topic's name says it. Failed to
    a topic that is no retry topic, it would be read at once, and again, without end.
    """
    said = dict(record.headers)
    if ATTEMPT not in said:
        return False
    origin = parse_origin(said.get(ORIGIN))
    if origin is None:
        return may_be_retry_topic(record.topic, group_id)
    return retry_topics(origin.topic, group_id).retry == record.topic


def retry_topic_of(record: ConsumerRecord, group_id: str) -> str:
    """Return where a record is failed to: what came back goes to where it came back on."""
    return record.topic if came_back(record, group_id) else retry_topics(record.topic, group_id).retry


class _OwnProducer:
    """A producer that is opened when it is first wanted. Run by the consumer's crew."""

    def __init__(self, settings: Mapping[str, object], machine: Machine) -> None:
        self._settings = settings
        self._machine = machine
        self._wanted, self._opened = trio.Event(), trio.Event()
        self._producer: Producer | None = None

    async def run(self) -> None:
        """Have it open from when it is wanted until cancelled."""
        await self._wanted.wait()
        from .producer import Producer  # most consumers produce nothing

        async with Producer(self._settings, machine=self._machine) as self._producer:
            self._opened.set()
            await trio.sleep_forever()

    async def get(self) -> Producer:
        """Return it, once it is open."""
        self._wanted.set()
        await self._opened.wait()
        assert self._producer is not None, "it is there once it was opened"
        return self._producer


class FailedRecords:
    """Fails records of one consumer, by producers that are made for the first of them. Run by the consumer's crew.

    Attributes:
        group_id: Whose records they are.
    """

    def __init__(self, settings: Mapping[str, object], group_id: str, machine: Machine) -> None:
        """Make it.

        Args:
            settings: The consumer's, of which the producer has how brokers are reached.
            group_id: Whose records they are.
            machine: What the producer takes of the host.
        """
        common_names = {key.name for key in COMMON_KEYS}
        common = {name: value for name, value in settings.items() if name in common_names}
        self.group_id = group_id
        self._producer = _OwnProducer(common, machine)
        self._large_producer = _OwnProducer({**common, **LARGE_SETTINGS}, machine)

    async def run(self) -> None:
        """Have producers open from when they are wanted until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._producer.run, name="failed records")
            nursery.start_soon(self._large_producer.run, name="large failed records")

    async def producer_for(self, records: Iterable[ConsumerRecord]) -> Producer:
        """Return this consumer's own producer for records that are to be in order, once it is open."""
        is_large = any(_size_bytes(record) > LARGE_BYTES for record in records)
        return await (self._large_producer if is_large else self._producer).get()

    async def fail(
        self, record: ConsumerRecord, reason: str, producer: Producer | None, *, is_dead: bool
    ) -> RecordMetadata:
        """Produce a record to the retry topic; see `Consumer.retry`.

        Raises:
            ClientUsageError: A deserializer made something of it, and no producer was given that undoes that.
        """
        if producer is None:
            if not _is_plain(record.key) or not _is_plain(record.value):
                raise ClientUsageError("a deserializer made something of the record: give a producer that undoes that")
            producer = await self.producer_for([record])
        return await producer.send(
            retry_topic_of(record, self.group_id),
            record.value,
            key=record.key,
            headers=failed_headers(record, self.group_id, reason, is_dead=is_dead),
            partition=record.partition,
        )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bytes)


def _size_bytes(record: ConsumerRecord) -> int:
    key, value = (part if isinstance(part, bytes) else None for part in (record.key, record.value))
    return record_size(key, value, record.headers)
