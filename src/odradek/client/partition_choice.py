"""Pure core: how a producer chooses partitions by its settings: which partitioner is asked for which record.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.types import TopicPartition

from .errors import ClientUsageError
from .partitioners import RoundRobinPartitioner, StickyPartitioner, partition_for_key
from .settings import check_methods, load_object

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from .accumulator import Accumulator
    from .cluster import Cluster, TopicInfo
    from .producer_settings import ProducerSettings

_ROUND_ROBIN: Final = "roundrobin"


@attrs.define
class PartitionChoice:
    """Chooses partitions for one producer."""

    _settings: ProducerSettings
    _accumulator: Accumulator
    _sticky: StickyPartitioner
    _partitioner: Any
    _now_ms: Callable[[], int]

    @classmethod
    def of(
        cls,
        settings: ProducerSettings,
        accumulator: Accumulator,
        random_source: random.Random,
        now_ms: Callable[[], int],
    ) -> PartitionChoice:
        """Read `partitioner.class` and its companions; `now_ms` is the monotonic clock.

        Raises:
            ConfigError: The partitioner cannot be imported, or is none.
        """
        given = settings.partitioner
        if given == _ROUND_ROBIN:
            given = RoundRobinPartitioner()
        elif isinstance(given, str):
            given = load_object("partitioner.class", given)
        elif isinstance(given, type):
            given = given()
        if given is not None:
            check_methods("partitioner.class", [given], "partition")
        sticky = StickyPartitioner(max(settings.batch_size_bytes, 1), settings.is_adaptive, random_source)
        return cls(settings, accumulator, sticky, given, now_ms)

    def is_sticky(self, key_bytes: bytes | None) -> bool:
        """Say whether a record that names no partition goes where the others without a key go."""
        return self._partitioner is None and (key_bytes is None or self._settings.ignores_keys)

    def choose(
        self,
        info: TopicInfo,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
    ) -> int:
        """Return the partition of a record that names none.

        Raises:
            ClientUsageError: The user's partitioner chose one that does not exist.
        """
        if self._partitioner is None:
            if key_bytes is None or self._settings.ignores_keys:
                return self._sticky.choose(info, {})
            return partition_for_key(key_bytes, len(info.partitions))
        number: int = self._partitioner.partition(info.name, key, key_bytes, value, value_bytes, cluster)
        if number not in info.partitions:
            raise ClientUsageError(
                f"the partitioner chose partition {number!r} of {info.name!r}, which has {len(info.partitions)}"
            )
        return number

    def appended(self, info: TopicInfo, size_bytes: int, *, ends_batch: bool, begins_batch: bool) -> None:
        """Take note of a record that went where the others without a key go.

        Args:
            info: Its topic.
            size_bytes: Its size.
            ends_batch: Whether another record like this would not fit into the batch.
            begins_batch: Whether it is the first of its batch.
        """
        if not (ends_batch or begins_batch):
            self._sticky.appended(info, size_bytes, ends_batch=False, queue_sizes={})
            return
        sizes = self._accumulator.queue_sizes(info.name) if self._settings.is_adaptive else {}
        excluded = self._unavailable(info)
        self._sticky.appended(info, size_bytes, ends_batch=ends_batch, queue_sizes=sizes, excluded=excluded)

    def _unavailable(self, info: TopicInfo) -> frozenset[int]:
        """Return partitions whose oldest batch waits longer than `partitioner.availability.timeout.ms`."""
        timeout_ms = self._settings.availability_timeout_ms
        if not timeout_ms or not self._settings.is_adaptive:
            return frozenset()
        now_ms = self._now_ms()
        waiting = (
            (number, self._accumulator.waits_since_ms(TopicPartition(info.name, number))) for number in info.partitions
        )
        return frozenset(number for number, since_ms in waiting if since_ms < now_ms - timeout_ms)
