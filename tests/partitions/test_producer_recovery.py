"""What a start reads of a log to know its producers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.kernel.api import LogConfig, PartitionLog
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.producer_snapshot import SNAPSHOT_KIND, encode_snapshot
from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.partitions.recovery import recover_in_steps, replay
from odradek.kernel.partitions.transaction_index import (
    TRANSACTION_INDEX_KIND,
    AbortedTransaction,
    decode_transaction_index,
    encode_transaction_index,
)
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import PARTITION, make_context

from .hosted import Hosted


class ReadLog:
    """A log that notes whether its batches were read."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self.was_read = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def batches(self, start_offset: int) -> Iterator[memoryview]:
        self.was_read = True
        return self._log.batches(start_offset)


def opened(directory: Path, *, index_interval_bytes: int = 4096) -> tuple[SegmentEngine, PartitionLog]:
    engine = SegmentEngine(make_context(directory))
    engine.start()
    return engine, engine.open_log(PARTITION, LogConfig(index_interval_bytes=index_interval_bytes))


def append(log: PartitionLog, **producer: int) -> None:
    builder = BatchBuilder(**producer)  # type: ignore[arg-type] # tests pass what fits
    offset = log.log_end_offset
    builder.append(None, b"v", timestamp=1 + offset)
    batch = bytearray(builder.build())
    batch[:8] = offset.to_bytes(8, "big")
    log.append(memoryview(batch), offset, offset, 1 + offset)
    log.write_pending()


def append_marker(log: PartitionLog, *, producer_id: int) -> None:
    marker = EndTransactionMarker(ControlRecordType.ABORT, 0)
    batch = bytearray(build_control_batch([marker], timestamp=1, producer_id=producer_id, producer_epoch=0))
    offset = log.log_end_offset
    batch[:8] = offset.to_bytes(8, "big")
    log.append(memoryview(batch), offset, offset, 1)
    log.write_pending()


@pytest.mark.parametrize(("is_clean", "expected"), [(True, False), (False, True)])
def test_a_log_without_producers_is_read_only_after_a_crash(tmp_path: Path, is_clean: bool, expected: bool) -> None:
    engine, log = opened(tmp_path)
    append(log)
    if is_clean:
        engine.close({})
    else:
        engine.abandon()
    _, again = opened(tmp_path)
    read: Any = ReadLog(again)

    run_at_once(recover_in_steps(read, ProducerStateTable(1 << 40), 0))

    assert read.was_read is expected


def test_a_crash_forgets_no_producer(tmp_path: Path) -> None:
    engine, log = opened(tmp_path)
    append(log, producer_id=5, producer_epoch=0, base_sequence=0)
    engine.abandon()
    _, again = opened(tmp_path)
    producers = ProducerStateTable(1 << 40)

    run_at_once(recover_in_steps(again, producers, 0))

    assert len(producers) == 1


def test_a_log_that_lost_its_end_after_a_clean_stop_forgets_no_producer_of_what_is_left(tmp_path: Path) -> None:
    """Its snapshots were of its old end; without the producer what is sent again would be appended again."""
    engine, log = opened(tmp_path)
    append(log, producer_id=5, producer_epoch=0, base_sequence=0)
    append(log, producer_id=5, producer_epoch=0, base_sequence=1)
    log.roll()
    append(log, producer_id=5, producer_epoch=0, base_sequence=2)
    log.write_sidecar(3, SNAPSHOT_KIND, encode_snapshot([]))
    assert log.directory is not None
    path = log.directory / f"{0:020}.log"
    engine.close({})
    path.with_suffix(".index").unlink()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    _, again = opened(tmp_path)
    producers = ProducerStateTable(1 << 40)

    run_at_once(recover_in_steps(again, producers, 0))

    (state,) = producers.states()
    assert (again.log_end_offset, state.last_sequence) == (1, 0)


