"""Settings that say when a broker does something: it does so then, not before, and not by its defaults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.contracts.coordinator import CoordinatorResult
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.records import ConfigRecord
from odradek.kernel.records.builder import BatchBuilder

from .broker_process import batch_of
from .test_process import produce
from .virtual_time import NOW_MS, VirtualTime, as_client, create_topic, work_in_virtual_time

if TYPE_CHECKING:
    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.partitions.replica import Replica

DAY_MS = 86_400_000
GROUP = 32


def old_batch() -> bytes:
    """Return a batch that retention by default lets nobody keep."""
    builder = BatchBuilder()
    builder.append(None, b"old", timestamp=NOW_MS - 30 * DAY_MS)
    return bytes(builder.build())


async def put(parts: BrokerParts, topic: str, batch: bytes) -> Replica:
    code, _offset = await as_client(parts, lambda client: produce(client, topic, batch))
    assert code == ErrorCode.NONE
    return parts.logs.replicas.get(topic, 0)


def names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


def test_silent_producers_are_looked_for_as_often_as_is_said(tmp_path: Path) -> None:
    async def work(parts: BrokerParts, virtual: VirtualTime) -> None:
        await create_topic(parts, "t")
        replica = await put(parts, "t", batch_of(b"v", producer_id=1, producer_epoch=0, base_sequence=0))
        await virtual.passes(6.9)
        assert len(replica.producers) == 1
        await virtual.passes(0.2)
        assert len(replica.producers) == 0

    settings = ("producer.id.expiration.check.interval.ms=7000", "producer.id.expiration.ms=1")
    work_in_virtual_time([f"log.dirs={tmp_path}", *settings], work)


def test_producers_and_checkpoints_are_kept_as_often_as_is_said(tmp_path: Path) -> None:
    async def work(parts: BrokerParts, virtual: VirtualTime) -> None:
        await create_topic(parts, "t")
        await put(parts, "t", batch_of(b"v", producer_id=1, producer_epoch=0, base_sequence=0))
        checkpoint = tmp_path / "replication-offset-checkpoint"
        await virtual.passes(10.9)
        assert names(tmp_path / "t-0", "*.snapshot") == []
        await virtual.passes(0.2)
        await virtual.until(lambda: names(tmp_path / "t-0", "*.snapshot") == [f"{1:020d}.snapshot"])
        await virtual.passes(1.8)
        assert not checkpoint.exists()
        await virtual.passes(0.2)
        await virtual.until(lambda: checkpoint.exists() and "t 0 1\n" in checkpoint.read_text())

    settings = (
        "log.flush.offset.checkpoint.interval.ms=11000",
        "replica.high.watermark.checkpoint.interval.ms=13000",
    )
    work_in_virtual_time([f"log.dirs={tmp_path}", *settings], work)


def test_retention_begins_and_goes_on_when_it_is_said(tmp_path: Path) -> None:
    async def work(parts: BrokerParts, virtual: VirtualTime) -> None:
        await create_topic(parts, "t")
        log = (await put(parts, "t", old_batch())).log
        await virtual.passes(16.9)
        assert log.log_start_offset == 0
        await virtual.passes(0.2)
        await virtual.until(lambda: log.log_start_offset == 1)
        await put(parts, "t", old_batch())
        await virtual.passes(39.7)
        assert log.log_start_offset == 1
        await virtual.passes(0.4)
        await virtual.until(lambda: log.log_start_offset == 2)

    settings = ("log.initial.task.delay.ms=17000", "log.retention.check.interval.ms=40000")
    work_in_virtual_time([f"log.dirs={tmp_path}", *settings], work)


def test_deleted_files_stay_for_as_long_as_is_said(tmp_path: Path) -> None:
    async def work(parts: BrokerParts, virtual: VirtualTime) -> None:
        await create_topic(parts, "follows")
        await create_topic(parts, "decides", file_delete_delay_ms="20000")
        for topic in ("follows", "decides"):
            log = (await put(parts, topic, old_batch())).log
            log.roll()
            assert log.delete_segments_below(1) == 1
        await virtual.passes(8.9)
        await virtual.until(lambda: len(names(tmp_path, "*-0/*.log.deleted")) == 2)
        await virtual.passes(1.2)
        await virtual.until(lambda: names(tmp_path / "follows-0", "*.deleted") == [])
        await virtual.until(lambda: parts.logs.upkeep._worker.busy_count == 0)
        await virtual.passes(9)
        assert names(tmp_path / "decides-0", "*.log.deleted") != []
        await virtual.passes(2)
        await virtual.until(lambda: names(tmp_path / "decides-0", "*.deleted") == [])
        run_at_once(parts.logs.lifecycle.delete_topic_in_steps("decides", 1))
        await virtual.passes(19)
        # What it has just removed nothing of has to end, before it can be due again.
        await virtual.until(lambda: parts.logs.upkeep._worker.busy_count == 0)
        assert names(tmp_path, "decides-0*") != []
        await virtual.passes(2)
        await virtual.until(lambda: names(tmp_path, "decides-0*") == [])

    work_in_virtual_time([f"log.dirs={tmp_path}", "log.segment.delete.delay.ms=9000"], work)


@pytest.mark.parametrize(
    ("settings", "topic", "flushed_s"),
    [
        ((), {"flush_ms": "5000"}, 5.25),
        (("log.flush.interval.ms=8000",), {}, 8.25),
        (("log.flush.scheduler.interval.ms=30000",), {"flush_ms": "1000"}, 30),
        (("log.flush.scheduler.interval.ms=30000",), {}, 30),
    ],
    ids=["of the topic", "of the broker", "looked for seldom", "the look stands in"],
)
def test_records_are_flushed_when_it_is_said(
    tmp_path: Path, settings: tuple[str, ...], topic: dict[str, str], flushed_s: float
) -> None:
    async def work(parts: BrokerParts, virtual: VirtualTime) -> None:
        await create_topic(parts, "t", **topic)
        replica = await put(parts, "t", batch_of(b"v"))
        await virtual.passes(flushed_s - 0.6)
        assert (replica.flushed_ms, replica.log.recovery_point) == (0, 0)  # nobody has even asked for it
        await virtual.passes(0.7)
        await virtual.until(lambda: replica.log.recovery_point == 1)

    work_in_virtual_time([f"log.dirs={tmp_path}", *settings], work)


def test_the_metadata_log_rolls_by_age_and_by_size(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"

    async def work(parts: BrokerParts, virtual: VirtualTime) -> None:
        async def write_a_megabyte() -> None:
            record = ConfigRecord(resource_type=GROUP, resource_name="g", name="large", value="v" * 31_250)
            await parts.metadata.log.submit(lambda _controller, _now_ms: CoordinatorResult([record] * 32, None))

        await virtual.passes(49)
        await create_topic(parts, "a")
        assert len(names(folder, "*.log")) == 1
        await virtual.passes(2)
        await create_topic(parts, "b")
        assert len(names(folder, "*.log")) == 2
        for _ in range(8):
            await write_a_megabyte()
        assert len(names(folder, "*.log")) == 2
        await write_a_megabyte()
        assert len(names(folder, "*.log")) == 3

    work_in_virtual_time(
        [f"log.dirs={tmp_path}", "metadata.log.segment.ms=50000", "metadata.log.segment.bytes=8388608"], work
    )


def test_a_snapshot_of_the_metadata_is_due_by_time_and_by_size(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"

    async def work(parts: BrokerParts, virtual: VirtualTime) -> None:
        await virtual.passes(49)
        await create_topic(parts, "a")
        assert names(folder, "*.checkpoint") == []
        await virtual.passes(2)
        await create_topic(parts, "b")
        await virtual.until(lambda: len(names(folder, "*.checkpoint")) == 1)
        first = names(folder, "*.checkpoint")
        await create_topic(parts, "c")
        assert names(folder, "*.checkpoint") == first
        await create_topic(parts, "d", 100)
        await virtual.until(lambda: names(folder, "*.checkpoint")[-1:] not in ([], first))

    settings = ("metadata.log.max.snapshot.interval.ms=50000", "metadata.log.max.record.bytes.between.snapshots=2000")
    work_in_virtual_time([f"log.dirs={tmp_path}", *settings], work)
