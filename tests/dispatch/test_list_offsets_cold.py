"""ListOffsets by time over segments that nobody has looked at since the start: a thread waits for the disk."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from odradek.kernel.contracts.api_handler import AS_TASK, RequestContext
from odradek.kernel.dispatch.handlers import api_02_list_offsets
from odradek.kernel.dispatch.handlers.api_02_list_offsets import ListOffsetsHandler
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.partitions.leading import append_as_leader
from odradek.kernel.partitions.timestamp_lookup import TimestampOffset, find_in_batch
from odradek.kernel.records.batch import encode_batch, read_header
from odradek.kernel.records.record import encode_record
from odradek.kernel.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.kernel.wire.special_timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP
from tests.partitions.hosted import Hosted
from tests.waiting_aside import wait_here

from ..records.bombs import NOW, RECORD, batch_around

CONTEXT = cast("RequestContext", SimpleNamespace(api_version=7, wait_aside=wait_here))


class WatchedFiles(OsFiles):
    """The machine's files; knows which thread opened a file first: for whoever comes later it is in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.is_first_of_reactor: dict[Path, bool] = {}

    def open(self, path: Path, flags: int) -> int:
        self.is_first_of_reactor.setdefault(path, threading.current_thread() is threading.main_thread())
        return super().open(path, flags)


def request(*timestamps: int) -> ListOffsetsRequest:
    topics = [
        ListOffsetsTopic(
            name="t",
            partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)],
        )
        for timestamp in timestamps
    ]
    return ListOffsetsRequest(topics=topics)


def offsets(answer: Any) -> list[int]:
    return [topic.partitions[0].offset for topic in answer.topics]


def reopened(directory: Path, files: WatchedFiles) -> Hosted:
    """Return a broker's replicas after a restart, with a log of three segments."""
    hosted = Hosted(directory)
    hosted.open("t")
    for sequence in range(0, 9, 3):
        hosted.produce("t", sequence, 3).log.roll()
        hosted.clock.advance(1_000)
    hosted.lifecycle.close()
    hosted = Hosted(directory, files=files)
    hosted.open("t")
    files.is_first_of_reactor.clear()
    return hosted


def test_a_cold_time_is_a_task_whose_disk_waits_on_a_thread(tmp_path: Path) -> None:
    files = WatchedFiles()
    hosted = reopened(tmp_path, files)
    handler = ListOffsetsHandler(replicas=hosted.replicas, cold_timeout_ms=lambda: 30_000, threads=SystemThreads())
    wanted = request(hosted.clock.now_ms() + 1_000, MAX_TIMESTAMP)

    assert handler.handle(wanted, CONTEXT) is AS_TASK
    assert files.is_first_of_reactor == {}
    assert offsets(trio.run(handler.handle_async, wanted, CONTEXT)) == [3, 6]
    assert {path.suffix for path in files.is_first_of_reactor} >= {".log", ".timeindex"}
    assert not any(files.is_first_of_reactor.values())
    hosted.lifecycle.close()


def test_the_ends_of_a_log_are_told_at_once(tmp_path: Path) -> None:
    hosted = reopened(tmp_path, WatchedFiles())
    handler = ListOffsetsHandler(replicas=hosted.replicas, cold_timeout_ms=lambda: 30_000, threads=SystemThreads())

    assert offsets(handler.handle(request(EARLIEST_TIMESTAMP, LATEST_TIMESTAMP), CONTEXT)) == [0, 9]
    hosted.lifecycle.close()


def test_a_batch_that_is_long_to_look_through_is_looked_through_on_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted = Hosted(tmp_path)
    hosted.open("t")
    replica = hosted.replicas.get("t", 0)
    count = 100_000
    batch = batch_around(RECORD * (count - 1) + encode_record(5, count - 1, None, b""), count, timestamp=NOW)
    header = read_header(batch)
    header.max_timestamp = NOW + 5
    batch = encode_batch(header, batch[61:])
    append_as_leader(replica, memoryview(batch), read_header(batch), 1)
    hosted.writes.stage(replica)
    hosted.writes.write_staged()
    handler = ListOffsetsHandler(replicas=hosted.replicas, cold_timeout_ms=lambda: 30_000, threads=SystemThreads())
    threads = []

    def look(batch: bytes, timestamp: int, start_offset: int) -> TimestampOffset | None:
        threads.append(threading.current_thread() is threading.main_thread())
        return find_in_batch(batch, timestamp, start_offset)

    monkeypatch.setattr(api_02_list_offsets, "find_in_batch", look)

    for timestamp in (NOW + 1, MAX_TIMESTAMP):
        assert handler.handle(request(timestamp), CONTEXT) is AS_TASK
        assert offsets(trio.run(handler.handle_async, request(timestamp), CONTEXT)) == [count - 1]
    assert threads == [False, False]
    hosted.lifecycle.close()


def test_many_times_are_a_task_however_brief_each_is(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    hosted.open("t")
    hosted.produce("t", 0, 3)
    handler = ListOffsetsHandler(replicas=hosted.replicas, cold_timeout_ms=lambda: 30_000, threads=SystemThreads())
    few, many = request(*range(10)), request(*range(11))

    assert offsets(handler.handle(few, CONTEXT)) == [0] * 10
    assert handler.handle(many, CONTEXT) is AS_TASK
    assert offsets(trio.run(handler.handle_async, many, CONTEXT)) == [0] * 11
    hosted.lifecycle.close()