@pytest.mark.parametrize("rotten", [0, 1])
def test_of_a_segment_that_cannot_be_read_on_the_rest_is_passed_over_and_that_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rotten: int
) -> None:
    engine, log = opened(tmp_path, index_interval_bytes=1)  # by which a start sees where each segment ends
    log.assign_epoch(0, 0)
    for number in range(9):
        if number in (3, 6):
            log.roll()
        append(log, producer_id=number, producer_epoch=0, base_sequence=0)
    log.flush()
    engine.checkpoint({})
    engine.abandon()
    segment = next(tmp_path.rglob(f"{3 * rotten:020}.log"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 3 + 8] ^= 0x80  # the length of its second batch: no batch is found behind it either
    segment.write_bytes(content)

    _, again = opened(tmp_path, index_interval_bytes=1)
    producers = ProducerStateTable(60_000)
    run_at_once(recover_in_steps(again, producers, 1))

    told = f"what its producers did from offset {3 * rotten + 1} to offset {3 * rotten + 3} is not known"
    assert told in caplog.text
    assert {each.producer_id for each in producers.snapshot()} == {*range(9)} - {3 * rotten + 1, 3 * rotten + 2}
    append(again)
    assert again.log_end_offset == 10


def test_an_index_forgets_transactions_whose_markers_were_deleted(tmp_path: Path) -> None:
    _, log = opened(tmp_path)
    log.truncate_fully(10)
    gone, here = AbortedTransaction(5, 0, 3, 0), AbortedTransaction(6, 8, 10, 8)
    append_marker(log, producer_id=6)
    log.write_sidecar(10, TRANSACTION_INDEX_KIND, encode_transaction_index([gone, here]))
    log.write_sidecar(11, SNAPSHOT_KIND, encode_snapshot([]))
    log.flush()

    run_at_once(recover_in_steps(log, ProducerStateTable(1 << 40), 0))

    assert decode_transaction_index(log.read_sidecar(10, TRANSACTION_INDEX_KIND)) == [here]


def test_a_snapshot_of_before_what_was_deleted_says_nothing_of_producers(tmp_path: Path) -> None:
    """What came between is not there to be read: with its last sequence the next batch would be out of order."""
    engine, log = opened(tmp_path)
    append(log, producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    known = ProducerStateTable(1 << 40)
    replay(log, known, 0)
    log.write_sidecar(1, SNAPSHOT_KIND, encode_snapshot(known.snapshot()))
    append_marker(log, producer_id=5)
    append(log, producer_id=5, producer_epoch=0, base_sequence=1)
    log.roll()
    append(log, producer_id=6, producer_epoch=0, base_sequence=0)
    log.flush()
    log.delete_segments_below(3)
    engine.checkpoint({})
    engine.abandon()
    _, again = opened(tmp_path)
    producers = ProducerStateTable(1 << 40)

    run_at_once(recover_in_steps(again, producers, 0))

    assert [state.producer_id for state in producers.states()] == [6]
    assert producers.transactions.last_stable_offset(again.log_end_offset) == 4
    assert not again.sidecars(SNAPSHOT_KIND)


def test_a_stop_forgets_no_producer_of_a_partition_that_is_offline_though_its_log_is_not(tmp_path: Path) -> None:
    """As after a plugin's bug: nobody is sure of what was known, and what is sent again would be appended again."""
    hosted = Hosted(tmp_path)
    hosted.open("t")
    for sequence in range(3):
        hosted.produce("t", sequence)
    hosted.replicas.fail(hosted.replicas.get("t", 0), ZeroDivisionError("a bug"))
    hosted.restart()
    hosted.open("t")
    replica = hosted.produce("t", 2)

    assert replica.log.was_clean
    assert replica.log.log_end_offset == 3  # it was there already
    hosted.lifecycle.close()


def test_a_log_that_a_crash_left_is_read_for_producers_also_when_its_replica_can_be_made_only_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted = Hosted(tmp_path)
    hosted.open("t")
    hosted.produce("t", 0, txn=True)
    engine = hosted.replicas.engines["segment"]
    assert isinstance(engine, SegmentEngine)
    engine.abandon()
    hosted.begin()

    def new_election(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(IsrElectionFactory, "new_election", new_election)
        hosted.open("t")
    assert hosted.replicas.find("t", 0) is None
    trio.run(hosted.lifecycle.retry_failed_logs)

    assert hosted.replicas.get("t", 0).last_stable_offset == 0
    hosted.lifecycle.close()
