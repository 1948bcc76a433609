"""Settings that say when a broker does something: it does so then, not before, and not by its defaults."""

from __future__ import annotations

from typing import Final

import pytest
import trio

from odradek.kernel.contracts.coordinator import CoordinatorResult
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.records import ConfigRecord
from odradek.kernel.records.builder import BatchBuilder

from .broker_beside import create_topic
from .broker_process import batch_of
from .simulated_broker import NOW_MS, SimulatedBroker, work_in_world

DAY_MS = 86_400_000
GROUP = 32
METADATA: Final = "__cluster_metadata-0"


def old_batch() -> bytes:
    """Return a batch that retention by default lets nobody keep."""
    builder = BatchBuilder()
    builder.append(None, b"old", timestamp=NOW_MS - 30 * DAY_MS)
    return bytes(builder.build())


def test_silent_producers_are_looked_for_as_often_as_is_said() -> None:
    async def work(broker: SimulatedBroker) -> None:
        await create_topic(broker.parts, "t")
        replica = await broker.put("t", batch_of(b"v", producer_id=1, producer_epoch=0, base_sequence=0))
        await trio.sleep(6.9)
        assert len(replica.producers) == 1
        await trio.sleep(0.2)
        assert len(replica.producers) == 0

    settings = {"producer.id.expiration.check.interval.ms": "7000", "producer.id.expiration.ms": "1"}
    work_in_world(settings, work)


def test_producers_and_checkpoints_are_kept_as_often_as_is_said() -> None:
    async def work(broker: SimulatedBroker) -> None:
        await create_topic(broker.parts, "t")
        await broker.put("t", batch_of(b"v", producer_id=1, producer_epoch=0, base_sequence=0))
        checkpoint = "replication-offset-checkpoint"
        await trio.sleep(10.9)
        assert broker.names("t-0", "*.snapshot") == []
        await trio.sleep(0.2)
        await broker.until(lambda: broker.names("t-0", "*.snapshot") == [f"{1:020d}.snapshot"])
        await trio.sleep(1.8)
        assert broker.names("", checkpoint) == []
        await trio.sleep(0.2)
        await broker.until(lambda: broker.names("", checkpoint) != [] and "t 0 1\n" in broker.text(checkpoint))

    settings = {
        "log.flush.offset.checkpoint.interval.ms": "11000",
        "replica.high.watermark.checkpoint.interval.ms": "13000",
    }
    work_in_world(settings, work)


def test_retention_begins_and_goes_on_when_it_is_said() -> None:
    async def work(broker: SimulatedBroker) -> None:
        await create_topic(broker.parts, "t")
        log = (await broker.put("t", old_batch())).log
        await trio.sleep(16.9)
        assert log.log_start_offset == 0
        await trio.sleep(0.2)
        await broker.until(lambda: log.log_start_offset == 1)
        await broker.put("t", old_batch())
        await trio.sleep(39.7)
        assert log.log_start_offset == 1
        await trio.sleep(0.4)
        await broker.until(lambda: log.log_start_offset == 2)

    settings = {"log.initial.task.delay.ms": "17000", "log.retention.check.interval.ms": "40000"}
    work_in_world(settings, work)


def test_deleted_files_stay_for_as_long_as_is_said() -> None:
    async def work(broker: SimulatedBroker) -> None:
        await create_topic(broker.parts, "follows")
        await create_topic(broker.parts, "decides", file_delete_delay_ms="20000")
        for topic in ("follows", "decides"):
            log = (await broker.put(topic, old_batch())).log
            log.roll()
            assert log.delete_segments_below(1) == 1
        await trio.sleep(8.9)
        await broker.until(lambda: len(broker.files("*-0/*.log.deleted")) == 2)
        await trio.sleep(1.2)
        await broker.until(lambda: broker.names("follows-0", "*.deleted") == [])
        await broker.until(lambda: broker.parts.logs.upkeep._worker.busy_count == 0)
        await trio.sleep(9)
        assert broker.names("decides-0", "*.log.deleted") != []
        await trio.sleep(2)
        await broker.until(lambda: broker.names("decides-0", "*.deleted") == [])
        run_at_once(broker.parts.logs.lifecycle.delete_topic_in_steps("decides", 1))
        await trio.sleep(19)
        # What it has just removed nothing of has to end, before it can be due again.
        await broker.until(lambda: broker.parts.logs.upkeep._worker.busy_count == 0)
        assert broker.names("", "decides-0*") != []
        await trio.sleep(2)
        await broker.until(lambda: broker.names("", "decides-0*") == [])

    work_in_world({"log.segment.delete.delay.ms": "9000"}, work)


