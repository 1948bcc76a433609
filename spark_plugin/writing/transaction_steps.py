"""Pure core: single steps of transactions, as generators that say what to ask of whom and are told the answer.

    steps = coordination.init_producer_id("odradek-...-3-0")
    step = next(steps)                 # Ask(kind, key, message) or Pause(ms)
    step = steps.send(response)        # or steps.throw(a ClientError), when no answer came

So whoever drives them decides what happens between two requests: a task asks its brokers (`run_steps`); a test lets the
process die at each of them, or another run of the same query come in between.

Two versions of the protocol, as for any producer. In version 1 partitions and groups are added to a transaction by
requests of their own. In version 2 (KIP-890, the cluster's feature `transaction.version`) brokers add them, and every
end raises the producer's epoch, so that nothing that comes late can touch the next transaction.

*Source:* KIP-98, KIP-447, KIP-890; `TransactionManager` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import attrs

from odradek.client.errors import (
    BrokerError,
    ClientTimeoutError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionFatalError,
)
from odradek.client.transactions.machine import Verdict, judge
from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from odradek.kernel.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest
from odradek.kernel.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.kernel.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest

if TYPE_CHECKING:
    from odradek.kernel.wire import Message

T = TypeVar("T")

_ADD_PARTITIONS_VERSION_MAX: Final = 3
"""Later versions are for brokers."""
_V1_END_VERSION_MAX: Final = 4
_V1_OFFSETS_VERSION_MAX: Final = 4
_OFFSET_FETCH_VERSION_MAX: Final = 9
"""The last version that names topics."""
_UNENDED: Final = frozenset({"Empty", "Ongoing"})
"""States of a transactional id whose producer may still write: nothing was decided."""
_PAUSES_MS: Final = (5, 10, 20, 50, 100)
"""A transaction that is about to end takes milliseconds, a coordinator that moves seconds: the last one repeats."""
_ADVICE: Final = {
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "grant Write and Describe on transactional ids that begin with "
    "'odradek-'",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "grant Read on groups that begin with 'odradek-'",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "grant Read on it too: offsets are committed under its name. Option "
    "exactlyOnceTopic names another one",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "kafka.transaction.timeout.ms is above the brokers' "
    "transaction.max.timeout.ms (15 minutes by default): lower the one or raise the other",
}


class CoordinatorKind(IntEnum):
    """What is coordinated: `key_type` of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


@attrs.frozen
class Ask:
    """A request to the coordinator of a group or a transactional id, whose response is wanted.

    Attributes:
        kind: What is coordinated.
        key: The group or the transactional id.
        message: The request.
        version_max: Speak no newer version.
    """

    kind: CoordinatorKind
    key: str
    message: Message
    version_max: int | None = None


@attrs.frozen
class Pause:
    """Wait so long."""

    duration_ms: int


Steps: TypeAlias = Generator[Ask | Pause, Any, T]


def run_steps(steps: Steps[T], ask: Callable[[Ask], Any], sleep_ms: Callable[[int], None]) -> T:
    """Drive steps to their end and return their result.

    Args:
        steps: What to do.
        ask: Asks a coordinator; raises `ClientError` when no answer came.
        sleep_ms: Waits.
    """
    try:
        step = next(steps)
        while True:
            if isinstance(step, Pause):
                sleep_ms(step.duration_ms)
                step = steps.send(None)
                continue
            try:
                response = ask(step)
            except ClientError as error:
                step = steps.throw(error)
            else:
                step = steps.send(response)
    except StopIteration as stop:
        result: T = stop.value
        return result


