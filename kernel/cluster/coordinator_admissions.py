"""Shell: asks the transaction coordinator of whatever broker has it whether producers may write.

    this broker coordinates the transactional id --> its runtime, by a plain call
    another does                                 --> AddPartitionsToTxn, what is asked of one broker together

A request may have a transactional id once, as its answer goes by that: a second question waits for the next request.
An answer that does not come is NETWORK_EXCEPTION, which callers turn into what their clients send again after.

*Source:* KIP-890; Kafka's AddPartitionsToTxnManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from ..contracts.coordinator_keys import coordinator_partition
from ..contracts.pieces import ITEMS_AT_ONCE
from ..errors import ErrorCode, error_code
from ..types import TopicPartition
from ..wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from .peer_batches import PeerBatches

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..contracts.api_handler import Answer, RequestContext
    from ..contracts.transactions import Admission, Transactions
    from ..metadata.image import MetadataImage
    from ..wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnResponse
    from .peer_batches import BrokerRequests

PARTITIONS_MAX: Final = ITEMS_AT_ONCE
"""So many partitions one request asks about, of all its transactions; of a single one that has more, about all."""
_TOLD_OTHERWISE: Final = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE,
    # Of the request as a whole: the other broker does not serve this version, and nothing is known of the transaction.
    ErrorCode.UNSUPPORTED_VERSION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


@attrs.frozen(eq=False)
class Question:
    """Who wants to write, and who is told whether it may."""

    admission: Admission
    done: Callable[[Mapping[TopicPartition, ErrorCode]], None]

    def tell_all(self, code: ErrorCode) -> None:
        """Tell the same of every partition."""
        self.done(dict.fromkeys(self.admission.partitions, code))


class AddingPartitions:
    """The exchange AddPartitionsToTxn. Pure."""

    purpose = "transactions"

    def take(self, queue: deque[Question]) -> list[Question]:
        """Take questions off the front, until a transactional id comes again, or they ask about too much."""
        taken: dict[str, Question] = {}
        room = PARTITIONS_MAX
        while queue:
            admission = queue[0].admission
            room -= len(admission.partitions)
            if taken and (room < 0 or admission.transactional_id in taken):
                break
            taken[admission.transactional_id] = queue.popleft()
        return list(taken.values())

    def request(self, items: Sequence[Question]) -> AddPartitionsToTxnRequest:
        """Return the request: to verify, or to add where a transaction may grow by producing."""
        return AddPartitionsToTxnRequest(transactions=[_transaction(item.admission) for item in items])

    def answered(self, items: Sequence[Question], response: AddPartitionsToTxnResponse) -> None:
        """Tell each question the codes of its transaction; what the answer leaves out is not known to be admitted."""
        if response.error_code:
            self.failed(items, error_code(response.error_code))
            return
        by_id = {
            result.transactional_id: {
                TopicPartition(topic.name, each.partition_index): error_code(each.partition_error_code)
                for topic in result.topic_results
                for each in topic.results_by_partition
            }
            for result in response.results_by_transaction
        }
        for item in items:
            codes = by_id.get(item.admission.transactional_id, {})
            item.done(
                {
                    partition: codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
                    for partition in item.admission.partitions
                }
            )

    def failed(self, items: Sequence[Question], code: ErrorCode) -> None:
        """Tell each question why it is not known whether its producer may write."""
        for item in items:
            item.tell_all(_TOLD_OTHERWISE.get(code, code))


def _transaction(admission: Admission) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=admission.transactional_id,
        producer_id=admission.producer_id,
        producer_epoch=admission.producer_epoch,
        verify_only=not admission.may_add,
        topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in by_topic(admission.partitions).items()
        ],
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the indexes of partitions by their topics, in their order."""
    found: dict[str, list[int]] = {}
    for partition in partitions:
        found.setdefault(partition.topic, []).append(partition.partition)
    return found


class ClusterTransactions:
    """The `Transactions` of a broker of a cluster. Owned by the reactor's task.

    Attributes:
        batches: What is asked of other brokers; its `run` is a service.
    """

    def __init__(
        self,
        local: Transactions,
        *,
        topic: str,
        node_id: int,
        image: Callable[[], MetadataImage],
        brokers: BrokerRequests,
        timeout_ms: Callable[[], int],
    ) -> None:
        """Make it.

        Args:
            local: The coordinator of this broker.
            topic: Where transactional ids are kept.
            node_id: This broker.
            image: Returns the newest metadata.
            brokers: The way to the others.
            timeout_ms: Returns how long a request may take: `request.timeout.ms`.
        """
        self._local = local
        self._topic = topic
        self._node_id = node_id
        self._image = image
        self.batches = PeerBatches(AddingPartitions(), brokers, timeout_ms)

    def admit(self, admission: Admission, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        """Ask whether a producer may write; see `contracts.transactions.Transactions`."""
        topic = self._image().topics_by_name.get(self._topic)
        if topic is None or not admission.transactional_id:
            self._local.admit(admission, done)  # which refuses
            return
        leader = topic.partitions[coordinator_partition(admission.transactional_id, len(topic.partitions))].leader
        if leader == self._node_id:
            self._local.admit(admission, done)
        elif leader < 0:
            Question(admission, done).tell_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            self.batches.put(leader, Question(admission, done))

    async def init_producer_id(self, request: Any, context: RequestContext) -> Answer:
        """Answer InitProducerId: clients find the coordinator themselves. Cancelled: the broker is stopping."""
        return await self._local.init_producer_id(request, context)
