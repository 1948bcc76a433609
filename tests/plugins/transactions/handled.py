"""The whole coordinator over one shard in a harness: requests in, answers where a connection would be, markers kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import trio

from odradek.kernel.api import (
    AS_TASK,
    PENDING,
    ErrorCode,
    KafkaError,
    TopicPartition,
    TopicView,
)
from odradek.kernel.config.keys import Scope
from odradek.kernel.config.registry import Registry
from odradek.kernel.types import ZERO_ID
from odradek.plugins.transactions.coordinator import TransactionCoordinator
from odradek.testing.one_shard_runtime import OneShardRuntime
from odradek.testing.shard_harness import ShardHarness
from tests.waiting_aside import wait_here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.kernel.api import (
        ApiHandler,
        AsyncApiHandler,
        BrokerHandle,
        RequestContext,
        TransactionMarker,
    )


class MarkerKeeper:
    """A marker writer whose markers a test answers."""

    def __init__(self) -> None:
        self.markers: list[tuple[TransactionMarker, Callable[[Mapping[TopicPartition, ErrorCode]], None]]] = []

    def write(self, marker: TransactionMarker, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        self.markers.append((marker, done))

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> TransactionMarker:
        """Answer the oldest marker, and return it."""
        marker, done = self.markers.pop(0)
        done(dict.fromkeys(marker.partitions, code))
        return marker


class Broker:
    """As much of a broker as the plugin asks for: the defaults, topic `t` (3 partitions) and its own, ids from 0."""

    def __init__(self) -> None:
        self.config = self
        self.cluster = self
        self.marker_writer = MarkerKeeper()
        self.topics = {"t": 3, "__transaction_state": 50}
        self.version = 2
        self.id_error: KafkaError | None = None
        self._next_id = 0
        self._keys = Registry.of().keys[Scope.BROKER]

    def get_int(self, name: str) -> int:
        return cast("int", self._keys[name].default)

    def topic(self, name: str) -> TopicView | None:
        count = self.topics.get(name)
        return None if count is None else TopicView(name, ZERO_ID, count)

    def feature_level(self, name: str) -> int:
        assert name == "transaction.version"
        return self.version

    async def new_producer_id(self) -> int:
        await trio.lowlevel.checkpoint()
        if self.id_error is not None:
            raise self.id_error
        self._next_id += 1
        return self._next_id - 1


class Context:
    """A request's context that keeps the answers."""

    wait_aside = staticmethod(wait_here)

    def __init__(self, version: int) -> None:
        self.api_version = version
        self.answers: list[Any] = []

    def reply(self, response: Any) -> None:
        self.answers.append(response)


class HandledTransactions:
    """A coordinator, its broker, its runtime, its handlers."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.coordinator = TransactionCoordinator(cast("BrokerHandle", self.broker))
        self.runtime = OneShardRuntime(lambda: self.harness)
        handlers = cast("tuple[ApiHandler, ...]", self.coordinator.handlers(self.runtime))
        self.handlers = {handler.api_key: handler for handler in handlers}
        self.harness = ShardHarness.of(self.coordinator, snapshot=lambda shard: dict(shard.ids))
        self.face = self.coordinator.transactions(self.runtime)
        self.metrics = {metric.name: metric for metric in self.coordinator.metrics(self.runtime)}

    def ask(self, request: Any, version: int) -> Any:
        """Send a request and return its only answer."""
        context = Context(version)
        handler = self.handlers[type(request).__api_key__]
        answer = handler.handle(request, cast("RequestContext", context))
        if answer is AS_TASK:
            answer = trio.run(cast("AsyncApiHandler", handler).handle_async, request, cast("RequestContext", context))
        if answer is not PENDING:
            context.answers.append(answer)
        (only,) = context.answers
        return only

    def refused(self, request: Any, version: int, code: ErrorCode) -> Any:
        """Return what a handler answers when the router has to refuse."""
        context = cast("RequestContext", Context(version))
        return self.handlers[type(request).__api_key__].error_response(request, context, code, "")

    async def init(self, request: Any, version: int = 5) -> Any:
        """Send InitProducerId and return its only answer."""
        context = Context(version)
        answer = await self.face.init_producer_id(request, cast("RequestContext", context))
        if answer is not PENDING:
            context.answers.append(answer)
        (only,) = context.answers
        return only

    def metric(self, name: str) -> Mapping[tuple[str, ...], float]:
        """Read a metric."""
        return self.metrics[name].read()
