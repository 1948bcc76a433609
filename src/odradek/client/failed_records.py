"""Shell: what a consumer does with a record that it failed: it goes to its group's retry topic, and comes back later.

*Source:* `docs/how-to/retry-failed-records.md`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

from .errors import ClientUsageError
from .settings import COMMON_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.machine.machine import Machine

    from .delivery import RecordMetadata
    from .fetched_records import ConsumerRecord
    from .producer import Producer


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


class FailedRecords:
    """Fails records of one consumer, by a producer that is made for the first of them. Run by the consumer's crew.

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
        common = {key.name for key in COMMON_KEYS}
        self._settings = {name: value for name, value in settings.items() if name in common}
        self.group_id = group_id
        self._machine = machine
        self._wanted, self._opened = trio.Event(), trio.Event()
        self._producer: Producer | None = None

    async def run(self) -> None:
        """Have a producer open from when it is wanted until cancelled."""
        await self._wanted.wait()
        from .producer import Producer  # most consumers produce nothing

        async with Producer(self._settings, machine=self._machine) as self._producer:
            self._opened.set()
            await trio.sleep_forever()

    async def producer(self) -> Producer:
        """Return this consumer's own producer, once it is open."""
        self._wanted.set()
        await self._opened.wait()
        assert self._producer is not None, "it is there once it was opened"
        return self._producer

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
            producer = await self.producer()
        return await producer.send(
            retry_topic_of(record, self.group_id),
            record.value,
            key=record.key,
            headers=failed_headers(record, self.group_id, reason, is_dead=is_dead),
            partition=record.partition,
        )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bytes)
