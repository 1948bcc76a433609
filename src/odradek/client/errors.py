"""Pure core: what a client's calls raise, and whether the same call may succeed later.

Every class has `retriable`. The client itself has already retried what it may (`retries`, `delivery.timeout.ms`), so a
retriable error that reaches a caller means: the cluster did not recover in time, and another attempt is sensible. The
others are fatal for the call: repeating it brings the same answer.

| class | when |
| --- | --- |
| `BrokerError` | a broker answered with an error code |
| `ConnectionFailedError` | no connection, or it broke before the answer |
| `NotABrokerError` | what answers there speaks HTTP, TLS where plain text was expected, or the other way round |
| `RequestTimeoutError` | no answer within `request.timeout.ms` |
| `ClientTimeoutError` | `max.block.ms`, `delivery.timeout.ms` or `default.api.timeout.ms` ran out |
| `BufferExhaustedError` | `buffer.memory` is full and the call may not wait |
| `RecordTooLargeError`, `SerializationError`, `DeserializationError` | the record itself |
| `UnsupportedVersionError` | client and broker share no version of the API |
| `NoOffsetForPartitionError` | there is no position, and `auto.offset.reset=none` |
| `CommitFailedError`, `RebalanceInProgressError` | offsets were not committed: the group has gone on without us |
| `LogTruncationError` | the log was cut below the position, and `auto.offset.reset=none` |
| `TransactionAbortableError` | abort the transaction, then go on with the next one |
| `TransactionFatalError`, `ProducerFencedError` | the transactional producer is of no more use: close it |
| `TransactionAbortedError` | the record's transaction was aborted before it was sent |
| `ClientClosedError`, `ClientUsageError` | the call came too late, or is wrong in itself |

The root, and what comes of a connection alone, are `odradek.kernel.peers.errors`: brokers raise these among themselves.

*Source:* `org.apache.kafka.common.errors`: the division by `RetriableException`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition


class BrokerError(ClientError, KafkaError):
    """A broker answered with an error code (`code`, `detail`)."""

    def __init__(self, code: ErrorCode, detail: str = "") -> None:
        KafkaError.__init__(self, code, detail)
        self.retriable = code.retriable

    def __str__(self) -> str:
        return f"{self.code.name}: {self.detail}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code.name}, {self.detail!r})"


class ClientTimeoutError(ClientError):
    """A call's own time ran out: `max.block.ms`, `delivery.timeout.ms`, `default.api.timeout.ms`."""

    retriable = True


class BufferExhaustedError(ClientTimeoutError):
    """`buffer.memory` is full, and stayed so for `max.block.ms` (or the call may not wait)."""


class RecordTooLargeError(ClientError):
    """The record alone is larger than `max.request.size` or `buffer.memory`."""


class SerializationError(ClientError):
    """A serializer failed, or gave something that is no bytes."""


class DeserializationError(ClientError):
    """A deserializer failed; the position stays at that record, so that the caller may seek past it.

    Attributes:
        topic_partition: Where.
        offset: Of the record.
    """

    def __init__(self, topic_partition: TopicPartition, offset: int, detail: str) -> None:
        super().__init__(f"record {offset} of {topic_partition} cannot be deserialized: {detail}")
        self.topic_partition = topic_partition
        self.offset = offset


class NoOffsetForPartitionError(ClientError):
    """A partition has no position, or one out of range, and `auto.offset.reset` is `none`.

    Attributes:
        topic_partitions: Which.
    """

    def __init__(self, topic_partitions: tuple[TopicPartition, ...]) -> None:
        names = ", ".join(str(partition) for partition in topic_partitions)
        super().__init__(f"no valid position for {names}, and auto.offset.reset is 'none': seek first")
        self.topic_partitions = topic_partitions


class LogTruncationError(ClientError):
    """A new leader does not have all that was read of the old one, and `auto.offset.reset` is `none` (KIP-320).

    Attributes:
        topic_partition: Where.
        position: What was read up to.
        end_offset: Where the two logs part; None when even that is not known.

    .. versionadded:: 0.1
    """

    def __init__(self, topic_partition: TopicPartition, position: int, end_offset: int | None) -> None:
        where = "somewhere below" if end_offset is None else f"at {end_offset}"
        super().__init__(f"{topic_partition}: the log that was read up to {position} was cut {where}: seek first")
        self.topic_partition = topic_partition
        self.position = position
        self.end_offset = end_offset


class CommitFailedError(BrokerError):
    """Offsets were not committed, for the group has gone on without this member: others may own the partitions.

    .. versionadded:: 0.1
    """


class RebalanceInProgressError(CommitFailedError):
    """Offsets were not committed, for the group is rebalancing: poll, and commit again what is still owned.

    .. versionadded:: 0.1
    """


class TransactionAbortableError(BrokerError):
    """Something within the transaction failed: abort it, then go on with the next one.

    .. versionadded:: 0.1
    """


class TransactionFatalError(BrokerError):
    """The transactional producer cannot go on: close it, and open another.

    .. versionadded:: 0.1
    """


class ProducerFencedError(TransactionFatalError):
    """Another producer was opened with the same transactional id, or this one was given up by the coordinator.

    .. versionadded:: 0.1
    """


class TransactionAbortedError(ClientError):
    """The record was not sent: its transaction was aborted.

    .. versionadded:: 0.1
    """


class ClientClosedError(ClientError):
    """The client was closed, or is not open yet: use it inside its `async with`."""


class ClientUsageError(ClientError):
    """The call is wrong in itself, for instance a poll without an assignment."""
