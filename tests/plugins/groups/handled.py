"""The handlers of groups over one shard in a harness, and answers where a connection would be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from odradek.kernel.api import NO_PRODUCER, PENDING, ErrorCode, KafkaError, ProducerIdentity
from odradek.plugins.groups.handlers import group_handlers

from .driven import DrivenGroups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.kernel.api import ApiHandler, CoordinatorResult, CoordinatorRuntime, RequestContext, Waiter
    from odradek.plugins.groups.shard import GroupShard


class OneShardRuntime:
    """A runtime whose every partition is one shard.

    Attributes:
        error: What every operation is failed with, if anything.
        loading: Whether a shard still loads.
    """

    partitions_count = 2

    def __init__(self, driven: DrivenGroups) -> None:
        self._driven = driven
        self.error: KafkaError | None = None
        self.loading = False

    def partition_for(self, key: str) -> int:
        return len(key) % 2

    def submit(
        self,
        partition: int,
        operation: Callable[[GroupShard, int], CoordinatorResult[Any, Any]],
        waiter: Waiter,
        *,
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> None:
        if self.error is not None:
            waiter.fail(self.error)
            return
        ran = self._driven.harness.run(operation, producer)
        if ran.error is not None:
            waiter.fail(ran.error)
        elif ran.is_done:
            waiter.answer(ran.response)

    def submit_all(self, operation: Callable[[GroupShard, int], CoordinatorResult[Any, Any]], waiter: Waiter) -> None:
        if self.error is not None:
            waiter.fail(self.error)
        else:
            waiter.answer([self._driven.harness.run(operation).response])

    def is_loading(self) -> bool:
        return self.loading

    def shards(self) -> Iterator[tuple[int, GroupShard]]:
        yield 0, self._driven.shard


class Connection:
    client_host = "127.0.0.1"


class Context:
    """A request's context that keeps the answer."""

    def __init__(self, api_key: int, version: int, client_id: str | None = "client") -> None:
        self.api_key = api_key
        self.api_version = version
        self.client_id = client_id
        self.connection = Connection()
        self.answers: list[Any] = []

    def reply(self, response: Any) -> None:
        self.answers.append(response)


class HandledGroups:
    """Requests to the handlers."""

    def __init__(self, driven: DrivenGroups | None = None) -> None:
        self.driven = driven or DrivenGroups({"group.initial.rebalance.delay.ms": 0})
        self.runtime = OneShardRuntime(self.driven)
        runtime = cast("CoordinatorRuntime[GroupShard]", self.runtime)
        handlers = cast("tuple[ApiHandler, ...]", group_handlers(runtime, self.driven.broker))
        self.handlers = {handler.api_key: handler for handler in handlers}

    def ask(self, request: Any, version: int, client_id: str | None = "client") -> Context:
        """Send a request; return its context, answered or not."""
        key = type(request).__api_key__
        context = Context(key, version, client_id)
        answer = self.handlers[key].handle(request, cast("RequestContext", context))
        if answer is not PENDING:
            context.answers.append(answer)
        return context

    def answer(self, request: Any, version: int) -> Any:
        """Send a request and return its only answer."""
        (answer,) = self.ask(request, version).answers
        return answer

    def refused(self, request: Any, version: int, code: ErrorCode) -> Any:
        """Return what a handler answers when the router has to refuse."""
        key = type(request).__api_key__
        context = cast("RequestContext", Context(key, version))
        return self.handlers[key].error_response(request, context, code, "")
