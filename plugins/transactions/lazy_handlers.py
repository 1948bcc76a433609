"""Shell: the handlers of the transaction coordinator, each made when its API is asked for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import LazyHandler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import ApiHandler, BrokerHandle, CoordinatorRuntime

    from .shard import TransactionShard


def transaction_handlers(runtime: CoordinatorRuntime[TransactionShard], broker: BrokerHandle) -> Sequence[ApiHandler]:
    """Return the handlers of every API of the transaction coordinator but InitProducerId, which is the kernel's."""

    def add_partitions() -> ApiHandler:
        from .handlers import AddPartitionsToTxnHandler

        return AddPartitionsToTxnHandler(runtime, broker)

    def add_offsets() -> ApiHandler:
        from .handlers import AddOffsetsToTxnHandler

        return AddOffsetsToTxnHandler(runtime, broker)

    def end() -> ApiHandler:
        from .handlers import EndTxnHandler

        return EndTxnHandler(runtime)

    def describe() -> ApiHandler:
        from .listing_handlers import DescribeTransactionsHandler

        return DescribeTransactionsHandler(runtime)

    def list_() -> ApiHandler:
        from .listing_handlers import ListTransactionsHandler

        return ListTransactionsHandler(runtime)

    makers = {24: add_partitions, 25: add_offsets, 26: end, 65: describe, 66: list_}
    return tuple(LazyHandler(key, make) for key, make in makers.items())
