"""Pure core: DescribeTransactions, API key 65, versions 0."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
]


class DescribeTransactionsRequest(Message, key=65, versions="0", flexible="0+"):
    """The request."""

    transactional_ids: list[str] = f.strings()


class TopicData(Message):
    """An item of `TransactionState.topics`."""

    topic: str = f.string()
    partitions: list[int] = f.int32s()


class TransactionState(Message):
    """An item of `DescribeTransactionsResponse.transaction_states`."""

    error_code: int = f.int16()
    transactional_id: str = f.string()
    transaction_state: str = f.string()
    transaction_timeout_ms: int = f.int32()
    transaction_start_time_ms: int = f.int64()
    producer_id: int = f.int64()
    producer_epoch: int = f.int16()
    topics: list[TopicData] = f.array(TopicData)


class DescribeTransactionsResponse(Message, key=65, versions="0", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    transaction_states: list[TransactionState] = f.array(TransactionState)
