"""What Apache Kafka wrote is read, and what we write of the same batches is the same, byte for byte."""

import shutil
import uuid
from pathlib import Path

import pytest

from odradek.kernel.api import (
    CorruptionError,
    LogConfig,
    PartitionLog,
    StorageError,
    TopicIdPartition,
    do_now,
    iterate_batches,
)
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.formats import decode_epochs, encode_epochs, parse_segment_file
from odradek.testing.contracts.storage_base import all_bytes, make_context, read_bytes

GOLDEN = Path(__file__).parent / "golden" / "kafka-4.3.1"
CLUSTER_ID = "dw7P3yM4S1CkZUcnvZnxng"
CONFIG = LogConfig(segment_ms=60_000, index_interval_bytes=200)
BASES = [0, 18, 36, 45, 63, 81]


@pytest.fixture
def kafka_dir(tmp_path: Path) -> Path:
    """A copy of the directory, under the name that `make_context` gives the first log directory."""
    shutil.copytree(GOLDEN, tmp_path / "logs0")
    return tmp_path


def open_golden(directory: Path) -> PartitionLog:
    engine = SegmentEngine(make_context(directory))
    (found, _) = engine.start()
    return engine.open_log(found.partition, CONFIG)


def test_the_engine_finds_the_logs_and_the_cluster_of_kafka(kafka_dir: Path) -> None:
    engine = SegmentEngine(make_context(kafka_dir, cluster_id=CLUSTER_ID))
    found = engine.start()

    assert [str(f.partition) for f in found] == ["golden-0", "golden-1"]
    assert {f.partition.topic_id.version for f in found} == {4}
    assert (engine.cluster_id, list(engine.high_watermarks().values())) == (CLUSTER_ID, [90, 2])


def test_a_clean_log_of_kafka_is_opened_and_read_without_recovery(kafka_dir: Path) -> None:
    log = open_golden(kafka_dir)

    assert (log.was_clean, log.log_start_offset, log.log_end_offset, log.recovery_point) == (True, 0, 90, 90)
    assert ([s.base_offset for s in log.segments()], list(log.epoch_entries())) == (BASES, [(0, 0), (2, 45)])
    assert log.size_bytes == sum(p.stat().st_size for p in (GOLDEN / "golden-0").glob("*.log"))
    assert list(log.sidecars("snapshot")) == [18, 36, 45, 63, 81, 90]
    assert log.max_timestamp() == (1_700_001_162_002, 89)


def test_every_offset_and_timestamp_of_kafkas_log_is_found(kafka_dir: Path) -> None:
    log = open_golden(kafka_dir)
    batches = all_bytes(log)
    headers = [next(iterate_batches(batch))[1] for batch in batches]
    for batch, header in zip(batches, headers, strict=True):
        for offset in range(header.base_offset, header.next_offset):
            assert read_bytes(log.read(offset, 1, at_least_one=True)) == batch
        expected = next(b for b, h in zip(batches, headers, strict=True) if h.max_timestamp >= header.max_timestamp)
        assert log.batch_for_timestamp(header.max_timestamp, 0) == expected


def test_indexes_built_anew_are_kafkas_byte_for_byte(kafka_dir: Path) -> None:
    (kafka_dir / "logs0" / ".kafka_cleanshutdown").unlink()
    (kafka_dir / "logs0" / "recovery-point-offset-checkpoint").unlink()
    log = open_golden(kafka_dir)
    log.close()

    assert (log.was_clean, list(log.epoch_entries())) == (False, [(0, 0), (2, 45)])
    assert_same_files(kafka_dir / "logs0" / "golden-0", suffixes=(".log", ".index", ".timeindex"))


def test_the_same_batches_appended_make_the_same_files(tmp_path: Path, kafka_dir: Path) -> None:
    source = open_golden(kafka_dir)
    engine = SegmentEngine(make_context(tmp_path / "ours"))
    engine.start()
    log = engine.open_log(source.partition, CONFIG)
    for batch in all_bytes(source):
        header = next(iterate_batches(batch))[1]
        log.assign_epoch(header.partition_leader_epoch, header.base_offset)
        log.append(batch, header.base_offset, header.last_offset, header.max_timestamp)
        log.write_pending()
    log.close()

    assert_same_files(tmp_path / "ours" / "logs0" / "golden-0", suffixes=(".log", ".index", ".timeindex", ""))


