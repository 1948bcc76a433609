"""Pure core: a coordinator's runtime over the one shard of a harness: for tests of handlers, without a broker.

    runtime = OneShardRuntime(lambda: harness)
    handler = coordinator.handlers(runtime)[0]
    harness = ShardHarness.of(coordinator)
    handler.handle(request, context)

An operation is done, committed and answered before `submit` returns, unless the shard parks its waiter.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from odradek.kernel.contracts.coordinator import NO_PRODUCER, CoordinatorShard, ProducerIdentity
from odradek.kernel.errors import ErrorCode, KafkaError

from .shard_harness import LoggedMarker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.kernel.contracts.coordinator import Decided, Waiter

    from .shard_harness import ShardHarness

Record = TypeVar("Record")
Shard = TypeVar("Shard", bound=CoordinatorShard[Any])


class OneShardRuntime(Generic[Shard, Record]):
    """A `CoordinatorRuntime` whose every partition is one shard. The harness's `refusal` refuses its records.

    Attributes:
        error: What every operation is failed with, None for nothing.
        loading: Whether a shard still loads.
        epoch: The coordinator epoch of every partition, negative where it has no coordinator here.
    """

    def __init__(self, harness: Callable[[], ShardHarness[Shard, Record]], *, partitions_count: int = 3) -> None:
        """Take a harness.

        Args:
            harness: Returns it: a coordinator may want its runtime before it makes shards.
            partitions_count: How many partitions the topic seems to have, > 0.
        """
        self._harness = harness
        self.partitions_count = partitions_count
        self.error: KafkaError | None = None
        self.loading = False
        self.epoch = 7

    def partition_for(self, key: str) -> int:
        """Return a partition; another one for most keys of another length."""
        return len(key) % self.partitions_count

    def submit(
        self,
        partition: int,
        operation: Callable[[Shard, int], Decided],
        waiter: Waiter,
        *,
        producer: ProducerIdentity = NO_PRODUCER,
        verified: int | None = None,
    ) -> None:
        """Run an operation; see `CoordinatorRuntime.submit`. A waiter that the operation parks is told nothing."""
        if self.error is not None:
            waiter.fail(self.error)
            return
        if verified is not None and verified != self.begin_verification(partition, producer, may_add=False):
            waiter.fail(KafkaError(ErrorCode.INVALID_TXN_STATE))
            return
        ran = self._harness().run(operation, producer)
        if ran.error is not None:
            waiter.fail(ran.error)
        elif ran.is_done:
            waiter.answer(ran.response)

    def begin_verification(self, partition: int, producer: ProducerIdentity, *, may_add: bool) -> int:
        """Return how many transactions of the producer have ended: with one more, what was verified is refused."""
        del partition, may_add
        if self.error is not None:
            raise self.error
        ends = (entry.producer for entry in self._harness().log if isinstance(entry, LoggedMarker))
        return sum(ended.producer_id == producer.producer_id for ended in ends)

    def submit_all(self, operation: Callable[[Shard, int], Decided], waiter: Waiter) -> None:
        """Run an operation on the shard, and answer with a list of its response."""
        if self.error is not None:
            waiter.fail(self.error)
        else:
            waiter.answer([self._harness().run(operation).response])

    async def call(
        self,
        partition: int,
        operation: Callable[[Shard, int], Decided],
        *,
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> Any:
        """Run an operation and return its response.

        Raises:
            KafkaError: `error`, or what the operation raised.
        """
        del partition
        if self.error is not None:
            raise self.error
        ran = self._harness().run(operation, producer)
        if ran.error is not None:
            raise ran.error
        assert ran.is_done, "an operation that is waited for does not park"
        return ran.response

    async def call_all(self, operation: Callable[[Shard, int], Decided]) -> list[Any]:
        """Run an operation on the shard and return its response.

        Raises:
            KafkaError: `error`, or what the operation raised.
        """
        return [await self.call(0, operation)]

    def is_loading(self) -> bool:
        """Return `loading`."""
        return self.loading

    def shards(self) -> Iterator[tuple[int, Shard]]:
        """Iterate over the shard, as that of partition 0."""
        yield 0, self._harness().shard

    def coordinator_epoch(self, partition: int) -> int:
        """Return `epoch`."""
        del partition
        return self.epoch
