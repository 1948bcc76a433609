"""A cluster of one broker, as far as transactions see it: coordinators of transactions and of groups, logs, no time.

A transaction ends as in Kafka: EndTxn is answered when the decision is written, and what it decides is done later, here
after `lag` more requests. Until then InitProducerId answers CONCURRENT_TRANSACTIONS, and offsets stay pending.
"""

from typing import Any

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from odradek.kernel.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest, EndTxnResponse
from odradek.kernel.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from odradek.spark_plugin.writing.transaction_steps import Ask, TransactionalProducer


@attrs.define
class Transaction:
    """What the coordinator keeps of a transactional id; `decision` of one that is ending or ended: commit or not."""

    producer_id: int
    epoch: int = 0
    is_open: bool = False
    decision: bool | None = None
    due: int | None = None
    opened_at: int = 0
    added: set[object] = attrs.field(factory=set)


@attrs.define
class FakeCluster:
    """Answers what `Coordination` asks, and takes records.

    Attributes:
        is_v2: Whether producers speak version 2 of transactions.
        lag: After how many requests a decision is carried out.
        timeout: After how many requests a transaction is aborted.
        committed: Records that read-committed consumers see.
        requests_count: How many requests came.
    """

    is_v2: bool = True
    lag: int = 2
    timeout: int = 200
    committed: list[str] = attrs.field(factory=list)
    requests_count: int = 0
    offsets: dict[tuple[str, TopicPartition], tuple[int, str]] = attrs.field(factory=dict)
    transactions: dict[str, Transaction] = attrs.field(factory=dict)
    _open_records: dict[int, list[str]] = attrs.field(factory=dict)
    _pending: dict[int, dict[tuple[str, TopicPartition], tuple[int, str]]] = attrs.field(factory=dict)

    @property
    def open_transactions(self) -> list[str]:
        """Transactional ids with a transaction that nobody has ended."""
        return [name for name, found in self.transactions.items() if found.is_open]

    def monotonic_ms(self) -> int:
        """Return a time: a millisecond for each request."""
        return self.requests_count

    def ask(self, ask: Ask) -> Any:
        """Answer a request of any kind."""
        self._pass()
        return getattr(self, f"_on_{type(ask.message).__name__}")(ask.message)

    def write(self, producer: TransactionalProducer, partition: TopicPartition, records: list[str]) -> ErrorCode:
        """Append records of a transaction."""
        self._pass()
        found = self.transactions[producer.transactional_id]
        code = self._check(found, producer.producer_id, producer.producer_epoch, partition)
        if code is ErrorCode.NONE:
            self._open_records.setdefault(found.producer_id, []).extend(records)
        return code

    def expire(self, name: str) -> None:
        """Let a transaction's time be over."""
        found = self.transactions[name]
        if found.is_open:
            found.epoch += 1
            self._decide(found, is_commit=False)

    def settle(self) -> None:
        """Carry out all decisions."""
        for found in self.transactions.values():
            if found.due is not None:
                self._carry_out(found)

    def _pass(self) -> None:
        self.requests_count += 1
        for name, found in self.transactions.items():
            if found.due is not None and found.due <= self.requests_count:
                self._carry_out(found)
            if found.is_open and self.requests_count - found.opened_at > self.timeout:
                self.expire(name)

    def _open(self, found: Transaction, what: set[object]) -> None:
        if not found.is_open:
            found.is_open, found.decision, found.opened_at = True, None, self.requests_count
        found.added |= what

    def _decide(self, found: Transaction, *, is_commit: bool) -> None:
        found.is_open = False
        found.decision = is_commit
        found.due = self.requests_count + self.lag

    def _carry_out(self, found: Transaction) -> None:
        records = self._open_records.pop(found.producer_id, [])
        pending = self._pending.pop(found.producer_id, {})
        if found.decision:
            self.committed.extend(records)
            self.offsets.update(pending)
        found.due = None
        found.added.clear()

    def _check(self, found: Transaction, producer_id: int, epoch: int, what: object) -> ErrorCode:
        """Judge a write of a transaction, and add to it what version 2 adds by itself."""
        if (producer_id, epoch) != (found.producer_id, found.epoch):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if found.due is not None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if self.is_v2:
            self._open(found, {what})
        return ErrorCode.NONE if what in found.added else ErrorCode.INVALID_TXN_STATE

    def _on_InitProducerIdRequest(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        name = request.transactional_id or ""
        found = self.transactions.get(name)
        if found is None:
            found = self.transactions[name] = Transaction(len(self.transactions), -1)
        if found.is_open:
            found.epoch += 1  # fences, then aborts
            self._decide(found, is_commit=False)
        if found.due is not None:
            return InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
        found.epoch += 1
        found.decision = None
        return InitProducerIdResponse(producer_id=found.producer_id, producer_epoch=found.epoch)

    def _add(self, name: str, producer_id: int, epoch: int, what: set[object]) -> ErrorCode:
        found = self.transactions[name]
        if (producer_id, epoch) != (found.producer_id, found.epoch):
            return ErrorCode.PRODUCER_FENCED
        if found.due is not None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        self._open(found, what)
        return ErrorCode.NONE

    def _on_AddPartitionsToTxnRequest(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        topics = request.v3_and_below_topics
        code = self._add(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            {TopicPartition(topic.name, number) for topic in topics for number in topic.partitions},
        )
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
                        for number in topic.partitions
                    ],
                )
                for topic in topics
            ]
        )

    def _on_AddOffsetsToTxnRequest(self, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
        code = self._add(
            request.transactional_id, request.producer_id, request.producer_epoch, {f"group {request.group_id}"}
        )
        return AddOffsetsToTxnResponse(error_code=code)

    def _on_TxnOffsetCommitRequest(self, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        found = self.transactions[request.transactional_id]
        code = self._check(found, request.producer_id, request.producer_epoch, f"group {request.group_id}")
        if code is ErrorCode.NONE:
            for topic in request.topics:
                for one in topic.partitions:
                    key = (request.group_id, TopicPartition(topic.name, one.partition_index))
                    value = (one.committed_offset, one.committed_metadata or "")
                    self._pending.setdefault(found.producer_id, {})[key] = value
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _on_EndTxnRequest(self, request: EndTxnRequest) -> EndTxnResponse:
        found = self.transactions[request.transactional_id]
        same = (request.producer_id, request.producer_epoch) == (found.producer_id, found.epoch)
        again = self.is_v2 and not found.is_open and request.producer_epoch + 1 == found.epoch
        if not same and not again:
            return EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if found.is_open:
            found.epoch += self.is_v2
            self._decide(found, is_commit=request.committed)
            return EndTxnResponse(producer_id=found.producer_id, producer_epoch=found.epoch)
        if found.decision is None or found.decision is not request.committed or (self.is_v2 and not again):
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        if found.due is not None:
            return EndTxnResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
        return EndTxnResponse(producer_id=found.producer_id, producer_epoch=found.epoch)

    def _on_OffsetFetchRequest(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        (group,) = request.groups
        topics = []
        for topic in group.topics or ():
            found = []
            for number in topic.partition_indexes:
                key = (group.group_id, TopicPartition(topic.name, number))
                offset, metadata = self.offsets.get(key, (-1, ""))
                is_pending = any(key in pending for pending in self._pending.values())
                code = ErrorCode.UNSTABLE_OFFSET_COMMIT if is_pending and request.require_stable else ErrorCode.NONE
                found.append(
                    OffsetFetchResponsePartitions(
                        partition_index=number, committed_offset=offset, metadata=metadata, error_code=code
                    )
                )
            topics.append(OffsetFetchResponseTopics(name=topic.name, partitions=found))
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)])
