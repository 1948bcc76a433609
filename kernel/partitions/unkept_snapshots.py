"""Shell: snapshots of many producers that were begun and are not written yet, as at a roll of a tiered log.

A roll comes with an append, which cannot wait until a million producers are written down. So the snapshot is begun
then, as the table is at that offset, and written in slices by the broker's upkeep; the segment that ends there is sent
to the remote store with it, not before. Few producers are written down at once.

What a crash takes of it is as if the roll had not been flushed: the segment goes without.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from ..machine.turnstile import SLICE_STEPS, run_at_once, run_in_slices
from .producer_snapshot import SNAPSHOT_KIND

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..contracts.storage import PartitionLog
    from ..machine.threads import Workers
    from .producer_table import ProducerStateTable
    from .replica import Replica

UNKEPT_MAX: Final = 4
"""How many may wait; while so many do, a roll writes its own at once."""


class UnkeptSnapshot(NamedTuple):
    """A snapshot at an offset; `steps`, which may be left and gone on with, return its file."""

    offset: int
    steps: Generator[None, None, bytes]


class UnkeptSnapshots:
    """Those of one replica, oldest first. Owned by the replica."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[UnkeptSnapshot] = deque()

    @property
    def first(self) -> UnkeptSnapshot | None:
        """The one to be written next."""
        return self._waiting[0] if self._waiting else None

    def begin(self, offset: int, producers: ProducerStateTable) -> bool:
        """Begin a snapshot of what is known now; return whether it waits: else it is brief, and to be written now."""
        if len(producers) <= SLICE_STEPS or len(self._waiting) == UNKEPT_MAX:
            return False
        self._waiting.append(UnkeptSnapshot(offset, producers.snapshot_in_steps()))
        return True

    def take(self) -> None:
        """Forget the first: it was written, or cannot be."""
        self._waiting.popleft()

    def write_all(self, partition_log: PartitionLog) -> None:
        """Write all of them, in one go.

        Raises:
            StorageError: One cannot be written.
        """
        while self._waiting:
            offset, steps = self._waiting.popleft()
            partition_log.write_sidecar(offset, SNAPSHOT_KIND, run_at_once(steps))


async def keep_first(replica: Replica, worker: Workers) -> None:
    """Write the first unkept snapshot of a replica. Cancelled: it waits as before, as far as it is.

    Raises:
        StorageError: It cannot be written; it is given up.
    """
    unkept = replica.unkept
    snapshot = unkept.first
    assert snapshot is not None
    data = await run_in_slices(snapshot.steps)
    try:
        partition_log = replica.log
        if (
            replica.unkept is unkept
            and replica.offline_reason is None
            and partition_log.log_end_offset >= snapshot.offset
        ):
            await worker.do(partition_log.begin_sidecar(snapshot.offset, SNAPSHOT_KIND, data))
    finally:
        if replica.unkept is unkept:  # else the log was truncated
            replica.note_first_kept()


async def keep_many_producers(replica: Replica, worker: Workers) -> None:
    """Keep the producers of a replica at its log's end if they are many, in slices: its end then has less to do.

    Raises:
        StorageError: They cannot be written.
    """
    while replica.unkept.first is not None:
        await keep_first(replica, worker)
    offset, unkept = replica.log.log_end_offset, replica.unkept
    if len(replica.producers) > SLICE_STEPS and offset not in replica.log.sidecars(SNAPSHOT_KIND):
        data = await run_in_slices(replica.producers.snapshot_in_steps())
        if replica.log.log_end_offset == offset and replica.unkept is unkept:
            await worker.do(replica.log.begin_sidecar(offset, SNAPSHOT_KIND, data))
