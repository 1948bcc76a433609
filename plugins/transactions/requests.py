"""Pure core: what is asked of a shard of transactional ids, what it answers, and what it wants done elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import NO_PRODUCER, ErrorCode, ProducerIdentity, define, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import TopicPartition

    from .metadata import TransactionMetadata
    from .states import TransactionState


@frozen
class TransactionSettings:
    """The broker keys of transactions, read once: none of them changes while a broker runs.

    Attributes:
        timeout_ms_max: `transaction.max.timeout.ms`.
        abort_interval_ms: `transaction.abort.timed.out.transaction.cleanup.interval.ms`.
        expiration_ms: `transactional.id.expiration.ms`.
        expiration_interval_ms: `transaction.remove.expired.transaction.cleanup.interval.ms`.
    """

    timeout_ms_max: int
    abort_interval_ms: int
    expiration_ms: int
    expiration_interval_ms: int


@frozen
class EndRequest:
    """A producer wants its transaction ended.

    Attributes:
        transactional_id: Whose.
        producer: As it says.
        is_commit: Commit or abort.
        client_version: Transaction version of its protocol: 2 raises the epoch.
    """

    transactional_id: str
    producer: ProducerIdentity
    is_commit: bool
    client_version: int


@frozen
class Answered:
    """What a producer is told: a code, and on success who it is from now on."""

    code: ErrorCode = ErrorCode.NONE
    producer: ProducerIdentity = NO_PRODUCER


@frozen(eq=False)
class MarkersWanted:
    """Markers that are to be written, now that the end of a transaction is committed in the log.

    Equal only to itself: an answer counts for the very sending that it answers, so that a late one cannot be taken
    for the answer of the next transaction of the same epoch.

    Attributes:
        metadata: The prepared end.
        partitions: Where the marker is still missing, in order.
    """

    metadata: TransactionMetadata
    partitions: tuple[TopicPartition, ...]


@define
class EndingTransaction:
    """A prepared end, on its way. Soft: after a load all markers are sent again.

    Attributes:
        missing: Partitions whose marker is not known to be written.
        wanted: The sending that is under way, None while the next one is waited for.
        attempts_count: How often markers were sent.
    """

    missing: set[TopicPartition]
    wanted: MarkersWanted | None = None
    attempts_count: int = 0


@frozen
class TransactionFilter:
    """Which transactions ListTransactions asks for, its expression left aside; None and -1 ask for all.

    Attributes:
        producer_ids: Of these producers.
        states: In these states.
        duration_ms: Longer than this, from the start of the transaction.
    """

    producer_ids: frozenset[int] | None = None
    states: frozenset[TransactionState] | None = None
    duration_ms: int = -1

    def takes(self, metadata: TransactionMetadata, now_ms: int) -> bool:
        """Return whether a transaction is asked for."""
        return (
            (self.producer_ids is None or metadata.producer_id in self.producer_ids)
            and (self.states is None or metadata.state in self.states)
            and (self.duration_ms < 0 or now_ms - metadata.start_timestamp > self.duration_ms)
        )


@define
class TransactionCounters:
    """What the transaction coordinator of a broker has done since the start, all shards together.

    Attributes:
        commits_count: Transactions that producers committed.
        aborts_count: Transactions that producers aborted.
        timeouts_count: Transactions aborted because they took too long.
        fences_count: Transactions aborted because another producer took over the id.
        resends_count: Sendings of markers beyond the first.
        expired_count: Transactional ids that were forgotten.
    """

    commits_count: int = 0
    aborts_count: int = 0
    timeouts_count: int = 0
    fences_count: int = 0
    resends_count: int = 0
    expired_count: int = 0


ENDED_MARKERS: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
"""Answers of a partition after which its marker is not sent again.

INVALID_PRODUCER_EPOCH: the partition has seen a later epoch of the producer, so nothing of this transaction is open
there; a marker that is sent twice meets it. (Kafka gives up the whole transaction then, and it stays prepared until
the coordinator moves.)
"""

RESEND_MS_FIRST: Final = 50
RESEND_MS_MAX: Final = 2_000


def resend_pause_ms(attempts_count: int) -> int:
    """Return how long to wait before markers are sent again."""
    return min(RESEND_MS_FIRST << min(max(attempts_count - 1, 0), 16), RESEND_MS_MAX)


@frozen
class ShardSurroundings:
    """What a shard is given by the coordinator that made it.

    Attributes:
        settings: Broker keys.
        transaction_version: Returns the finalized level of `transaction.version`.
        take_producer_id: Returns a fresh producer id; raises COORDINATOR_LOAD_IN_PROGRESS when there is none at hand,
            on which clients ask again, as with Kafka.
        counters: Shared by all shards.
    """

    settings: TransactionSettings
    transaction_version: Callable[[], int]
    take_producer_id: Callable[[], int]
    counters: TransactionCounters
