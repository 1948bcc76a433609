"""Shell: DescribeTransactions (65) and ListTransactions (66): what people ask about transactions.

*Source:* KIP-664; KIP-994 (duration); KIP-1152 (pattern); the answers of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.api import (
    AS_TASK,
    PENDING,
    ErrorCode,
    Gathered,
    ListPieces,
    PatternError,
    Slices,
    are_many,
    compile_pattern,
    run_at_once,
)
from odradek.kernel.wire.messages.api_65_describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
)
from odradek.kernel.wire.messages.api_65_describe_transactions import TransactionState as DescribedTransaction
from odradek.kernel.wire.messages.api_66_list_transactions import ListTransactionsResponse
from odradek.kernel.wire.messages.api_66_list_transactions import TransactionState as ListedTransaction

from .metadata import partitions_by_topic
from .requests import TransactionFilter
from .states import TransactionState
from .waiters import Told

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from odradek.kernel.api import Answer, CoordinatorRuntime, Pattern, RequestContext
    from odradek.kernel.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest
    from odradek.kernel.wire.messages.api_66_list_transactions import ListTransactionsRequest

    from .metadata import TransactionMetadata
    from .shard import TransactionShard

STATES_BY_NAME: Final = {state.text: state for state in TransactionState}


class DescribeTransactionsHandler:
    """Answers DescribeTransactions."""

    api_key = 65
    pieces = ListPieces("transactional_ids", answers=["transaction_states"], together="", once=True)

    def __init__(self, runtime: CoordinatorRuntime[TransactionShard]) -> None:
        self._runtime = runtime

    def handle(self, request: DescribeTransactionsRequest, context: RequestContext) -> Answer:
        """Answer with the transaction of every id."""
        ids = request.transactional_ids
        if not ids:
            return DescribeTransactionsResponse()
        gathered: Gathered[str, Any] = Gathered(
            ids,
            lambda described: context.reply(
                DescribeTransactionsResponse(transaction_states=[described[each] for each in ids])
            ),
        )
        for transactional_id in dict.fromkeys(ids):
            self._start(transactional_id, gathered)
        return PENDING

    def _start(self, transactional_id: str, gathered: Gathered[str, Any]) -> None:
        def tell(code: ErrorCode, metadata: TransactionMetadata | None) -> None:
            gathered.note(transactional_id, described(transactional_id, code, metadata))

        if not transactional_id:
            tell(ErrorCode.INVALID_REQUEST, None)
            return
        self._runtime.submit(
            self._runtime.partition_for(transactional_id),
            lambda shard, _: shard.describe(transactional_id),
            Told(tell),
        )

    def error_response(
        self, request: DescribeTransactionsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every id this error."""
        return DescribeTransactionsResponse(
            transaction_states=[described(each, code, None) for each in request.transactional_ids]
        )


def described(transactional_id: str, code: ErrorCode, metadata: TransactionMetadata | None) -> DescribedTransaction:
    """Return a transaction as DescribeTransactions tells it."""
    if metadata is None:
        return DescribedTransaction(error_code=code, transactional_id=transactional_id)
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=metadata.state.text,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_timestamp,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=indexes) for topic, indexes in partitions_by_topic(metadata.partitions)
        ],
    )


class ListTransactionsHandler:
    """Answers ListTransactions.

    Many are listed in slices, by a task: what they were at one moment, as their metadata are values. An expression may
    cost seconds against many ids, so it is matched in a task of its own, in portions; requests with expressions take
    turns, and between two portions the reactor serves everybody else.
    """

    api_key = 66

    def __init__(self, runtime: CoordinatorRuntime[TransactionShard]) -> None:
        self._runtime = runtime
        self._turn = trio.Lock()

    def handle(self, request: ListTransactionsRequest, context: RequestContext) -> Answer:
        """Answer with the transactions of every shard of this broker that fit the filters."""
        if self._runtime.is_loading():
            return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if request.transactional_id_pattern or are_many(len(shard.ids) for _, shard in self._runtime.shards()):
            return AS_TASK
        asked = _filter_of(request)

        def tell(code: ErrorCode, found: list[list[TransactionMetadata]] | None) -> None:
            every = [each for of_shard in found or () for each in of_shard]
            context.reply(run_at_once(_list_in_steps(request, code, every)))

        self._runtime.submit_all(lambda shard, now_ms: shard.list_transactions(asked, now_ms), Told(tell))
        return PENDING

    async def handle_async(self, request: ListTransactionsRequest, context: RequestContext) -> Answer:
        """Answer a request with an expression, or about many; if cancelled, nothing is left to undo.

        Raises:
            KafkaError: Of the runtime.
        """
        expression, asked, slices = request.transactional_id_pattern, _filter_of(request), Slices()
        try:
            pattern = compile_pattern(expression) if expression else None
        except PatternError:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        shards = await context.wait_aside(
            lambda: self._runtime.call_all(lambda shard, now_ms: shard.all_transactions(now_ms))
        )
        found = await slices.run(_sifted_in_steps(shards, asked))
        if pattern is not None:
            found = await self._matching(pattern, found)
        return await slices.run(_list_in_steps(request, ErrorCode.NONE, found))

    async def _matching(self, pattern: Pattern, found: Sequence[TransactionMetadata]) -> list[TransactionMetadata]:
        """Return those whose ids an expression matches."""
        by_id = {each.transactional_id: each for each in found}
        matching: list[str] = []
        sifted = pattern.sift(by_id)
        is_done = False
        while not is_done:
            async with self._turn:
                is_done = _did_portion(sifted, matching)
        return [by_id[each] for each in matching]

    def error_response(
        self, request: ListTransactionsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails."""
        return ListTransactionsResponse(error_code=code)


def _did_portion(sifted: Iterator[str | None], matching: list[str]) -> bool:
    """Move what matches to `matching`, up to the next pause; return whether nothing is left."""
    for each in sifted:
        if each is None:
            return False
        matching.append(each)
    return True


def _filter_of(request: ListTransactionsRequest) -> TransactionFilter:
    known: Any = frozenset(STATES_BY_NAME[name] for name in request.state_filters if name in STATES_BY_NAME)
    return TransactionFilter(
        producer_ids=frozenset(request.producer_id_filters) or None,
        states=known if request.state_filters else None,
        duration_ms=request.duration_filter,
    )


def _sifted_in_steps(
    shards: Iterable[tuple[int, Sequence[TransactionMetadata]]], asked: TransactionFilter
) -> Generator[None, None, list[TransactionMetadata]]:
    """Return what is asked for of all that shards had, each at its time."""
    found = []
    for now_ms, transactions in shards:
        for each in transactions:
            if asked.takes(each, now_ms):
                found.append(each)
            yield
    return found


def _list_in_steps(
    request: ListTransactionsRequest, code: ErrorCode, found: Iterable[TransactionMetadata]
) -> Generator[None, None, ListTransactionsResponse]:
    listed = []
    for each in found:
        listed.append(_listed(each))
        yield
    return ListTransactionsResponse(
        error_code=code,
        unknown_state_filters=[name for name in request.state_filters if name not in STATES_BY_NAME],
        transaction_states=listed,
    )


def _listed(metadata: TransactionMetadata) -> ListedTransaction:
    return ListedTransaction(
        transactional_id=metadata.transactional_id,
        producer_id=metadata.producer_id,
        transaction_state=metadata.state.text,
    )
