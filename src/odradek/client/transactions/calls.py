"""Shell: what a producer's user calls about transactions.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import trio

from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.peers.errors import ClientError

from ..errors import ClientClosedError, ClientUsageError
from .coordination import Transactions
from .machine import TransactionMachine

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator, Mapping

    from odradek.kernel.types import TopicPartition

    from ..brokers import Brokers
    from ..group.committed import OffsetAndMetadata
    from ..group.member import GroupMetadata
    from ..producer_settings import ProducerSettings
    from ..sender import Sender

_CLOSE_TIMEOUT_MS: Final = 10_000
"""How long a transaction that nobody ended keeps a producer from its end, at most."""


class TransactionCalls:
    """The part of a producer that knows transactions; see `Producer` for its life.

    Its calls are for one task at a time; records may be sent by any number of tasks.
    """

    def __init__(self, transactional_id: str | None) -> None:
        """Remember; without an id there are no transactions."""
        self._machine = None if transactional_id is None else TransactionMachine(transactional_id)
        self._transactions: Transactions | None = None

    async def flush(self) -> None:
        """Wait until all records are acknowledged or given up."""
        raise NotImplementedError

    def _open_transactions(
        self, settings: ProducerSettings, brokers: Brokers, sender: Sender, random_source: random.Random
    ) -> None:
        """Begin to have transactions, if there is a name for them."""
        if self._machine is None:
            return
        connection = settings.connection
        self._transactions = Transactions(
            self._machine,
            brokers,
            sender,
            Backoff(connection.retry_backoff_ms, connection.retry_backoff_max_ms, random_source),
            transaction_timeout_ms=settings.transaction_timeout_ms,
            max_block_ms=settings.max_block_ms,
        )

    async def abort_unfinished(self) -> None:
        """Abort a transaction that nobody ended: others need not wait for its time-out."""
        if self._transactions is None or self._machine is None:
            return
        if self._machine.may_abort:
            with trio.move_on_after(_CLOSE_TIMEOUT_MS / 1_000, shield=True), suppress(ClientError):
                await self._transactions.abort(self.flush)

    def record_refused(self, error: ClientError) -> None:
        """Have an open transaction not be committed, for it lacks a record; for who brings records unheard only."""
        if self._machine is not None:
            self._machine.record_refused(error)

    def _transactional(self) -> Transactions:
        if self._machine is None:
            raise ClientUsageError("this producer has no transactions: set transactional.id")
        if self._transactions is None:
            raise ClientClosedError("the producer is not open: use it inside its `async with`")
        return self._transactions

    async def init_transactions(self) -> None:
        """Register the transactional id: former producers of this name are fenced, what they left open is aborted.

        `transaction` and `begin_transaction` do it where it was not done.

        Raises:
            ClientUsageError: There is no `transactional.id`.
            TransactionFatalError: The coordinator refuses.
            ClientTimeoutError: It was not to be reached in `max.block.ms`.
        """
        await self._transactional().init()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Keep a transaction open for the time of an `async with`: it is committed at the end of it.

        Left by an exception or a cancellation, it is aborted, in a time of its own.

        Raises:
            TransactionAbortableError: It could not be committed, and was aborted: the same may be done again.
            TransactionFatalError, ProducerFencedError: The producer is of no more use.
            ClientTimeoutError: Before the block, the coordinator was not to be reached in `max.block.ms`. At its end,
                whether it is committed is unknown: `commit_transaction` once more.
        """
        await self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        finally:
            await self.abort_unfinished()

    async def begin_transaction(self) -> None:
        """Begin a transaction; see `transaction` for the form that also ends it.

        Raises:
            ClientUsageError: One is open.
            TransactionFatalError, ProducerFencedError: The producer is of no more use.
            ClientTimeoutError: The coordinator was not to be reached in `max.block.ms`: begin again.
        """
        transactions = self._transactional()
        await transactions.init()
        await transactions.begin()

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: GroupMetadata
    ) -> None:
        """Commit a consumer's offsets with the open transaction (KIP-447).

        Args:
            offsets: The next record to be read, by partition: `consumer.consumed()`.
            group_metadata: `consumer.group_metadata`, from when the records were polled.

        Raises:
            ClientUsageError: No transaction is open.
            TransactionAbortableError: The group has gone on without that consumer: abort.
            TransactionFatalError, ProducerFencedError: The producer is of no more use.
            ClientTimeoutError: A coordinator was not to be reached in `max.block.ms`.
        """
        await self._transactional().send_offsets(offsets, group_metadata)

    async def commit_transaction(self) -> None:
        """Commit the open transaction; raises as `transaction`, but does not abort by itself."""
        await self._transactional().commit(self.flush)

    async def abort_transaction(self) -> None:
        """Abort the open transaction; records that were not sent end with `TransactionAbortedError`.

        Raises:
            TransactionFatalError, ProducerFencedError: The producer is of no more use.
            ClientTimeoutError: The coordinator was not to be reached in `max.block.ms`: abort again.
        """
        await self._transactional().abort(self.flush)
