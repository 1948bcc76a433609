"""Pure core: what the handlers have in common: who asks, who waits, and answers that are put together of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.kernel.api import PENDING, ErrorCode, Gathered

from ..group import Caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import (
        Answer,
        BrokerHandle,
        CoordinatorRuntime,
        KafkaError,
        RequestContext,
    )

    from ..group import Decided
    from ..shard import GroupShard

    GroupOperation = Callable[[GroupShard, int], Decided]

NO_GROUP_ID = ""


def caller_of(context: RequestContext) -> Caller:
    """Return who sent a request, as groups remember it."""
    return Caller(
        client_id=context.client_id or "",
        client_host=f"/{context.connection.client_host}",
        api_version=context.api_version,
    )


class Reply:
    """The waiter of a request that one operation answers."""

    __slots__ = ("_build", "_context", "_refuse")

    def __init__(
        self,
        context: RequestContext,
        refuse: Callable[[ErrorCode, str], Answer],
        build: Callable[[Any], Answer] | None = None,
    ) -> None:
        """Make it.

        Args:
            context: The request.
            refuse: Makes the answer of an error.
            build: Makes the answer of the operation's response; None if that is the answer already.
        """
        self._context = context
        self._refuse = refuse
        self._build = build

    def answer(self, response: Any) -> None:
        """Answer the request."""
        self._context.reply(response if self._build is None else self._build(response))

    def fail(self, error: KafkaError) -> None:
        """Answer the request with an error."""
        self._context.reply(self._refuse(error.code, error.detail))


class Gathering:
    """Parts of an answer that come one by one, in no order; the last one sends it.

    Make it, ask for a waiter for each part, then `seal` it.
    """

    __slots__ = ("_count", "_gathered")

    def __init__(self, done: Callable[[list[Any]], None]) -> None:
        """Make it; `done` gets the parts in the order of their waiters."""
        self._gathered: Gathered[int, Any] = Gathered((), lambda parts: done(list(parts.values())), is_open=True)
        self._count = 0

    def add(self, value: Any) -> None:
        """Add a part that is there already."""
        self._gathered.note(self._next(), value)

    def waiter(self, refuse: Callable[[ErrorCode, str], Any], build: Callable[[Any], Any]) -> PartWaiter:
        """Return the waiter of the next part; see `Reply` for the arguments."""
        return PartWaiter(self._gathered, self._next(), refuse, build)

    def seal(self) -> None:
        """Say that all waiters are given out."""
        self._gathered.seal()

    def _next(self) -> int:
        index = self._count
        self._count += 1
        self._gathered.expect(index)
        return index


class PartWaiter:
    """The waiter of one part of a `Gathering`."""

    __slots__ = ("_build", "_gathered", "_index", "_refuse")

    def __init__(
        self,
        gathered: Gathered[int, Any],
        index: int,
        refuse: Callable[[ErrorCode, str], Any],
        build: Callable[[Any], Any],
    ) -> None:
        """Make it; see `Gathering.waiter`."""
        self._gathered = gathered
        self._index = index
        self._refuse = refuse
        self._build = build

    def answer(self, response: Any) -> None:
        """Give the part."""
        self._gathered.note(self._index, self._build(response))

    def fail(self, error: KafkaError) -> None:
        """Give the part of an error."""
        self._gathered.note(self._index, self._refuse(error.code, error.detail))


class GroupHandler:
    """The base of handlers: each asks shards of the runtime to run operations."""

    def __init__(self, runtime: CoordinatorRuntime[GroupShard], broker: BrokerHandle) -> None:
        """Make the handler of a broker."""
        self._runtime = runtime
        self._broker = broker

    def _submit(self, group_id: str, operation: GroupOperation, waiter: Reply | PartWaiter) -> Answer:
        """Have the shard of a group run an operation; return `PENDING`."""
        self._runtime.submit(self._runtime.partition_for(group_id), operation, waiter)
        return PENDING