@pytest.mark.parametrize(
    ("settings", "topic", "flushed_s"),
    [
        ({}, {"flush_ms": "5000"}, 5.25),
        ({"log.flush.interval.ms": "8000"}, {}, 8.25),
        ({"log.flush.scheduler.interval.ms": "30000"}, {"flush_ms": "1000"}, 30),
        ({"log.flush.scheduler.interval.ms": "30000"}, {}, 30),
    ],
    ids=["of the topic", "of the broker", "looked for seldom", "the look stands in"],
)
def test_records_are_flushed_when_it_is_said(settings: dict[str, str], topic: dict[str, str], flushed_s: float) -> None:
    async def work(broker: SimulatedBroker) -> None:
        await create_topic(broker.parts, "t", **topic)
        replica = await broker.put("t", batch_of(b"v"))
        # The first look flushes what nobody has flushed yet, whenever that is.
        await broker.until(lambda: replica.log.recovery_point == 1, limit_s=31)
        await broker.put("t", batch_of(b"v"))
        await trio.sleep(flushed_s - 0.6)
        assert replica.log.recovery_point == 1
        await trio.sleep(0.7)
        await broker.until(lambda: replica.log.recovery_point == 2)

    work_in_world(settings, work)


def test_the_metadata_log_rolls_by_age_and_by_size() -> None:
    async def work(broker: SimulatedBroker) -> None:
        async def write_a_megabyte() -> None:
            record = ConfigRecord(resource_type=GROUP, resource_name="g", name="large", value="v" * 31_250)
            await broker.parts.metadata.log.submit(lambda _controller, _now_ms: CoordinatorResult([record] * 32, None))

        await trio.sleep(49)
        await create_topic(broker.parts, "a")
        assert len(broker.names(METADATA, "*.log")) == 1
        await trio.sleep(2)
        await create_topic(broker.parts, "b")
        assert len(broker.names(METADATA, "*.log")) == 2
        for _ in range(8):
            await write_a_megabyte()
        assert len(broker.names(METADATA, "*.log")) == 2
        await write_a_megabyte()
        assert len(broker.names(METADATA, "*.log")) == 3

    work_in_world({"metadata.log.segment.ms": "50000", "metadata.log.segment.bytes": "8388608"}, work)


def test_a_snapshot_of_the_metadata_is_due_by_time_and_by_size() -> None:
    async def work(broker: SimulatedBroker) -> None:
        await trio.sleep(49)
        await create_topic(broker.parts, "a")
        assert broker.names(METADATA, "*.checkpoint") == []
        await trio.sleep(2)
        await create_topic(broker.parts, "b")
        await broker.until(lambda: len(broker.names(METADATA, "*.checkpoint")) == 1)
        first = broker.names(METADATA, "*.checkpoint")
        await create_topic(broker.parts, "c")
        assert broker.names(METADATA, "*.checkpoint") == first
        await create_topic(broker.parts, "d", 100)
        await broker.until(lambda: broker.names(METADATA, "*.checkpoint")[-1:] not in ([], first))

    settings = {
        "metadata.log.max.snapshot.interval.ms": "50000",
        "metadata.log.max.record.bytes.between.snapshots": "2000",
    }
    work_in_world(settings, work)