@attrs.frozen
class TransactionalProducer:
    """Who writes in a transaction; whoever knows all of it may end the transaction.

    Attributes:
        transactional_id: Its name.
        producer_id: As the coordinator gave it.
        producer_epoch: Likewise; an end by version 2 raises it, so that these values end one transaction only.
        is_v2: Which version of the protocol the transaction goes by; its end must go by the same.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_v2: bool


@attrs.frozen
class CommittedOffset:
    """What a group has committed for a partition.

    Attributes:
        offset: The offset.
        metadata: The text beside it.
    """

    offset: int
    metadata: str


def refused(code: ErrorCode, what: str, detail: str = "") -> BrokerError:
    """Return what to raise for a code that no repetition cures."""
    kind = {Verdict.FENCED: ProducerFencedError, Verdict.ABORT: TransactionAbortableError}
    advice = _ADVICE.get(code)
    text = f"{what}: {detail or code.text}"
    return kind.get(judge(code), TransactionFatalError)(code, f"{text} ({advice})" if advice else text)


@attrs.frozen
class Coordination:
    """How coordinators are spoken to; no state but this.

    Attributes:
        monotonic_ms: The time.
        is_v2: Whether transactions go by version 2.
        transaction_timeout_ms: When coordinators abort what was not ended.
        api_timeout_ms: How long a step may take in all.
        grace_ms: How long something that is pending is waited for where nothing depends on its end.
    """

    monotonic_ms: Callable[[], int]
    is_v2: bool
    transaction_timeout_ms: int
    api_timeout_ms: int = 60_000
    grace_ms: int = 500

    def init_producer_id(self, transactional_id: str) -> Steps[TransactionalProducer]:
        """Take a transactional id over: whoever had it is fenced, and its open transaction is aborted.

        Once this is done, all that was written in former transactions of the id is either committed, with its offsets
        to be seen, or never will be.

        Raises:
            BrokerError: The coordinator refuses.
            ClientTimeoutError: It took too long.
        """
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=self.transaction_timeout_ms
        )
        ask = Ask(CoordinatorKind.TRANSACTION, transactional_id, request)
        response = yield from self._ask(ask, lambda answer: (answer.error_code,), f"InitProducerId {transactional_id}")
        return TransactionalProducer(transactional_id, response.producer_id, response.producer_epoch, self.is_v2)

    def add_partitions(self, producer: TransactionalProducer, partitions: Collection[TopicPartition]) -> Steps[None]:
        """Tell the coordinator which partitions are about to be written; nothing to tell in version 2."""
        if producer.is_v2 or not partitions:
            return
        topics: dict[str, list[int]] = {}
        for topic, number in sorted(partitions):
            topics.setdefault(topic, []).append(number)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=numbers) for topic, numbers in topics.items()
            ],
        )
        ask = Ask(CoordinatorKind.TRANSACTION, producer.transactional_id, request, _ADD_PARTITIONS_VERSION_MAX)
        yield from self._ask(ask, _added_codes, f"AddPartitionsToTxn {producer.transactional_id}")

    def commit_offset(
        self, producer: TransactionalProducer, group_id: str, partition: TopicPartition, offset: CommittedOffset
    ) -> Steps[None]:
        """Have an offset of a group committed with the transaction; from now on it is pending."""
        if not producer.is_v2:
            add = AddOffsetsToTxnRequest(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                group_id=group_id,
            )
            ask = Ask(CoordinatorKind.TRANSACTION, producer.transactional_id, add)
            yield from self._ask(ask, lambda answer: (answer.error_code,), f"AddOffsetsToTxn {group_id}")
        commit = TxnOffsetCommitRequest(
            transactional_id=producer.transactional_id,
            group_id=group_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            member_id="",
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=partition.topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition.partition,
                            committed_offset=offset.offset,
                            committed_metadata=offset.metadata,
                        )
                    ],
                )
            ],
        )
        version_max = None if producer.is_v2 else _V1_OFFSETS_VERSION_MAX
        ask = Ask(CoordinatorKind.GROUP, group_id, commit, version_max)
        yield from self._ask(ask, _offset_codes, f"TxnOffsetCommit of group {group_id} under {partition}")

    def end(self, producer: TransactionalProducer, *, is_commit: bool) -> Steps[None]:
        """Commit or abort a transaction; may be repeated, also by another process.

        Raises:
            BrokerError: There is no such transaction any more: it was ended otherwise, or its producer is fenced. Of a
                commit by version 2 that is repeated after the next transaction began the same is said.
            ClientTimeoutError: Whether it was done is unknown.
        """
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=is_commit,
        )
        version_max = None if producer.is_v2 else _V1_END_VERSION_MAX
        ask = Ask(CoordinatorKind.TRANSACTION, producer.transactional_id, request, version_max)
        what = f"EndTxn ({'commit' if is_commit else 'abort'}) {producer.transactional_id}"
        yield from self._ask(ask, lambda answer: (answer.error_code,), what)

    def is_unended(self, transactional_id: str) -> Steps[bool]:
        """Say whether somebody has this id and a transaction under it that is open, or that was not begun yet.

        Raises:
            BrokerError: The coordinator refuses.
            ClientError: It is too old to say (Kafka before 3.0), or was not to be reached in time.
        """
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        ask = Ask(CoordinatorKind.TRANSACTION, transactional_id, request)
        response = yield from self._ask(ask, _described_codes, f"DescribeTransactions {transactional_id}")
        return any(found.transaction_state in _UNENDED for found in response.transaction_states)

    def committed_offset(
        self, group_id: str, partition: TopicPartition, *, is_stable: bool = True, timeout_ms: int | None = None
    ) -> Steps[CommittedOffset | None]:
        """Return what a group has committed.

        Args:
            group_id: The group.
            partition: Under which partition.
            is_stable: Whether to wait while a transaction has an offset pending.
            timeout_ms: How long one may be pending; when None, as long as transactions may last.

        Raises:
            ClientTimeoutError: One was pending for longer.
        """
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group_id,
                    topics=[OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.partition])],
                )
            ],
            require_stable=is_stable,
        )
        ask = Ask(CoordinatorKind.GROUP, group_id, request, _OFFSET_FETCH_VERSION_MAX)
        if timeout_ms is None:
            timeout_ms = self.api_timeout_ms + self.transaction_timeout_ms
        what = f"OffsetFetch of group {group_id} under {partition}"
        response = yield from self._ask(ask, _fetched_codes, what, timeout_ms)
        found = response.groups[0].topics[0].partitions[0]
        return None if found.committed_offset < 0 else CommittedOffset(found.committed_offset, found.metadata or "")

    def _ask(
        self, ask: Ask, codes_of: Callable[[Any], Iterable[int]], what: str, timeout_ms: int | None = None
    ) -> Steps[Any]:
        """Ask until it is done or refused."""
        deadline_ms = self.monotonic_ms() + (self.api_timeout_ms if timeout_ms is None else timeout_ms)
        failures_count = 0
        while True:
            try:
                response = yield ask
            except ClientError as error:
                if not error.retriable:
                    raise
                last = str(error)
            else:
                code = next((error_code(number) for number in codes_of(response) if number), ErrorCode.NONE)
                if code is ErrorCode.NONE:
                    return response
                if judge(code) not in {Verdict.AGAIN, Verdict.FIND}:
                    raise refused(code, what)
                last = f"{code.name}: {code.text}"
            if self.monotonic_ms() >= deadline_ms:
                raise ClientTimeoutError(f"{what}: no success in time; last obstacle: {last}")
            yield Pause(_PAUSES_MS[min(failures_count, len(_PAUSES_MS) - 1)])
            failures_count += 1


def _described_codes(response: Any) -> Iterable[int]:
    codes = (found.error_code for found in response.transaction_states)
    return (code for code in codes if code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


def _added_codes(response: Any) -> Iterable[int]:
    return (
        found.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for found in topic.results_by_partition
    )


def _offset_codes(response: Any) -> Iterable[int]:
    return (found.error_code for topic in response.topics for found in topic.partitions)


def _fetched_codes(response: Any) -> Iterable[int]:
    for group in response.groups:
        yield group.error_code
        for topic in group.topics:
            for found in topic.partitions:
                yield found.error_code
