"""The example of a policy of one's own passes the kit, and a broker deletes what it plans."""

from __future__ import annotations

from pathlib import Path

from examples.last_segments_policy import LastSegments

from odradek.client import BlockingConsumer, BlockingProducer
from odradek.kernel.api import CleanupPolicy, CleanupSettings, LogState, SegmentInfo, TopicPartition
from odradek.testing.contracts.cleanup import CleanupPolicyContract
from odradek.testing.running_broker import running_broker

from ...waiting import until

CONFIG = """
[plugins]
enable = ["*", "examples.last_segments_policy"]

[broker]
"log.retention.check.interval.ms" = 50

[topics.events]
"cleanup.policy" = "last_segments"
"segment.bytes" = 1048576
"""


class TestLastSegments(CleanupPolicyContract):
    def make_policy(self) -> CleanupPolicy:
        return LastSegments()


def log_of(count: int) -> LogState:
    full = [SegmentInfo(number * 10, number * 10 + 10, 1_000, 5, 5, is_active=False) for number in range(count)]
    end = count * 10
    return LogState(
        partition=TopicPartition("t", 0),
        segments=[*full, SegmentInfo(end, end, 0, -1, 5, is_active=True)],
        settings=CleanupSettings(),
        log_start_offset=0,
        last_stable_offset=end,
        high_watermark=end,
        first_dirty_offset=0,
        rewritable_end=end,
        now_ms=10,
    )


def test_three_full_segments_stay() -> None:
    assert LastSegments().plan(log_of(3)).deletion is None
    deletion = LastSegments().plan(log_of(5)).deletion

    assert deletion is not None
    assert deletion.below == 20


def test_a_broker_deletes_what_it_plans(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text(CONFIG)
    with running_broker(config=config) as broker:
        servers = {"bootstrap.servers": broker.bootstrap}
        with BlockingProducer({**servers, "acks": "all"}) as producer:
            for _ in range(12):
                producer.send("events", b"x" * 500_000)
        with BlockingConsumer(servers) as consumer:
            first = ("events", 0)
            until(lambda: next(iter(consumer.beginning_offsets([first]).values())) > 0)
