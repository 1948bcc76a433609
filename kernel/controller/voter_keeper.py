"""Shell: what an election among voters wants of the metadata log's disk: its hard state, its control records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classes import frozen
from ..records.control import build_control_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..contracts.disk_work import DiskWork
    from ..contracts.storage import PartitionLog
    from ..records.control import KRaftControlRecord
    from .quorum_state import QuorumState


@frozen
class VoterKeeper:
    """`Keeper` of one log. Owned by the log's task.

    Attributes:
        log: The partition's.
        state: The file beside it.
        now_ms: The wall clock: it stamps records.
        appended: Called with a batch's first offset and its records, as soon as it stands in the log.
    """

    log: PartitionLog
    state: QuorumState
    now_ms: Callable[[], int]
    appended: Callable[[int, Sequence[KRaftControlRecord]], object] | None = None

    @property
    def flushed_offset(self) -> int:
        """See `Keeper.flushed_offset`."""
        return self.log.recovery_point

    def begin_keep(self, hard_state: bytes) -> DiskWork:
        """See `Keeper.begin_keep`."""
        return self.state.begin_keep(hard_state)

    def begin_append(self, records: Sequence[KRaftControlRecord], leader_epoch: int) -> DiskWork:
        """See `Keeper.begin_append`.

        Raises:
            StorageError: The disk is full or failing; the log is offline.
        """
        now_ms, base_offset = self.now_ms(), self.log.log_end_offset
        batch = build_control_batch(
            records, timestamp=now_ms, base_offset=base_offset, partition_leader_epoch=leader_epoch
        )
        self.log.assign_epoch(leader_epoch, base_offset)
        self.log.append(batch, base_offset, base_offset + len(records) - 1, now_ms)
        self.log.write_pending()
        if self.appended is not None:
            self.appended(base_offset, records)
        return self.log.begin_flush()
