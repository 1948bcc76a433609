"""The whole coordinator over one shard in a harness: requests in, answers where a connection would be, markers kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import trio

from odradek.kernel.api import (
    AS_TASK,
    NO_PRODUCER,
    PENDING,
    ErrorCode,
    KafkaError,
    ProducerIdentity,
    TopicPartition,
    TopicView,
)
from odradek.kernel.config.keys import Scope
from odradek.kernel.config.registry import Registry
from odradek.kernel.ids import ZERO_ID
from odradek.kernel.testing.shard_harness import ShardHarness
from odradek.plugins.transactions.coordinator import TransactionCoordinator
from odradek.plugins.transactions.metadata import TransactionRecord
from odradek.plugins.transactions.shard import TransactionShard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from odradek.kernel.api import (
        ApiHandler,
        AsyncApiHandler,
        BrokerHandle,
        CoordinatorResult,
        CoordinatorRuntime,
        RequestContext,
        TransactionMarker,
        Waiter,
    )


class OneShardRuntime:
    """A runtime whose every partition is one shard.

    Attributes:
        error: What every operation is failed with, if anything.
        refuses_writes: Whether records are refused: an operation runs, and nothing of it is replayed.
        epoch: The coordinator epoch.
    """

    partitions_count = 3

    def __init__(self) -> None:
        self.harness: ShardHarness[TransactionShard, TransactionRecord]
        self.error: KafkaError | None = None
        self.refuses_writes = False
        self.loading = False
        self.epoch = 7

    def partition_for(self, key: str) -> int:
        return len(key) % 3

    def submit(
        self,
        partition: int,
        operation: Callable[[TransactionShard, int], CoordinatorResult[Any, Any]],
        waiter: Waiter,
        *,
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> None:
        if self.error is not None:
            waiter.fail(self.error)
            return
        if self.refuses_writes:
            self._refuse(operation, waiter)
            return
        ran = self.harness.run(operation, producer)
        if ran.error is not None:
            waiter.fail(ran.error)
        else:
            waiter.answer(ran.response)

    def _refuse(
        self, operation: Callable[[TransactionShard, int], CoordinatorResult[Any, Any]], waiter: Waiter
    ) -> None:
        result = operation(self.harness.shard, self.harness.now_ms)
        if not result.records:
            waiter.answer(result.response)
            return
        error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for each in (waiter, *(other for other, _ in result.answers)):
            each.fail(error)

    def submit_all(
        self, operation: Callable[[TransactionShard, int], CoordinatorResult[Any, Any]], waiter: Waiter
    ) -> None:
        if self.error is not None:
            waiter.fail(self.error)
        else:
            waiter.answer([self.harness.run(operation).response])

    def is_loading(self) -> bool:
        return self.loading

    def coordinator_epoch(self, partition: int) -> int:
        return self.epoch

    def shards(self) -> Iterator[tuple[int, TransactionShard]]:
        yield 0, self.harness.shard


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
    """As much of a broker as the plugin asks for: the defaults, topics `t` (3 partitions), producer ids from 0."""

    def __init__(self) -> None:
        self.config = self
        self.cluster = self
        self.marker_writer = MarkerKeeper()
        self.topics = {"t": 3}
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

    def __init__(self, version: int) -> None:
        self.api_version = version
        self.answers: list[Any] = []

    def reply(self, response: Any) -> None:
        self.answers.append(response)


class HandledTransactions:
    """A coordinator, its broker, its runtime, its handlers."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.runtime = OneShardRuntime()
        self.coordinator = TransactionCoordinator(cast("BrokerHandle", self.broker))
        runtime = cast("CoordinatorRuntime[TransactionShard]", self.runtime)
        handlers = cast("tuple[ApiHandler, ...]", self.coordinator.handlers(runtime))
        self.handlers = {handler.api_key: handler for handler in handlers}
        self.runtime.harness = self.harness = ShardHarness.of(self.coordinator, snapshot=lambda shard: dict(shard.ids))
        self.face = self.coordinator.transactions(runtime)
        self.metrics = {metric.name: metric for metric in self.coordinator.metrics(runtime)}

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
