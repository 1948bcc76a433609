"""Pure core: what this client's calls raise: each names where, what, and what to do about it.

Those that any client knows are those of `odradek.client`; those of reading a range are here.

| class | when |
| --- | --- |
| `BrokerError` | a broker answered with an error code that no repetition cures |
| `ConnectionFailedError` | no broker could be reached, or a connection broke; names the addresses that were tried |
| `RequestTimeoutError` | no answer within `request.timeout.ms` |
| `ClientTimeoutError` | `default.api.timeout.ms` ran out in spite of repetitions; names the last obstacle |
| `UnsupportedVersionError` | client and broker share no version of an API |
| `AuthenticationFailedError` | the broker does not accept the credentials |
| `OffsetOutOfRangeError` | the records asked for are no longer, or not yet, in the log |
| `TopicRecreatedError` | the topic was deleted and made anew: its offsets mean other records |
| `UnknownPartitionError` | there is no such topic or partition |
| `NoProgressError` | no record came for `kafkaConsumer.pollTimeoutMs` |

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.client.errors import BrokerError, ClientClosedError, ClientTimeoutError
from odradek.kernel.peers.errors import ClientError, ConnectionFailedError, RequestTimeoutError, UnsupportedVersionError

if TYPE_CHECKING:
    import uuid

    from odradek.kernel.types import TopicPartition

__all__ = [
    "AuthenticationFailedError",
    "BrokerError",
    "ClientClosedError",
    "ClientError",
    "ClientTimeoutError",
    "ConnectionFailedError",
    "NoProgressError",
    "OffsetOutOfRangeError",
    "RequestTimeoutError",
    "TopicRecreatedError",
    "UnknownPartitionError",
    "UnsupportedVersionError",
]


class AuthenticationFailedError(ClientError):
    """The broker refused the credentials, or the broker could not prove that it knows them; trying again is no use."""


class OffsetOutOfRangeError(ClientError):
    """A position lies outside the leader's log.

    Attributes:
        topic_partition: Where.
        position: The offset that was asked for.
        end: Where the reading was to end.
        log_start_offset: The log's first offset; -1 when it could not be learned.
        log_end_offset: What consumers may read up to; -1 when it could not be learned.
    """

    def __init__(
        self, topic_partition: TopicPartition, position: int, end: int, log_start_offset: int, log_end_offset: int
    ) -> None:
        has = f"[{log_start_offset}, {log_end_offset})" if log_end_offset >= 0 else "other offsets"
        super().__init__(
            f"{topic_partition}: offset {position} of the range [{position}, {end}) is not in the log, which now has "
            f"{has}: the records were deleted by retention, or the log was cut. Reading it again brings the same: "
            "begin at an offset that exists, or set failOnDataLoss=false"
        )
        self.topic_partition = topic_partition
        self.position = position
        self.end = end
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class TopicRecreatedError(ClientError):
    """A topic has another id than the one that was planned with.

    Attributes:
        topic: Its name.
        expected_id: What it was.
        found_id: What it is.
    """

    def __init__(self, topic: str, expected_id: uuid.UUID, found_id: uuid.UUID) -> None:
        super().__init__(
            f"topic {topic!r} was deleted and created again: its topic id changed from {expected_id} to {found_id}, "
            "so offsets of the old topic mean other records. Start from new offsets, with a new checkpoint"
        )
        self.topic = topic
        self.expected_id = expected_id
        self.found_id = found_id


class UnknownPartitionError(ClientError):
    """A topic or partition does not exist, after asking more than once.

    Attributes:
        topic_partition: Which.
    """

    def __init__(self, topic_partition: TopicPartition, detail: str) -> None:
        super().__init__(f"{topic_partition} does not exist: {detail}")
        self.topic_partition = topic_partition


class NoProgressError(ClientTimeoutError):
    """Nothing came of a range for too long, though it should be there.

    Attributes:
        topic_partition: Where.
        position: The next offset that is missing.
        end: Where the range ends.
        high_watermark: What the broker last said; -1 before it said anything.
        last_stable_offset: The same.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        position: int,
        end: int,
        *,
        waited_ms: int,
        high_watermark: int,
        last_stable_offset: int,
        obstacle: str,
    ) -> None:
        super().__init__(
            f"{topic_partition}: no records of the range [{position}, {end}) within {waited_ms} ms "
            f"(kafkaConsumer.pollTimeoutMs); high watermark {high_watermark}, last stable offset {last_stable_offset}; "
            f"last obstacle: {obstacle}"
        )
        self.topic_partition = topic_partition
        self.position = position
        self.end = end
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
