"""Where epochs end in a log behind a snapshot, and what a leader tells a follower whose log ends somewhere.

*Source:* `ReplicatedLog.validateOffsetAndEpoch`, `KafkaMetadataLog.endOffsetForEpoch` of Kafka 4.3.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.kernel.contracts.log_values import EpochEnd
from odradek.kernel.contracts.storage import LogConfig, PartitionLog
from odradek.kernel.controller.snapshots import SnapshotId
from odradek.kernel.quorum.log_epochs import LogEpochs
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.testing.contracts.storage_base import make_context
from tests.quorum.quorum_world import PARTITION, batch_of


def log_of(directory: Path, *epochs: int, start_offset: int = 0) -> PartitionLog:
    """A log with one record of each of these epochs."""
    engine = MemoryEngine(make_context(directory))
    engine.start()
    log = engine.open_log(PARTITION, LogConfig())
    log.truncate_fully(start_offset)
    for offset, epoch in enumerate(epochs, start_offset):
        log.assign_epoch(epoch, offset)
        log.append(batch_of(b"x", offset, epoch), offset, offset, 0)
    log.write_pending()
    return log


@pytest.mark.parametrize(
    ("last_epoch", "offset", "told"),
    [
        (0, 0, None),  # an empty log
        (2, 2, None),
        (2, 1, None),
        (5, 4, None),
        (2, 3, EpochEnd(2, 2)),  # more of an epoch than there is here
        (3, 3, EpochEnd(2, 2)),  # an epoch that is not here
        (5, 5, EpochEnd(5, 4)),
        (7, 4, EpochEnd(5, 4)),  # newer than all
        (1, 1, EpochEnd(0, 0)),  # older than all
    ],
)
def test_a_leader_compares_a_followers_end_with_its_log(
    tmp_path: Path, last_epoch: int, offset: int, told: EpochEnd | None
) -> None:
    epochs = LogEpochs(log_of(tmp_path, 2, 2, 4, 5))

    assert (epochs.needs_snapshot(last_epoch, offset), epochs.diverges(last_epoch, offset)) == (False, told)


@pytest.mark.parametrize(
    ("last_epoch", "offset", "needs_snapshot"),
    [
        (0, 0, True),  # an empty log
        (4, 699, True),  # ends before
        (4, 700, False),
        (3, 700, True),  # what stands before is another
        (5, 700, True),
        (3, 800, True),  # an epoch older than what stands before
        (4, 701, False),
        (6, 702, False),
    ],
)
def test_who_cannot_go_on_from_a_log_behind_a_snapshot_needs_that(
    tmp_path: Path, last_epoch: int, offset: int, needs_snapshot: bool
) -> None:
    epochs = LogEpochs(log_of(tmp_path, 4, 6, start_offset=700), SnapshotId(700, 4))

    assert epochs.needs_snapshot(last_epoch, offset) == needs_snapshot


def test_what_is_older_than_a_log_ends_where_its_snapshot_does(tmp_path: Path) -> None:
    epochs = LogEpochs(log_of(tmp_path, 6, 6, start_offset=700), SnapshotId(700, 4))

    assert [epochs.end_of(epoch) for epoch in (4, 5, 6, 9)] == [
        EpochEnd(4, 700),
        EpochEnd(4, 700),
        EpochEnd(6, 702),
        EpochEnd(6, 702),
    ]
    assert epochs.diverges(5, 701) == EpochEnd(4, 700)


def test_an_empty_log_ends_in_the_epoch_of_its_snapshot(tmp_path: Path) -> None:
    behind = LogEpochs(log_of(tmp_path, start_offset=700), SnapshotId(700, 4))
    empty = LogEpochs(log_of(tmp_path))

    assert (behind.end, behind.end_of(4), behind.diverges(4, 700)) == (EpochEnd(4, 700), EpochEnd(4, 700), None)
    assert (empty.end, empty.diverges(0, 0), empty.diverges(3, 5)) == (EpochEnd(-1, 0), None, EpochEnd(0, 0))


def test_each_offset_has_an_epoch_before_it(tmp_path: Path) -> None:
    epochs = LogEpochs(log_of(tmp_path, 6, 6, 8, start_offset=700), SnapshotId(700, 4))

    assert [epochs.at(offset) for offset in range(700, 704)] == [4, 6, 6, 8]
