"""Shell: AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26): requests of producers, translated for a shard.

Clients of old versions do not know PRODUCER_FENCED; they are told INVALID_PRODUCER_EPOCH.

*Source:* KIP-98; KIP-588 on PRODUCER_FENCED; KIP-890; the answers of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.api import (
    PENDING,
    ErrorCode,
    Gathered,
    ProducerIdentity,
    TopicPartition,
    coordinator_partition,
)
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from odradek.kernel.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnResponse
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnResponse

from .metadata import FIRST_VERSION_WITH_EPOCH_BUMP
from .requests import EndRequest
from .waiters import Told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import Answer, BrokerHandle, CoordinatorRuntime, RequestContext
    from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnRequest
    from odradek.kernel.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
    from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest

    from .requests import Answered
    from .shard import TransactionShard

OFFSETS_TOPIC: Final = "__consumer_offsets"
FIRST_VERSION_WITH_FENCED: Final = 2
"""From which version of these requests on clients know PRODUCER_FENCED."""
FIRST_VERSION_OF_BROKERS: Final = 4
"""From which version of AddPartitionsToTxn on it is a broker that asks, for several transactions at once."""
FIRST_END_VERSION_WITH_EPOCH_BUMP: Final = 5
NO_TRANSACTION_VERSION: Final = 0
"""What the first protocol counts as, in the log too."""


def code_for(code: ErrorCode, version: int) -> ErrorCode:
    """Return a code as clients of a version know it."""
    if code is ErrorCode.PRODUCER_FENCED and version < FIRST_VERSION_WITH_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


class AddPartitionsToTxnHandler:
    """Answers AddPartitionsToTxn: of a producer up to version 3, of a broker from then on."""

    api_key = 24

    def __init__(self, runtime: CoordinatorRuntime[TransactionShard], broker: BrokerHandle) -> None:
        self._runtime = runtime
        self._broker = broker

    def handle(self, request: AddPartitionsToTxnRequest, context: RequestContext) -> Answer:
        """Add or verify the partitions of every transaction, and answer once all are decided and committed."""
        transactions = _transactions_of(request, context.api_version)
        if not transactions:
            return AddPartitionsToTxnResponse()
        version = context.api_version
        gathered: Gathered[str, Any] = Gathered(
            list(transactions), lambda results: context.reply(_response(transactions, results, version))
        )
        for transaction in transactions.values():
            self._start(transaction, version, gathered)
        return PENDING

    def _start(self, transaction: AddPartitionsToTxnTransaction, version: int, gathered: Gathered[str, Any]) -> None:
        transactional_id = transaction.transactional_id
        partitions = [TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions]
        unknown = self._refused(partitions)
        if not transactional_id or unknown:
            gathered.note(transactional_id, unknown or dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
            return
        producer = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)

        def tell(code: ErrorCode, codes: Mapping[TopicPartition, ErrorCode] | None) -> None:
            told = dict.fromkeys(partitions, code_for(code, version)) if codes is None else codes
            gathered.note(transactional_id, told)

        shard_of_id = self._runtime.partition_for(transactional_id)
        if transaction.verify_only:
            self._runtime.submit(
                shard_of_id,
                lambda shard, _: shard.verify_partitions(transactional_id, producer, partitions),
                Told(tell),
            )
            return
        added = frozenset(partitions)
        by_broker = version >= FIRST_VERSION_OF_BROKERS
        client_version = FIRST_VERSION_WITH_EPOCH_BUMP if by_broker else NO_TRANSACTION_VERSION
        self._runtime.submit(
            shard_of_id,
            lambda shard, now_ms: shard.add_partitions(transactional_id, producer, added, client_version, now_ms),
            Told(tell),
        )

    def _refused(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        """Return, when a partition does not exist, what each is told, those first that do not; else nothing."""
        counts = {topic: self._partitions_count(topic) for topic in {each.topic for each in partitions}}
        codes = {
            each: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for each in partitions
            if not 0 <= each.partition < counts[each.topic]
        }
        if codes:
            codes.update((each, ErrorCode.OPERATION_NOT_ATTEMPTED) for each in partitions if each not in codes)
        return codes

    def _partitions_count(self, name: str) -> int:
        topic = self._broker.cluster.topic(name)
        return 0 if topic is None else topic.partitions_count

    def error_response(
        self, request: AddPartitionsToTxnRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        transactions = _transactions_of(request, context.api_version)
        results = {
            transactional_id: {
                TopicPartition(topic.name, index): code for topic in transaction.topics for index in topic.partitions
            }
            for transactional_id, transaction in transactions.items()
        }
        response = _response(transactions, results, context.api_version)
        response.error_code = code
        return response


def _transactions_of(request: AddPartitionsToTxnRequest, version: int) -> dict[str, AddPartitionsToTxnTransaction]:
    """Return what is asked, by transactional id, in the form of the later versions."""
    if version >= FIRST_VERSION_OF_BROKERS:
        return {transaction.transactional_id: transaction for transaction in request.transactions}
    return {
        request.v3_and_below_transactional_id: AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    }


def _response(
    transactions: Mapping[str, AddPartitionsToTxnTransaction],
    results: Mapping[str, Mapping[TopicPartition, ErrorCode]],
    version: int,
) -> AddPartitionsToTxnResponse:
    by_transaction = [
        AddPartitionsToTxnResult(
            transactional_id=transactional_id, topic_results=_topic_results(results[transactional_id])
        )
        for transactional_id in transactions
    ]
    if version >= FIRST_VERSION_OF_BROKERS:
        return AddPartitionsToTxnResponse(results_by_transaction=by_transaction)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=by_transaction[0].topic_results)


def _topic_results(codes: Mapping[TopicPartition, ErrorCode]) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for partition, code in codes.items():
        result = AddPartitionsToTxnPartitionResult(partition_index=partition.partition, partition_error_code=code)
        topics.setdefault(partition.topic, []).append(result)
    return [AddPartitionsToTxnTopicResult(name=name, results_by_partition=results) for name, results in topics.items()]


class AddOffsetsToTxnHandler:
    """Answers AddOffsetsToTxn: the partition of a group's offsets becomes part of a transaction."""

    api_key = 25

    def __init__(self, runtime: CoordinatorRuntime[TransactionShard], broker: BrokerHandle) -> None:
        self._runtime = runtime
        self._broker = broker

    def handle(self, request: AddOffsetsToTxnRequest, context: RequestContext) -> Answer:
        """Add the partition, and answer once that is committed."""
        transactional_id = request.transactional_id
        if not transactional_id:
            return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
        producer = ProducerIdentity(request.producer_id, request.producer_epoch)
        added = frozenset({TopicPartition(OFFSETS_TOPIC, self._partition_of(request.group_id))})
        self._runtime.submit(
            self._runtime.partition_for(transactional_id),
            lambda shard, now_ms: shard.add_partitions(
                transactional_id, producer, added, NO_TRANSACTION_VERSION, now_ms
            ),
            Told(
                lambda code, _: context.reply(AddOffsetsToTxnResponse(error_code=code_for(code, context.api_version)))
            ),
        )
        return PENDING

    def _partition_of(self, group_id: str) -> int:
        topic = self._broker.cluster.topic(OFFSETS_TOPIC)
        count = self._broker.config.get_int("offsets.topic.num.partitions") if topic is None else topic.partitions_count
        return coordinator_partition(group_id, count)

    def error_response(
        self, request: AddOffsetsToTxnRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails."""
        return AddOffsetsToTxnResponse(error_code=code)


class EndTxnHandler:
    """Answers EndTxn; from version 5 on an end raises the epoch, and the answer tells it."""

    api_key = 26

    def __init__(self, runtime: CoordinatorRuntime[TransactionShard]) -> None:
        self._runtime = runtime

    def handle(self, request: EndTxnRequest, context: RequestContext) -> Answer:
        """Decide the end, and answer once that is committed."""
        if not request.transactional_id:
            return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
        version = context.api_version
        raises_epoch = version >= FIRST_END_VERSION_WITH_EPOCH_BUMP
        asked = EndRequest(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            request.committed,
            FIRST_VERSION_WITH_EPOCH_BUMP if raises_epoch else NO_TRANSACTION_VERSION,
        )

        def tell(code: ErrorCode, answered: Answered | None) -> None:
            response = EndTxnResponse(error_code=code_for(code, version))
            if answered is not None:
                response.producer_id = answered.producer.producer_id
                response.producer_epoch = answered.producer.producer_epoch
            context.reply(response)

        self._runtime.submit(
            self._runtime.partition_for(request.transactional_id),
            lambda shard, now_ms: shard.end(asked, now_ms),
            Told(tell),
        )
        return PENDING

    def error_response(self, request: EndTxnRequest, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that fails."""
        return EndTxnResponse(error_code=code)
