"""Shell: which partitions could not be opened, why, and which of them are being tried again.

A partition stands here from the first failure until its replica serves, its topic is deleted, or it is another
broker's. It is tried again in slices, and meanwhile its state in the metadata may change: the newest counts.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..classes import define
from ..contracts.culprits import is_bug
from ..errors import ErrorCode, PluginError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from ..contracts.election import PartitionState
    from ..types import TopicIdPartition

log = logging.getLogger(__name__)


@define
class _Failure:
    """A replica that could not be opened: what it is to become, why it is not there, what clients are told."""

    state: PartitionState
    reason: str
    code: ErrorCode


class FailedLogs:
    """Those of one broker. Owned by the broker's replicas, on the reactor's task."""

    def __init__(self) -> None:
        self._failures: dict[TopicIdPartition, _Failure] = {}
        self._opening: set[TopicIdPartition] = set()

    def __iter__(self) -> Iterator[TopicIdPartition]:
        return iter(list(self._failures))

    def note(self, partition: TopicIdPartition, state: PartitionState, error: Exception) -> None:
        """Take note of why a partition cannot be opened; it is tried again and again, and each reason is told once."""
        known = self._failures.get(partition)
        is_expected = isinstance(error, StorageError | PluginError)  # else a plugin's bug: its partition pays
        reason = str(error) if is_expected else repr(error)
        if known is None or known.reason != reason:
            if is_expected:
                log.error("partition %s is offline: %s", partition, reason)
            else:
                log.error("partition %s is offline", partition, exc_info=error)
        # clients try again what may pass, as a disk may come back, and not a bug
        code = ErrorCode.UNKNOWN_SERVER_ERROR if is_bug(error) else ErrorCode.KAFKA_STORAGE_ERROR
        self._failures[partition] = _Failure(state, reason, code)

    def forget(self, partition: TopicIdPartition) -> bool:
        """Forget a partition; return whether it was here."""
        return self._failures.pop(partition, None) is not None

    def forget_topic(self, topic_id: UUID) -> None:
        """Forget all partitions of a topic."""
        for partition in [each for each in self._failures if each.topic_id == topic_id]:
            del self._failures[partition]

    def code(self, partition: TopicIdPartition) -> ErrorCode | None:
        """Return what clients are told of a partition that is here."""
        failure = self._failures.get(partition)
        return failure.code if failure is not None else None

    def state(self, partition: TopicIdPartition) -> PartitionState | None:
        """Return the newest state of a partition that is here."""
        failure = self._failures.get(partition)
        return failure.state if failure is not None else None

    @contextmanager
    def opening(self, partition: TopicIdPartition) -> Iterator[None]:
        """Say that a partition that is here is being opened inside."""
        self._opening.add(partition)
        try:
            yield
        finally:
            self._opening.discard(partition)

    def note_state(self, partition: TopicIdPartition, state: PartitionState) -> bool:
        """Take a new state for a partition that is being opened; return False for any other."""
        if partition not in self._opening or partition not in self._failures:
            return False
        self._failures[partition].state = state
        return True
