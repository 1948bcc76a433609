"""Pure core: ListTransactions, API key 66, versions 0-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "ListTransactionsRequest",
    "ListTransactionsResponse",
]


class ListTransactionsRequest(Message, key=66, versions="0-2", flexible="0+"):
    """The request."""

    state_filters: list[str] = f.strings()
    producer_id_filters: list[int] = f.int64s()
    duration_filter: int = f.int64("1+", default=-1)
    transactional_id_pattern: str | None = f.string("2+", nullable="2+", default=None)


class TransactionState(Message):
    """An item of `ListTransactionsResponse.transaction_states`."""

    transactional_id: str = f.string()
    producer_id: int = f.int64()
    transaction_state: str = f.string()


class ListTransactionsResponse(Message, key=66, versions="0-2", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    unknown_state_filters: list[str] = f.strings()
    transaction_states: list[TransactionState] = f.array(TransactionState)
