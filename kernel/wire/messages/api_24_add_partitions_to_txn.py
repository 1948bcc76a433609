"""Pure core: AddPartitionsToTxn, API key 24, versions 0-5."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
]


class AddPartitionsToTxnTopic(Message):
    """Shared by several fields of `AddPartitionsToTxnRequest`."""

    name: str = f.string()
    partitions: list[int] = f.int32s()


class AddPartitionsToTxnTransaction(Message):
    """An item of `AddPartitionsToTxnRequest.transactions`."""

    transactional_id: str = f.string()
    producer_id: int = f.int64()
    producer_epoch: int = f.int16()
    verify_only: bool = f.boolean()
    topics: list[AddPartitionsToTxnTopic] = f.array(AddPartitionsToTxnTopic)


class AddPartitionsToTxnRequest(Message, key=24, versions="0-5", flexible="3+"):
    """The request."""

    transactions: list[AddPartitionsToTxnTransaction] = f.array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = f.string("0-3")
    v3_and_below_producer_id: int = f.int64("0-3")
    v3_and_below_producer_epoch: int = f.int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = f.array(AddPartitionsToTxnTopic, "0-3")


class AddPartitionsToTxnPartitionResult(Message):
    """Shared by several fields of `AddPartitionsToTxnResponse`."""

    partition_index: int = f.int32()
    partition_error_code: int = f.int16()


class AddPartitionsToTxnTopicResult(Message):
    """Shared by several fields of `AddPartitionsToTxnResponse`."""

    name: str = f.string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = f.array(AddPartitionsToTxnPartitionResult)


class AddPartitionsToTxnResult(Message):
    """An item of `AddPartitionsToTxnResponse.results_by_transaction`."""

    transactional_id: str = f.string()
    topic_results: list[AddPartitionsToTxnTopicResult] = f.array(AddPartitionsToTxnTopicResult)


class AddPartitionsToTxnResponse(Message, key=24, versions="0-5", flexible="3+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = f.array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = f.array(AddPartitionsToTxnTopicResult, "0-3")
