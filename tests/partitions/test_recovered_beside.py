"""Logs that are opened again while the broker serves: a thread recovers them, and what happens meanwhile counts."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.replica import Replica
from odradek.plugins.storage_segment.engine import SegmentEngine

from .hosted import Hosted
from .test_flushes_and_moves import HeldFiles

BATCHES = 200
BRIEF_BYTES = 4096
"""So much a look for an offset reads: some headers."""


class CountedFiles(HeldFiles):
    """Files that count how much is read on the reactor's task; a thread may be held, as ever."""

    def __init__(self) -> None:
        super().__init__()
        self.read_bytes = 0
        self._held_pread = self.pread
        self.pread = self._counted_pread

    def _counted_pread(self, fd: int, size_bytes: int, position: int, /) -> bytes:
        data = self._held_pread(fd, size_bytes, position)
        if threading.current_thread() is threading.main_thread():
            self.read_bytes += len(data)
        return data


class Crashed(Hosted):
    """A broker that starts after a crash and cannot open its only log at first: a plugin is missing."""

    counted: CountedFiles

    def __init__(self, directory: Path, log_config: LogConfig) -> None:
        self.counted = CountedFiles()
        super().__init__(directory, files=self.counted)
        self.log_config = log_config
        self.open("t", log_config=log_config)
        for sequence in range(BATCHES):
            self.produce("t", sequence)
        self.size_bytes = self.replicas.get("t", 0).log.size_bytes
        self.engine.abandon()
        self.begin()
        elections, self.lifecycle._opener.elections = self.lifecycle._opener.elections, {}
        self.open("t", log_config=log_config)
        self.lifecycle._opener.elections = elections
        self.lifecycle.note_all_opened()
        self.counted.read_bytes = 0

    def begin(self) -> None:
        super().begin()
        engine = self.replicas.engines["segment"]
        assert isinstance(engine, SegmentEngine)
        self.engine = engine

    def replica(self) -> Replica | None:
        return self.replicas.find("t", 0)

    def end_offset(self) -> int | None:
        replica = self.replica()
        return None if replica is None else replica.log.log_end_offset

    def path(self) -> Path:
        (found,) = [path for name in self.dirs for path in Path(name).glob("t-0")]
        return found

    def retry(self) -> None:
        trio.run(self.lifecycle.retry_failed_logs)

    def retry_while_held(self, scenario: Callable[[], Awaitable[None]]) -> None:
        """Try again, and do something while a thread is in the middle of the log."""

        async def main() -> None:
            self.counted.hold("pread")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.lifecycle.retry_failed_logs)
                await self.counted.wait_held()
                await scenario()
                self.counted.may_go_on.set()

        trio.run(main)


@pytest.fixture(params=[LogConfig(), LogConfig(flush_messages=1)], ids=["plain", "flushed"])
def crashed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Crashed]:
    crashed = Crashed(tmp_path, request.param)
    assert crashed.replica() is None
    yield crashed
    crashed.lifecycle.close()


def test_a_log_that_could_not_be_opened_is_recovered_on_a_thread(crashed: Crashed) -> None:
    torn = crashed.path() / f"{0:020}.log"
    with torn.open("ab") as file:
        file.write(b"torn")
    for index in crashed.path().glob("*.index"):
        index.unlink()
    crashed.engine.abandon()
    crashed.begin()
    elections, crashed.lifecycle._opener.elections = crashed.lifecycle._opener.elections, {}
    crashed.open("t", log_config=crashed.log_config)
    crashed.lifecycle._opener.elections = elections
    crashed.counted.read_bytes = 0
    crashed.retry()

    replica = crashed.replica()
    assert replica is not None
    assert (replica.log.log_end_offset, replica.log.size_bytes) == (BATCHES, crashed.size_bytes)
    assert torn.stat().st_size == crashed.size_bytes
    # Its producers are read from it in slices, after a look at where it begins; the recovery itself reads nothing.
    assert crashed.counted.read_bytes <= 2 * (crashed.size_bytes + BRIEF_BYTES)
    crashed.produce("t", BATCHES)
    assert replica.log.log_end_offset == BATCHES + 1


def test_a_topic_that_is_deleted_while_its_log_is_recovered_stays_deleted(crashed: Crashed) -> None:
    path = crashed.path()

    async def delete() -> None:
        run_at_once(crashed.lifecycle.delete_topic_in_steps("t", 1))

    crashed.retry_while_held(delete)

    assert crashed.replica() is None
    assert not path.exists()
    crashed.open("t")
    assert crashed.produce("t", 0).log.log_end_offset == 1


def test_a_namesake_waits_until_the_thread_is_gone(crashed: Crashed) -> None:
    async def make_again() -> None:
        run_at_once(crashed.lifecycle.delete_topic_in_steps("t", 1))
        state = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
        crashed.lifecycle.open_topic("t", uuid.UUID(int=5), crashed.plan(), {0: state})
        with pytest.raises(KafkaError) as refused:
            crashed.replicas.get("t", 0)
        told.append(refused.value.code)

    told: list[ErrorCode] = []
    crashed.retry_while_held(make_again)
    crashed.retry()

    assert told == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert crashed.produce("t", 0).log.log_end_offset == 1


def test_a_log_that_cannot_be_recovered_is_offline_and_tried_again(crashed: Crashed) -> None:
    log = crashed.path() / f"{0:020}.log"
    log.rename(log.with_name("away"))
    log.mkdir()
    crashed.retry()
    assert crashed.replica() is None
    log.rmdir()
    log.with_name("away").rename(log)
    crashed.retry()

    assert crashed.end_offset() == BATCHES


def test_who_ends_in_the_middle_leaves_nothing_open(crashed: Crashed) -> None:
    async def main() -> None:
        crashed.counted.hold("pread")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crashed.lifecycle.retry_failed_logs)
            await crashed.counted.wait_held()
            nursery.cancel_scope.cancel()
            crashed.counted.may_go_on.set()

    trio.run(main)
    assert crashed.end_offset() in (None, BATCHES)
    crashed.retry()

    assert crashed.end_offset() == BATCHES
