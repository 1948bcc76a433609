"""Shell: the fate of one record: a value for the awaiting form, a call for the other.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import attrs
import trio

from odradek.kernel.peers.errors import ClientError

from .errors import ClientUsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from .accumulator import ProducerBatch

    Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
    OnDelivery: TypeAlias = Callable[["RecordMetadata | None", "ClientError | None"], object]

_log = logging.getLogger(__name__)


@attrs.frozen
class RecordMetadata:
    """Where a record was appended.

    Attributes:
        topic: The topic.
        partition: The partition.
        offset: Its offset; -1 with acks=0, and where the broker acknowledged a repetition it no longer knew.
        timestamp: The record's, milliseconds since the Unix epoch: the broker's if the topic has LogAppendTime.
        key_size_bytes: Serialized; -1 for none.
        value_size_bytes: Serialized; -1 for none.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key_size_bytes: int
    value_size_bytes: int


@attrs.frozen
class ProducerRecord:
    """A record as interceptors see it: before it is serialized."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None


@attrs.define(eq=False)
class Delivery:
    """The fate of one record."""

    _batch: ProducerBatch
    _index: int
    _timestamp: int
    _key_size_bytes: int
    _value_size_bytes: int

    @property
    def is_done(self) -> bool:
        """Whether the record was acknowledged or given up."""
        return self._batch.is_done

    def result(self) -> RecordMetadata:
        """Return where the record was appended.

        Raises:
            ClientError: It was not; or `ClientUsageError`: it is not known yet.
        """
        if not self._batch.is_done:
            raise ClientUsageError("the record is still on its way: wait for it")
        batch, index = self._batch.find(self._index)
        if batch.error is not None:
            assert isinstance(batch.error, ClientError)
            raise batch.error
        return RecordMetadata(
            batch.partition.topic,
            batch.partition.partition,
            batch.base_offset + index if batch.base_offset >= 0 else -1,
            batch.log_append_time_ms if batch.log_append_time_ms >= 0 else self._timestamp,
            self._key_size_bytes,
            self._value_size_bytes,
        )

    async def wait(self) -> RecordMetadata:
        """Wait until the fate is known, and return where the record was appended.

        Raises:
            ClientError: It was given up.

        Cancelled, the record stays on its way.
        """
        await wait_done(self._batch)
        return self.result()

    def __repr__(self) -> str:
        state = "done" if self.is_done else "on its way"
        return f"<Delivery of record {self._index} of {self._batch!r}: {state}>"


async def wait_done(batch: ProducerBatch) -> None:
    """Wait until a batch was acknowledged or given up. Cancelled, it stays on its way."""
    if batch.is_done:
        await trio.lowlevel.checkpoint()
        return
    done = trio.Event()
    batch.on_done.append(lambda _: done.set())
    await done.wait()


def call_back(on_delivery: OnDelivery, delivery: Delivery) -> None:
    """Report a record's fate; what the callback raises is its own bug, and stops nobody else."""
    metadata: RecordMetadata | None = None
    failure: ClientError | None = None
    try:
        metadata = delivery.result()
    except ClientError as error:
        failure = error
    try:
        on_delivery(metadata, failure)
    except Exception:
        _log.exception("on_delivery failed")
