"""Shell: the admin client's calls about transactions: which there are, and ending those that nobody ends.

A call about one transactional id goes to the broker that coordinates it, one about a partition to its leader; a list is
asked of all brokers.

*Source:* `KafkaAdminClient` of Kafka 4.3; KIP-360, KIP-664, KIP-994, KIP-1152.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.kernel.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.kernel.wire.messages.api_65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from odradek.kernel.wire.messages.api_66_list_transactions import ListTransactionsRequest

from .admin_calls import AdminCalls, check_item
from .group.coordinator import CoordinatorLink, KeyType

if TYPE_CHECKING:
    from collections.abc import Iterable

FENCING_TIMEOUT_MS = 1
"""The transaction time-out of a producer that only takes an id over: it will begin no transaction."""


@attrs.frozen
class TransactionListing:
    """A transactional id, as a list tells it.

    Attributes:
        transactional_id: The id.
        producer_id: Whose producer id it has.
        state: `Empty`, `Ongoing`, `PrepareCommit`, `CompleteCommit`, ...
        coordinator_id: The broker that told.
    """

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


@attrs.frozen
class TransactionDescription:
    """A transactional id and its open, or last, transaction.

    Attributes:
        transactional_id: The id.
        producer_id: Its producer's id.
        producer_epoch: Its producer's epoch.
        state: As in `TransactionListing`.
        timeout_ms: After how long the coordinator aborts a transaction.
        start_timestamp: When the open, or last, transaction began; None when there was none.
        partitions: What the transaction has written to and is not ended yet.
        coordinator_id: The broker that coordinates it.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_timestamp: int | None
    partitions: tuple[TopicPartition, ...]
    coordinator_id: int


class TransactionCalls(AdminCalls):
    """The calls about transactions; `Admin` has them.

    .. versionadded:: 0.1
    """

    def _coordinator_of(self, transactional_id: str) -> CoordinatorLink:
        return CoordinatorLink(self.opened(), transactional_id, KeyType.TRANSACTION, self.backoff)

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Return the transactional ids of all brokers, by name.

        Args:
            states: Only those in one of these states, written as in the answers; all when empty.
            producer_ids: Only those of these producers; all when empty.
            longer_than_ms: Only those whose transaction began more than so long ago. Needs Kafka 3.8.
            pattern: Only those whose whole id matches this regular expression. Needs Kafka 4.1.
        """
        request = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=-1 if longer_than_ms is None else longer_than_ms,
            transactional_id_pattern=pattern,
        )
        found: dict[str, TransactionListing] = {}
        for node_id, response in await self.call_all(
            request, lambda answer: check_item(answer.error_code, "transactions")
        ):
            for item in response.transaction_states:
                found[item.transactional_id] = TransactionListing(
                    item.transactional_id, item.producer_id, item.transaction_state, node_id
                )
        return [found[transactional_id] for transactional_id in sorted(found)]

    async def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """Return what its coordinator knows of a transactional id.

        Raises:
            BrokerError: TRANSACTIONAL_ID_NOT_FOUND: nobody has used it, or not for long;
                TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ...
        """
        coordinator = self._coordinator_of(transactional_id)

        def check(answer: DescribeTransactionsResponse) -> None:
            for item in answer.transaction_states:
                check_item(item.error_code, f"transactional id {transactional_id!r}")

        response: DescribeTransactionsResponse = await self.call(
            DescribeTransactionsRequest(transactional_ids=[transactional_id]), check, coordinator=coordinator
        )
        (item,) = response.transaction_states
        return TransactionDescription(
            transactional_id,
            item.producer_id,
            item.producer_epoch,
            item.transaction_state,
            item.transaction_timeout_ms,
            item.transaction_start_time_ms if item.transaction_start_time_ms >= 0 else None,
            tuple(TopicPartition(topic.topic, number) for topic in item.topics for number in sorted(topic.partitions)),
            coordinator.node_id or 0,
        )

    async def fence_producer(self, transactional_id: str) -> None:
        """Take a transactional id over: its producer is fenced, its open transaction aborted.

        Raises:
            BrokerError: CONCURRENT_TRANSACTIONS: it is not aborted within `default.api.timeout.ms`;
                TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ...
        """

        def check(answer: InitProducerIdResponse) -> None:
            check_item(answer.error_code, f"transactional id {transactional_id!r}")

        await self.call(
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS),
            check,
            coordinator=self._coordinator_of(transactional_id),
        )

    async def abort_transaction(
        self, partition: TopicPartition, *, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        """Write an abort marker into one partition, for a transaction that its coordinator does not know of.

        What the coordinator thinks of the transaction is not changed: one that is open there, or about to be
        committed, is torn apart. `fence_producer` is the way to end those.

        Args:
            partition: Where.
            producer_id: Whose transaction.
            producer_epoch: The epoch that the partition knows of the producer.
            coordinator_epoch: At least the one that the partition knows.

        Raises:
            BrokerError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: the partition knows later ones;
                CLUSTER_AUTHORIZATION_FAILED, ...
        """
        await self.know((partition,))
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
        )

        def check(answer: WriteTxnMarkersResponse) -> None:
            for of_producer in answer.markers:
                for topic in of_producer.topics:
                    for item in topic.partitions:
                        check_item(item.error_code, f"partition {partition}, producer {producer_id}")

        await self.call(WriteTxnMarkersRequest(markers=[marker]), check, node_of=self.leader(partition))
