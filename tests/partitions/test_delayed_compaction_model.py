"""Delayed records of a log that is compacted: whatever is rewritten, each is seen once, when it is due, in order."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
import trio

from odradek.kernel.config.delay_checks import DelaySettings
from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.delay import ledger
from odradek.kernel.records.batch import read_header
from tests.cleanup.compacted import compactor_on

from .delayed_partition import BY_LEVELS, WAITS, DelayedPartition, Sent
from .test_delayed_records_model import AFTER_MS_MAX, Story

STEPS = 80
KEYS = 3
COMPACTS = CleanupSettings(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, delete_retention_ms=100)


def compact(partition: DelayedPartition) -> None:
    """Have all closed segments compacted."""
    hosted = partition.hosted
    topic = hosted.replicas.topics["t"]
    topic.plan = attrs.evolve(topic.plan, cleanup=COMPACTS)
    compactor = compactor_on(hosted)
    trio.run(compactor.round)
    assert not compactor.uncleanable


class CompactedStory(Story):
    def __init__(self, directory: Path, seed: int, settings: DelaySettings) -> None:
        super().__init__(directory, seed)
        self.partition.close()
        log_config = LogConfig(segment_bytes=2_000, file_delete_delay_ms=0)
        self.partition = DelayedPartition(directory / "compacted", log_config=log_config, settings=settings, keys=KEYS)
        self.gone_bytes = 0

    def compact(self) -> None:
        self.wait(0)
        log = self.partition.replica.log
        if log.active_base_offset < log.log_end_offset and self.random.random() < 0.7:
            log.roll()
        if self.random.random() < 0.7:
            log.flush()  # what was delivered, too
        before = log.size_bytes
        compact(self.partition)
        self.gone_bytes += before - log.size_bytes
        self.random.choice([lambda: None, self.partition.restart, self.partition.read_again])()

    def step(self) -> None:
        often = [self.produce, self.produce, self.produce, self.pass_time, self.pass_time]
        starts = [self.partition.kill, self.partition.restart, self.partition.read_again]
        rest = [self.begin_transaction, self.end_transaction, self.compact, self.compact, self.lose_segments]
        self.random.choice([*often, *rest, *starts])()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("settings", [WAITS, BY_LEVELS], ids=lambda settings: settings.queue)
def test_each_record_is_seen_once_though_its_log_is_compacted(
    tmp_path: Path, seed: int, settings: DelaySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_HELD_SHIFT", 2)  # so that few companions are kept for what waits beside them
    story = CompactedStory(tmp_path, seed, settings)
    for _ in range(STEPS):
        story.step()
    story.end_transaction()
    story.partition.read_again()
    story.wait(10 * AFTER_MS_MAX)

    assert story.delivered
    assert story.gone_bytes > 0
    assert not story.partition.ledger.queue.waiting_count
    story.compact()
    story.compact()
    offsets = [read_header(batch).base_offset for batch in story.partition.batches()]
    assert offsets == sorted(offsets)
    story.partition.close()


def test_what_was_delivered_goes_only_once_the_delivery_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of power may take the delivery, and what waited must be there again."""
    monkeypatch.setattr(ledger, "_HELD_SHIFT", 2)
    partition = DelayedPartition(tmp_path, keys=KEYS)
    partition.produce([Sent(b"1", 1_000)])
    partition.produce([Sent(b"2"), Sent(b"3"), Sent(b"4"), Sent(b"5")])
    partition.replica.log.roll()
    partition.restart()
    partition.pass_time(1_000)
    assert partition.values() == [b"2", b"3", b"4", b"5", b"1"]

    compact(partition)
    assert read_header(partition.batches()[0]).base_offset == 0
    partition.produce([Sent(b"6")])
    partition.replica.log.roll()
    partition.restart()
    compact(partition)
    assert read_header(partition.batches()[0]).base_offset > 0
    partition.close()
