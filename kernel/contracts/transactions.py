"""Pure core: what transactions are to the rest of a broker: who may write, and how an end reaches the partitions.

Two directions::

    Produce, TxnOffsetCommit --> Transactions.admit      is this partition part of the producer's open transaction?
    transaction coordinator  --> MarkerWriter.write      a commit or abort marker in each partition of a transaction

*Source:* KIP-98; KIP-890 on verification (part 1) and on adding partitions by producing (part 2).

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..classes import frozen

if TYPE_CHECKING:
    from ..errors import ErrorCode
    from ..types import TopicPartition
    from .api_handler import Answer, RequestContext


@frozen
class Admission:
    """A producer that wants to write within its transaction.

    Attributes:
        transactional_id: Its transactional id.
        producer_id: As the batch has it.
        producer_epoch: As the batch has it.
        partitions: Where it wants to write.
        may_add: Whether a partition that is no part of the transaction yet is added (transaction version 2) or refused.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]
    may_add: bool


class Transactions(Protocol):
    """The transaction coordinator's face towards producers."""

    def admit(self, admission: Admission, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        """Ask whether a producer may write; what was added is committed before `done` is called.

        Args:
            admission: Who, and where.
            done: Called once, on the reactor's task, perhaps before this returns, with every partition's code: NONE,
                or why not, in the coordinator's codes, which the caller translates for old clients:
                TRANSACTION_ABORTABLE (not part of the transaction), INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
                CONCURRENT_TRANSACTIONS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, ...
        """
        ...

    async def init_producer_id(self, request: Any, context: RequestContext) -> Answer:
        """Answer InitProducerId with a transactional id; as `AsyncApiHandler.handle_async`."""
        ...


@frozen
class TransactionMarker:
    """The end of a transaction, to be written to partitions.

    Attributes:
        producer_id: Whose transaction.
        producer_epoch: The epoch that the marker carries.
        coordinator_epoch: The coordinator's: a marker of an older one is refused.
        transaction_version: 2 when the epoch was raised for this marker.
        is_commit: Commit or abort.
        partitions: Where.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    transaction_version: int
    is_commit: bool
    partitions: Sequence[TopicPartition]


class MarkerWriter(Protocol):
    """Brings markers to the leaders of partitions."""

    def write(self, marker: TransactionMarker, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        """Have a marker written and committed in each of its partitions.

        Args:
            marker: What, and where.
            done: Called once, on the reactor's task, with every partition's code: NONE once it is committed there;
                UNKNOWN_TOPIC_OR_PARTITION for one that is deleted; codes worth another try later
                (NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, ...);
                INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED, which are final.
        """
        ...
