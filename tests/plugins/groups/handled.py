"""The handlers of groups over one shard in a harness, and answers where a connection would be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import trio

from odradek.kernel.api import AS_TASK, PENDING, ErrorCode
from odradek.plugins.groups.handlers import group_handlers
from odradek.testing.one_shard_runtime import OneShardRuntime
from tests.waiting_aside import wait_here

from .driven import DrivenGroups

if TYPE_CHECKING:
    from odradek.kernel.api import ApiHandler, AsyncApiHandler, RequestContext


class Connection:
    client_host = "127.0.0.1"


class Context:
    """A request's context that keeps the answer."""

    wait_aside = staticmethod(wait_here)

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

    def __init__(self, driven: DrivenGroups | None = None, *, partitions_count: int = 2) -> None:
        self.driven = driven or DrivenGroups({"group.initial.rebalance.delay.ms": 0})
        self.runtime = OneShardRuntime(lambda: self.driven.harness, partitions_count=partitions_count)
        handlers = cast("tuple[ApiHandler, ...]", group_handlers(self.runtime, self.driven.broker))
        self.handlers = {handler.api_key: handler for handler in handlers}

    def ask(self, request: Any, version: int, client_id: str | None = "client") -> Context:
        """Send a request; return its context, answered or not."""
        key = type(request).__api_key__
        context = Context(key, version, client_id)
        handler = self.handlers[key]
        answer = handler.handle(request, cast("RequestContext", context))
        if answer is AS_TASK:
            answer = trio.run(cast("AsyncApiHandler", handler).handle_async, request, cast("RequestContext", context))
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
