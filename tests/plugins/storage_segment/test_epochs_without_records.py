"""A leader epoch is written down when its first record is flushed: a start, which raises them all, writes nothing."""

from pathlib import Path

from odradek.kernel.api import LogConfig, PartitionLog
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.batches import make_batch
from odradek.testing.contracts.storage_base import all_bytes, fill

from .test_segment_engine import partition, started

EPOCHS = "leader-epoch-checkpoint"


def opened(directory: Path) -> tuple[SegmentEngine, PartitionLog]:
    engine = started(directory)
    return engine, engine.open_log(partition(0), LogConfig())


def epochs_file(log: PartitionLog) -> Path:
    assert log.directory is not None
    return log.directory / EPOCHS


def test_an_epoch_is_written_with_the_flush_of_its_first_record_and_not_before(tmp_path: Path) -> None:
    engine, log = opened(tmp_path)
    log.assign_epoch(3, 0)
    log.flush()
    assert (log.latest_epoch, epochs_file(log).exists()) == (3, False)

    fill(log, 0, 5, epoch=3)
    log.flush()
    engine.abandon()

    assert epochs_file(log).read_bytes() == b"0\n1\n3 0\n"


def test_an_epoch_of_records_that_were_not_flushed_is_found_in_them_after_a_death(tmp_path: Path) -> None:
    engine, log = opened(tmp_path)
    log.assign_epoch(3, 0)
    fill(log, 0, 5, epoch=3)
    log.flush()
    log.assign_epoch(4, 5)
    fill(log, 5, 10, epoch=4)
    engine.abandon()
    assert epochs_file(log).read_bytes() == b"0\n1\n3 0\n"

    _, recovered = opened(tmp_path)

    assert list(recovered.epoch_entries()) == [(3, 0), (4, 5)]
    assert epochs_file(log).read_bytes() == b"0\n2\n3 0\n4 5\n"


def test_a_new_epoch_of_a_log_in_use_is_written_by_a_clean_shutdown(tmp_path: Path) -> None:
    engine, log = opened(tmp_path)
    log.assign_epoch(3, 0)
    fill(log, 0, 5, epoch=3)
    log.flush()
    log.assign_epoch(4, 5)
    assert epochs_file(log).read_bytes() == b"0\n1\n3 0\n"

    fill(log, 5, 10, epoch=4)
    engine.close({})

    assert epochs_file(log).read_bytes() == b"0\n2\n3 0\n4 5\n"


def test_an_epoch_that_got_no_record_is_forgotten_by_a_restart(tmp_path: Path) -> None:
    engine, log = opened(tmp_path)
    log.assign_epoch(3, 0)
    fill(log, 0, 5, epoch=3)
    log.assign_epoch(4, 5)
    engine.close({})

    _, again = opened(tmp_path)

    assert list(again.epoch_entries()) == [(3, 0)]
    again.assign_epoch(5, 5)
    assert tuple(again.end_offset_for_epoch(4)) == (3, 5)


def test_epochs_that_a_recovery_found_in_the_log_survive_a_clean_shutdown_without_a_record(tmp_path: Path) -> None:
    engine, log = opened(tmp_path)
    log.assign_epoch(3, 0)
    fill(log, 0, 5, epoch=3)
    log.flush()
    before = epochs_file(log).read_bytes()
    log.assign_epoch(4, 5)
    fill(log, 5, 10, epoch=4)
    engine.abandon()
    epochs_file(log).write_bytes(before)  # what a loss of power may leave

    engine, recovered = opened(tmp_path)
    recovered.assign_epoch(5, 10)
    assert epochs_file(log).read_bytes() == b"0\n2\n3 0\n4 5\n"
    engine.close({})
    _, again = opened(tmp_path)

    assert list(again.epoch_entries()) == [(3, 0), (4, 5)]


def test_an_epoch_begins_behind_batches_that_are_indexed_and_not_written_yet(tmp_path: Path) -> None:
    engine = started(tmp_path)
    log = engine.open_log(partition(0), LogConfig(index_interval_bytes=64))
    batches = fill(log, 0, 3)
    for offset, epoch in ((3, 0), (4, 1)):  # as a follower has them from a leader of before and the one of now
        log.assign_epoch(epoch, offset)
        batches.append(make_batch(offset, epoch=epoch, timestamp=1_000 + offset))
        log.append(batches[-1], offset, offset, 1_000 + offset)
    log.write_pending()

    assert all_bytes(log) == batches
    assert list(log.epoch_entries()) == [(0, 3), (1, 4)]
