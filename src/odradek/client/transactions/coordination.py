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

from ..errors import ClientTimeoutError
from ..group.coordinator import CoordinatorLink, KeyType
from ..group.member import by_topic
from .machine import State, TransactionMachine, Verdict, is_refusal, judge

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
        begins: Whether the coordinator knows of the transaction once it has done this.
    """

    message: Message
    codes_of: Callable[[Any], Iterable[int]]
    what: str
    version_max: int | None = None
    begins: bool = False


@attrs.define
class _Attempts:
    """What became of one question so far.

    Attributes:
        failures_count: How often it was asked in vain.
        last: How it failed the last time.
        is_in_doubt: Whether a coordinator may have done it all the same.
    """

    failures_count: int = 0
    last: str = "no coordinator is known"
    is_in_doubt: bool = False


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
        self._adding: trio.Event | None = None
        """Set when the AddPartitionsToTxn that is under way has come to its end."""

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
        Java's does; and where the last one was to end with another epoch, and that was not to be had.

        Raises:
            TransactionFatalError, ProducerFencedError: The producer is of no more use.
            ClientTimeoutError: The coordinator was not to be reached in `max.block.ms`: begin again.
        """
        machine = self.machine
        is_v2 = self._brokers.finalized_level(FEATURE) >= _V2
        if is_v2 and machine.was_v1 and machine.state is State.READY:
            machine.needs_epoch = True
        if machine.lacks_only_epoch:
            await self._take_producer_id()
        machine.begin(is_v2=is_v2)

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
            await self._ask(self._link, _Question(add, _top_code, "AddOffsetsToTxn", begins=True))
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
            ClientTimeoutError: Abort again; where only the next epoch is lacking, `begin` takes that, too.
        """
        if self.machine.lacks_only_epoch:
            await self._take_producer_id()
            return
        self.machine.begin_end(is_commit=False)
        self._sender.wake()
        await flush()
        await self._sender.wait_silent()
        await self._end(is_commit=False)

    async def _end(self, *, is_commit: bool) -> None:
        machine = self.machine
        await self._stop_adding()
        machine.raise_error()
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
        attempts = _Attempts()
        with trio.move_on_after(self._max_block_ms / 1_000):
            while True:
                response = await self._attempt(link, question, attempts)
                if response is not None:
                    return response
        raise ClientTimeoutError(
            f"{question.what} had no success within max.block.ms={self._max_block_ms}: {attempts.last}"
        )

    async def _attempt(self, link: CoordinatorLink, question: _Question, attempts: _Attempts) -> Any:
        """Ask once; without success, pause, and return None: ask again."""
        pause_ms = None
        try:
            response, code = await self._request(link, question)
        except ClientError as error:
            if not error.retriable:
                raise
            attempts.last = str(error)
            attempts.is_in_doubt = True
        else:
            verdict = judge(code)
            if verdict is Verdict.DONE:
                return response
            attempts.last = f"{code.name}: {code.text}"
            attempts.is_in_doubt = attempts.is_in_doubt or not is_refusal(code)
            if verdict is Verdict.FIND:
                link.forget()
            elif verdict is not Verdict.AGAIN:
                raise self.machine.refused(code, f"{question.what}: {code.text}")
            if code is ErrorCode.CONCURRENT_TRANSACTIONS:
                pause_ms = _CONCURRENT_PAUSE_MS
        attempts.failures_count += 1
        await trio.sleep((pause_ms or self._backoff.pause_ms(attempts.failures_count)) / 1_000)
        return None

    async def _request(self, link: CoordinatorLink, question: _Question) -> tuple[Any, ErrorCode]:
        """Return a coordinator's answer and error; unless it refuses, it may know of the transaction from now on."""
        is_refused = False
        try:
            response = await link.request(question.message, version_max=question.version_max)
            code = _worst(question.codes_of(response))
            is_refused = is_refusal(code)
        except ClientError as error:
            is_refused = not error.retriable  # by ourselves: nothing was sent
            raise
        finally:
            if question.begins and not is_refused:
                self.machine.has_begun = True
        return response, code

    async def run(self) -> None:
        """Tell the coordinator of partitions that are new in a transaction (version 1); runs until cancelled."""
        while True:
            await self._has_news.wait()
            self._has_news = trio.Event()
            self._adding = trio.Event()
            with suppress(ClientError):  # kept by the machine, or it shows in the records, which wait for this
                await self._add_partitions()
            self._adding.set()
            self._adding = None
            self._sender.wake()

    async def _add_partitions(self) -> None:
        """Ask until it is done, refused, or not wanted any more, which may take as long as the records have.

        Where it may have been done already it is asked on even then: only who knows that there is a transaction can
        tell the coordinator to end it. *Source:* Java's producer, which ends none before this is answered.
        """
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
        question = _Question(request, _partition_codes, "AddPartitionsToTxn", _ADD_PARTITIONS_VERSION_MAX, begins=True)
        attempts = _Attempts()
        while machine.to_add or (attempts.is_in_doubt and machine.state is not State.FATAL_ERROR):
            if await self._attempt(self._link, question, attempts) is not None:
                machine.added(partitions)
                return

    async def _stop_adding(self) -> None:
        """Wait until no partition is being added: one that came after the end would begin another transaction.

        Raises:
            ClientTimeoutError: The coordinator did not answer in `max.block.ms`.
        """
        self.machine.add_no_more()
        if self._adding is None:
            return
        with trio.move_on_after(self._max_block_ms / 1_000):
            await self._adding.wait()
            return
        raise ClientTimeoutError(
            f"AddPartitionsToTxn had no success within max.block.ms={self._max_block_ms}: what it asked for may be done"
        )


def _partition_codes(response: Any) -> Iterable[int]:
    return (
        item.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for item in topic.results_by_partition
    )


def _commit_codes(response: Any) -> Iterable[int]:
    return (item.error_code for topic in response.topics for item in topic.partitions)


_WORST_FIRST: Final = (Verdict.FENCED, Verdict.FATAL, Verdict.ABORT, Verdict.FIND, Verdict.AGAIN)


def _worst(codes: Iterable[int]) -> ErrorCode:
    """Return the code that decides what becomes of a request about several things.

    OPERATION_NOT_ATTEMPTED says that something else in the request was refused: that one's code decides for both, so
    that a topic which the coordinator does not know yet is waited for, whatever is asked for beside it.
    """
    failed = [code for code in map(error_code, codes) if code is not ErrorCode.NONE]
    reasons = [code for code in failed if code is not ErrorCode.OPERATION_NOT_ATTEMPTED]
    return min(reasons or failed, key=lambda code: _WORST_FIRST.index(judge(code)), default=ErrorCode.NONE)