def assert_same_files(ours: Path, *, suffixes: tuple[str, ...]) -> None:
    names = sorted(p.name for p in (GOLDEN / "golden-0").iterdir())
    wanted = [n for n in names if (Path(n).suffix in suffixes if parse_segment_file(n) else "" in suffixes)]
    assert len(wanted) >= 18
    for name in wanted:
        assert (name, (ours / name).read_bytes()) == (name, (GOLDEN / "golden-0" / name).read_bytes())


def test_another_cluster_or_node_is_refused(kafka_dir: Path) -> None:
    for context, text in (
        (make_context(kafka_dir, cluster_id="other"), "belongs to cluster"),
        (make_context(kafka_dir, node_id=2), "belongs to node 1"),
    ):
        with pytest.raises(StorageError, match=text):
            SegmentEngine(context).start()


def test_a_log_of_kafka_is_adopted_from_anywhere(tmp_path: Path) -> None:
    engine = SegmentEngine(make_context(tmp_path))
    engine.start()
    partition = engine.find_logs(str(GOLDEN))[0].partition
    do_now(engine.begin_adoption(partition, str(GOLDEN)))
    log = engine.open_log(partition, CONFIG)

    assert (str(log.partition), log.was_clean, log.log_end_offset) == ("golden-0", False, 90)
    with pytest.raises(StorageError, match="here already"):
        do_now(engine.begin_adoption(partition, str(GOLDEN)))


@pytest.mark.parametrize("is_own", [True, False])
def test_a_gap_that_compaction_left_stays_in_what_is_adopted(kafka_dir: Path, tmp_path: Path, is_own: bool) -> None:
    theirs = kafka_dir / "logs0"
    for path in (theirs / "golden-0").glob("00000000000000000018.*"):
        path.unlink()
    (theirs / "recovery-point-offset-checkpoint").unlink()  # as where logs were gathered, or renamed back
    context = make_context(kafka_dir if is_own else tmp_path / "ours")
    engine = SegmentEngine(context)
    found = engine.start()
    partition = engine.find_logs(str(theirs))[0].partition
    do_now(engine.begin_adoption(partition, str(theirs)))
    for other in found[1:]:
        engine.set_aside(other.partition)  # as a broker does with logs of topics that nobody knows
    bases = [segment.base_offset for segment in engine.open_log(partition, CONFIG).segments()]
    engine.close({})
    again = SegmentEngine(context)
    again.start()
    log = again.open_log(partition, CONFIG)

    assert bases == [segment.base_offset for segment in log.segments()] == [0, 36, 45, 63, 81]
    assert (log.was_clean, log.log_end_offset) == (True, 90)


def test_a_log_that_is_open_is_not_adopted_in_place(kafka_dir: Path) -> None:
    engine = SegmentEngine(make_context(kafka_dir))
    (found, _) = engine.start()
    engine.open_log(found.partition, CONFIG)

    with pytest.raises(StorageError, match="here already"):
        engine.begin_adoption(found.partition, found.log_dir)


def test_a_folder_without_an_id_is_found_when_it_holds_a_log(tmp_path: Path) -> None:
    for name, files in (
        ("old-7", ["00000000000000000000.log"]),
        ("empty-1", []),
        ("no-number", []),
        ("x-1", ["a.txt"]),
    ):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    engine = SegmentEngine(make_context(tmp_path / "ours"))

    assert [f.partition for f in engine.find_logs(str(tmp_path))] == [TopicIdPartition(uuid.UUID(int=0), "old", 7)]


def test_a_checkpoint_that_ends_within_a_number_is_broken() -> None:
    whole = encode_epochs([(1, 0), (2, 9), (4, 14)])
    for size in range(len(whole)):
        with pytest.raises(CorruptionError):
            decode_epochs(whole[:size])

    assert decode_epochs(whole) == [(1, 0), (2, 9), (4, 14)]
