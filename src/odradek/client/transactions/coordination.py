"""Shell: speaks to the coordinators of a producer's transactions: of transactions, and of consumers' groups.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.kernel.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest
from odradek.kernel.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

from ..brokers import now_ms
from ..errors import ClientTimeoutError
from ..group.coordinator import CoordinatorLink, KeyType
from ..group.member import by_topic
from .machine import State, TransactionMachine, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from odradek.kernel.peers.backoff import Backoff
    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire import Message

    from ..brokers import Brokers
    from ..group.committed import OffsetAndMetadata
    from ..group.member import GroupMetadata
    from ..sender import Sender

FEATURE: Final = "transaction.version"
_V2: Final = 2
_ADD_PARTITIONS_VERSION_MAX: Final = 3
"""Later versions are for brokers."""
_V1_END_VERSION_MAX: Final = 4
_V1_OFFSETS_VERSION_MAX: Final = 4
_CONCURRENT_PAUSE_MS: Final = 20
"""The former transaction is about to end: the usual pause would cost more than that takes."""


@attrs.frozen
class _Question:
    """One kind of request.

    Attributes:
        message: The request.
        codes_of: The error codes in an answer.
        what: For errors.
        version_max: Speak no newer version.
    """

    message: Message
    codes_of: Callable[[Any], Iterable[int]]
    what: str
    version_max: int | None = None


def _top_code(response: Any) -> Iterable[int]:
    return (response.error_code,)


class Transactions:
    """The transactions of one producer; used by the one task that also commits them, and by its own, `run`."""

    def __init__(
        self,
        machine: TransactionMachine,
        brokers: Brokers,
        sender: Sender,
        backoff: Backoff,
        *,
        transaction_timeout_ms: int,
        max_block_ms: int,
    ) -> None:
        """Remember; nothing is asked yet.

        Args:
            machine: The core.
            brokers: The cluster.
            sender: Who sends the batches.
            backoff: Pauses between attempts.
            transaction_timeout_ms: When the coordinator aborts a transaction.
            max_block_ms: How long each call here may take.
        """
        self.machine = machine
        self._brokers = brokers
        self._sender = sender
        self._backoff = backoff
        self._timeout_ms = transaction_timeout_ms
        self._max_block_ms = max_block_ms
        self._link = CoordinatorLink(brokers, machine.transactional_id, KeyType.TRANSACTION, backoff)
        self._groups: dict[str, CoordinatorLink] = {}
        self._has_news = trio.Event()

    # Calls of the user.

    async def init(self) -> None:
        """Get the producer id of this transactional id; whoever used it before is fenced.

        Raises:
            TransactionFatalError: The coordinator refuses.
            ClientTimeoutError: It was not to be reached in `max.block.ms`.
        """
        if self.machine.state is State.UNINITIALIZED:
            await self._take_producer_id()
        else:
            self.machine.raise_error()
            await trio.lowlevel.checkpoint()

    async def _take_producer_id(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.machine.transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        if self.machine.needs_epoch:
            request.producer_id, request.producer_epoch = self.machine.producer_id, self.machine.producer_epoch
        response = await self._ask(self._link, _Question(request, _top_code, "InitProducerId"))
        self.machine.initialized(response.producer_id, response.producer_epoch)
        self._restart_sequences()

    def _restart_sequences(self) -> None:
        assert self._sender.sequences is not None
        self._sender.sequences.begin_anew(self.machine.producer_id, self.machine.producer_epoch)

    async def begin(self) -> None:
        """Begin a transaction; nobody is told before the first record.

        Where the cluster has gone over to version 2 since the last one, the producer gets another epoch first, as
        Java's does.
        """
        is_v2 = self._brokers.finalized_level(FEATURE) >= _V2
        if is_v2 and self.machine.was_v1 and self.machine.state is State.READY:
            self.machine.needs_epoch = True
            await self._take_producer_id()
        self.machine.begin(is_v2=is_v2)

    def use(self, partition: TopicPartition) -> None:
        """Take note that a record goes to a partition."""
        if self.machine.use(partition):
            self._has_news.set()

    async def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata) -> None:
        """Have a group's offsets committed with the transaction.

        Raises:
            ClientUsageError: No transaction is open.
            TransactionAbortableError: The group has gone on without that consumer, or may not be used.
            TransactionFatalError, ProducerFencedError: The producer is of no more use.
            ClientTimeoutError: A coordinator was not to be reached in `max.block.ms`.
        """
        machine = self.machine
        machine.check_open()
        if not offsets:
            await trio.lowlevel.checkpoint()
            return
        if not machine.is_v2:
            add = AddOffsetsToTxnRequest(
                transactional_id=machine.transactional_id,
                producer_id=machine.producer_id,
                producer_epoch=machine.producer_epoch,
                group_id=group.group_id,
            )
            machine.has_begun = True
            await self._ask(self._link, _Question(add, _top_code, "AddOffsetsToTxn"))
        commit = TxnOffsetCommitRequest(
            transactional_id=machine.transactional_id,
            group_id=group.group_id,
            producer_id=machine.producer_id,
            producer_epoch=machine.producer_epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=number,
                            committed_offset=offset.offset,
                            committed_leader_epoch=offset.leader_epoch,
                            committed_metadata=offset.metadata,
                        )
                        for (name, number), offset in offsets.items()
                        if name == topic
                    ],
                )
                for topic in by_topic(frozenset(offsets))
            ],
        )
        machine.has_begun = True  # by version 2, the group's coordinator adds it
        link = self._groups.get(group.group_id)
        if link is None:
            link = CoordinatorLink(self._brokers, group.group_id, KeyType.GROUP, self._backoff)
            self._groups[group.group_id] = link
        version_max = None if machine.is_v2 else _V1_OFFSETS_VERSION_MAX
        await self._ask(link, _Question(commit, _commit_codes, "TxnOffsetCommit", version_max))

    async def commit(self, flush: Callable[[], Any]) -> None:
        """Commit: all records are acknowledged, then all become visible.

        Args:
            flush: Waits until all records are acknowledged or given up.

        Raises:
            TransactionAbortableError: A record was given up: abort.
            TransactionFatalError, ProducerFencedError: The producer is of no more use.
            ClientTimeoutError: Whether it is committed is unknown: commit again.
        """
        self.machine.begin_end(is_commit=True)
        await flush()
        self.machine.raise_error()
        await self._end(is_commit=True)

    async def abort(self, flush: Callable[[], Any]) -> None:
        """Abort: what was not sent is dropped, what was will not be seen by read-committed consumers.

        Raises:
            TransactionFatalError, ProducerFencedError: The producer is of no more use.
            ClientTimeoutError: Abort again.
        """
        self.machine.begin_end(is_commit=False)
        self._sender.wake()
        await flush()
        await self._sender.wait_silent()
        await self._end(is_commit=False)

    async def _end(self, *, is_commit: bool) -> None:
        machine = self.machine
        if machine.has_begun:
            request = EndTxnRequest(
                transactional_id=machine.transactional_id,
                producer_id=machine.producer_id,
                producer_epoch=machine.producer_epoch,
                committed=is_commit,
            )
            machine.is_end_sent = True
            version_max = None if machine.is_v2 else _V1_END_VERSION_MAX
            response = await self._ask(self._link, _Question(request, _top_code, "EndTxn", version_max))
            if machine.ended(response.producer_id, response.producer_epoch):
                self._restart_sequences()
        else:
            machine.ended()
        if machine.needs_epoch:
            await self._take_producer_id()

    # Requests.

    async def _ask(self, link: CoordinatorLink, question: _Question) -> Any:
        """Ask a coordinator until it does what is asked, or says why not.

        Raises:
            ClientError: As the callers say.
        """
        deadline_ms = now_ms() + self._max_block_ms
        failures_count = 0
        last = "no coordinator is known"
        with trio.move_on_at(deadline_ms / 1_000):
            while True:
                pause_ms = None
                try:
                    response = await link.request(question.message, version_max=question.version_max)
                except ClientError as error:
                    if not error.retriable:
                        raise
                    last = str(error)
                else:
                    code = _worst(question.codes_of(response))
                    verdict = judge(code)
                    if verdict is Verdict.DONE:
                        return response
                    last = f"{code.name}: {code.text}"
                    if verdict is Verdict.FIND:
                        link.forget()
                    elif verdict is not Verdict.AGAIN:
                        raise self.machine.refused(code, f"{question.what}: {code.text}")
                    if code is ErrorCode.CONCURRENT_TRANSACTIONS:
                        pause_ms = _CONCURRENT_PAUSE_MS
                failures_count += 1
                await trio.sleep((pause_ms or self._backoff.pause_ms(failures_count)) / 1_000)
        raise ClientTimeoutError(f"{question.what} had no success within max.block.ms={self._max_block_ms}: {last}")

    async def run(self) -> None:
        """Tell the coordinator of partitions that are new in a transaction (version 1); runs until cancelled."""
        while True:
            await self._has_news.wait()
            self._has_news = trio.Event()
            with suppress(ClientError):  # kept by the machine; a time-out shows in the records, which wait for this
                await self._add_partitions()
            self._sender.wake()

    async def _add_partitions(self) -> None:
        machine = self.machine
        partitions = machine.to_add
        if not partitions:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=machine.transactional_id,
            v3_and_below_producer_id=machine.producer_id,
            v3_and_below_producer_epoch=machine.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            ],
        )
        machine.has_begun = True
        await self._ask(
            self._link, _Question(request, _partition_codes, "AddPartitionsToTxn", _ADD_PARTITIONS_VERSION_MAX)
        )
        machine.added(partitions)


def _partition_codes(response: Any) -> Iterable[int]:
    return (
        item.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for item in topic.results_by_partition
    )


def _commit_codes(response: Any) -> Iterable[int]:
    return (item.error_code for topic in response.topics for item in topic.partitions)


_WORST_FIRST: Final = (Verdict.FENCED, Verdict.FATAL, Verdict.ABORT, Verdict.FIND, Verdict.AGAIN, Verdict.DONE)


def _worst(codes: Iterable[int]) -> ErrorCode:
    """Return the code that decides what becomes of a request about several things."""
    found = [error_code(code) for code in codes]
    return min(found, key=lambda code: _WORST_FIRST.index(judge(code)), default=ErrorCode.NONE)
