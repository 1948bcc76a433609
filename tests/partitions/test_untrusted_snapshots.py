"""Producer snapshots that the log lost the records of: never trusted, also when the log has grown past them again."""

from pathlib import Path

from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.producer_snapshot import SNAPSHOT_KIND
from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.partitions.recovery import recover_in_steps
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import PARTITION, fill, make_context


def started(directory: Path) -> SegmentEngine:
    engine = SegmentEngine(make_context(directory))
    engine.start()
    return engine


def test_a_log_that_lost_everything_keeps_no_snapshot(tmp_path: Path) -> None:
    engine = started(tmp_path)
    log = engine.open_log(PARTITION, LogConfig())
    fill(log, 0, 5)
    log.write_sidecar(5, SNAPSHOT_KIND, b"of records that a loss of power takes")
    engine.abandon()
    assert log.directory is not None
    (log.directory / "00000000000000000000.log").write_bytes(b"")
    log = started(tmp_path).open_log(PARTITION, LogConfig())
    run_at_once(recover_in_steps(log, ProducerStateTable(1_000), 0))

    assert (log.log_end_offset, list(log.sidecars(SNAPSHOT_KIND))) == (0, [])
