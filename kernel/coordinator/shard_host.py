"""Pure core: what a shard that is hosted has around it, and where it stands in its life."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..contracts.coordinator import Coordinator
    from ..machine.clock import Clock
    from ..partitions.replicas import Replicas
    from ..partitions.staged_writes import StagedWrites
    from ..purgatory.timing_wheel import TimingWheel
    from ..records.compression import CompressionType
    from .hosted_shard import HostedShard
    from .shard_queue import ShardQueue
    from .shard_timers import Computation


class ShardState(Enum):
    """Where a shard stands in its life; the names are Kafka's, for its metrics."""

    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


@frozen
class ShardHost:
    """What all shards of one coordinator share.

    Attributes:
        coordinator: The plugin's.
        replicas: The broker's.
        writes: Where batches are staged.
        clock: Both clocks.
        wheel: Timers.
        write_timeout_ms: How long a commit may take.
        compression: The codec of new batches.
        compute: Has something computed on a thread.
        note_busy: Called when something long is under way in a shard.
        note_dirty: Called when a shard has gathered its first record: `write_batch` is to be called soon.
        note_failed: Called when a shard closed because something failed.
    """

    coordinator: Coordinator[Any, Any]
    replicas: Replicas
    writes: StagedWrites
    clock: Clock
    wheel: TimingWheel
    write_timeout_ms: Callable[[], int]
    compression: Callable[[], CompressionType]
    compute: Callable[[Computation], None]
    note_busy: Callable[[ShardQueue], None]
    note_dirty: Callable[[HostedShard], None]
    note_failed: Callable[[HostedShard], None]
