"""Pure core: records in `__transaction_state`."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "TransactionLogKey",
    "TransactionLogValue",
]


class TransactionLogKey(Message, key=0, versions="0"):
    """TransactionLogKey: what a record is about."""

    transactional_id: str = f.string()


class PartitionsSchema(Message):
    """An item of `TransactionLogValue.transaction_partitions`."""

    topic: str = f.string()
    partition_ids: list[int] = f.int32s()


class TransactionLogValue(Message, key=0, versions="0-1", flexible="1+"):
    """TransactionLogValue: what a record says."""

    producer_id: int = f.int64()
    previous_producer_id: int = f.int64("1+", default=-1, tag=0)
    next_producer_id: int = f.int64("1+", default=-1, tag=1)
    producer_epoch: int = f.int16()
    next_producer_epoch: int = f.int16("1+", default=-1, tag=3)
    transaction_timeout_ms: int = f.int32()
    transaction_status: int = f.int8()
    transaction_partitions: list[PartitionsSchema] | None = f.array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = f.int64()
    transaction_start_timestamp_ms: int = f.int64()
    client_transaction_version: int = f.int16("1+", tag=2)
