"""Shell: a Produce for very many partitions, or many new ones: looked at, staged and written a slice at a time.

Each partition costs some ten microseconds and a write of its own, and 10,000 fit into a megabyte. So the router runs
such a request as a task, which cuts it into requests for a few partitions each. All are looked at before the first is
staged, since what is wrong with one batch may refuse the whole request; all are staged before the first answer is
waited for, so that acks=all waits once::

    look at | ... | look at | stage | (turn: write) | stage | (turn: write) | ... | wait for all | answer

The first batch of a partition may have to make its log, which takes up to half a millisecond (decision 0028). So where
a request brings first batches to many, it is cut as well, and finer.

Between two slices stands the turnstile. The connection takes no further request meanwhile, and the records count as
lent memory.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import trio

from ..contracts.api_handler import PENDING
from ..contracts.pieces import ListPieces
from ..errors import ErrorCode, KafkaError
from ..machine.turnstile import take_turn
from ..partitions.staged_writes import FIRST_BATCHES_MAX
from .long_requests import PieceContext
from .produce_messages import merge_doubled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..contracts.api_handler import Answer, RequestContext
    from ..partitions.replicas import Replicas
    from ..wire.messages.api_00_produce import ProduceRequest, ProduceResponse
    from .produce_admission import TransactionalPart

    Refusal: TypeAlias = tuple[ErrorCode, str | None]
    """What every partition of a request is answered."""

FIRST_VERSION_WITH_IDS: Final = 13
AT_ONCE_MAX: Final = 100
"""How many partitions a request may have to be staged in the turn in which it came."""
PARTITIONS_PER_SLICE: Final = 50
STAGING_S_MAX: Final = 30.0
"""How long staging may take where nobody waits for it any more, as the client or the broker goes."""


def _pieces(partitions_max: int) -> ListPieces:
    return ListPieces("topic_data.partition_data", answers=["responses.partition_responses"], items_max=partitions_max)


PIECES: Final = _pieces(PARTITIONS_PER_SLICE)
FINE_PIECES: Final = _pieces(FIRST_BATCHES_MAX)


class Producing(Protocol):
    """The handler of Produce, as far as it takes part."""

    def look_at(self, request: ProduceRequest, version: int) -> tuple[list[TransactionalPart], Refusal | None]:
        """Return what is transactional of a request, and why all of it is refused."""
        ...

    def refusal_of(self, parts: list[TransactionalPart]) -> Refusal | None:
        """Return why the transactional parts of a request cannot stand together."""
        ...

    def refuse_all(self, request: ProduceRequest, context: RequestContext, refusal: Refusal) -> Answer:
        """Return what a request is answered that is refused."""
        ...

    def stage(self, request: ProduceRequest, context: RequestContext) -> Answer:
        """Have what is transactional admitted, then stage every batch."""
        ...


def is_wide(request: ProduceRequest, version: int, replicas: Replicas) -> bool:
    """Return whether a request is to be staged in slices: it has very many batches, or the first of many partitions."""
    count = sum([len(topic.partition_data) for topic in request.topic_data])
    return count > AT_ONCE_MAX or (count > FIRST_BATCHES_MAX and _makes_many(request, version, replicas))


def _makes_many(request: ProduceRequest, version: int, replicas: Replicas) -> bool:
    """Return whether too many logs would be made in one turn. Looks at the partitions only while some are unmade."""
    if replicas.unmade_logs_count() <= FIRST_BATCHES_MAX:
        return False
    count = 0
    for topic in request.topic_data:
        by_id = version >= FIRST_VERSION_WITH_IDS
        known = replicas.topics_by_id.get(topic.topic_id) if by_id else replicas.topics.get(topic.name)
        if known is not None:
            found = map(known.partitions.get, [part.index for part in topic.partition_data])
            count += sum([replica is not None and not replica.appended_offset for replica in found])
    return count > FIRST_BATCHES_MAX


async def produce_in_slices(
    handler: Producing, request: ProduceRequest, context: RequestContext, replicas: Replicas
) -> Answer:
    """Stage a request slice by slice, and return its answer, or `PENDING` if there is none.

    What came is staged also if the client leaves: with acks=0 it has no reason to stay. Cancelled: the batches are
    staged, and nobody is answered.

    Raises:
        KafkaError: The broker ends, and has no time for it.
    """
    size_bytes = sum(len(part.records or b"") for topic in request.topic_data for part in topic.partition_data)
    context.connection.keep_memory(size_bytes)
    staged: list[tuple[Answer, PieceContext]] | None = None
    try:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + STAGING_S_MAX):
            merged = copy(request)
            merged.topic_data = merge_doubled(request.topic_data)
            cut = FINE_PIECES if _makes_many(merged, context.api_version, replicas) else PIECES
            pieces, refusal = await _look_at(handler, cut.split(merged), context.api_version)
            if refusal is not None:
                return handler.refuse_all(request, context, refusal)
            staged = await _stage(handler, pieces, context)
    finally:
        context.connection.let_memory_go(size_bytes)
    if staged is None:  # the time was over
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    return await _join(staged, context)


async def _look_at(
    handler: Producing, cut: Iterator[ProduceRequest | None], version: int
) -> tuple[list[ProduceRequest], Refusal | None]:
    pieces: list[ProduceRequest] = []
    parts: list[TransactionalPart] = []
    for piece in cut:
        if piece is None:
            continue
        await take_turn()
        found, refusal = handler.look_at(piece, version)
        if refusal is not None:
            return [], refusal
        pieces.append(piece)
        parts += found
    return pieces, handler.refusal_of(parts)


async def _stage(
    handler: Producing, pieces: list[ProduceRequest], context: RequestContext
) -> list[tuple[Answer, PieceContext]]:
    staged = []
    for piece in pieces:
        await take_turn()
        part = PieceContext(context)
        staged.append((handler.stage(piece, part), part))
    return staged


async def _join(staged: list[tuple[Answer, PieceContext]], context: RequestContext) -> Answer:
    pending = [part for answer, part in staged if answer is PENDING]

    async def all_answered() -> None:
        for part in pending:
            await part.wait()

    if pending:
        await context.wait_aside(all_answered)
    whole: ProduceResponse | None = None
    for answer, part in staged:
        found = part.response if answer is PENDING else answer
        if part.failure:
            context.fail(part.failure)
            return PENDING
        if whole is None:
            whole = found
        elif found is not None:
            PIECES.join(whole, found)
    return whole
