"""Shell: who waits for a shard's answers: clients, the broker's own requests, and what carries markers off."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odradek.kernel.api import ErrorCode, KafkaError, TransactionMarker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import CoordinatorRuntime, MarkerWriter, TopicPartition

    from .requests import MarkersWanted
    from .shard import TransactionShard


class Told:
    """A waiter that hands what it is told to a function of code and response; the response is None with an error."""

    __slots__ = ("_tell",)

    def __init__(self, tell: Callable[[ErrorCode, Any], None]) -> None:
        self._tell = tell

    def answer(self, response: Any) -> None:
        """Take the response."""
        self._tell(ErrorCode.NONE, response)

    def fail(self, error: KafkaError) -> None:
        """Take an error instead."""
        self._tell(error.code, None)


class MarkerSender:
    """Carries markers to the partitions once the end that they tell is committed, and the answers back to the shard.

    A waiter of the runtime. If its shard is gone, whoever coordinates next finds the prepared end in the log.
    """

    __slots__ = ("_partition", "_runtime", "_wanted", "_writer")

    def __init__(
        self,
        *,
        runtime: CoordinatorRuntime[TransactionShard],
        partition: int,
        writer: Callable[[], MarkerWriter],
        wanted: MarkersWanted,
    ) -> None:
        self._runtime = runtime
        self._partition = partition
        self._writer = writer
        self._wanted = wanted

    def answer(self, response: Any) -> None:
        """Have the markers written: what they tell is committed."""
        metadata = self._wanted.metadata
        coordinator_epoch = self._runtime.coordinator_epoch(self._partition)
        if coordinator_epoch < 0:
            return
        marker = TransactionMarker(
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            coordinator_epoch=coordinator_epoch,
            transaction_version=metadata.client_version,
            is_commit=metadata.is_commit,
            partitions=self._wanted.partitions,
        )
        self._writer().write(marker, self._written)

    def fail(self, error: KafkaError) -> None:
        """Try again later: the end is not known to be committed yet, so no marker may be written."""
        if error.code is not ErrorCode.NOT_COORDINATOR:
            self._written({})

    def _written(self, codes: Mapping[TopicPartition, ErrorCode]) -> None:
        wanted = self._wanted
        self._runtime.submit(
            self._partition, lambda shard, now_ms: shard.markers_answered(wanted, codes, now_ms), Told(_nobody_waits)
        )


def _nobody_waits(code: ErrorCode, response: Any) -> None:
    """A shard that does not take answers to its markers any more has lost its partition."""
