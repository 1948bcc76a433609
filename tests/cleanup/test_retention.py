"""Retention over real segment files: what goes, what readers of it see, and what outlives a restart."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import trio

from odradek.kernel.cleanup.log_states import Policies
from odradek.kernel.contracts.cleanup import CleanupPlan, CleanupPolicy, CleanupSettings, Deletion, LogState
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.contracts.tiering import TierSettings
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.types import IsolationLevel
from odradek.plugins.cleanup.delete import DeletePolicy
from odradek.testing.far_tier import FarTier
from tests.cleanup.compacted import retention_on
from tests.partitions.hosted import Hosted

SMALL = LogConfig(segment_bytes=200)
EVERYTHING = CleanupSettings()
UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    hosted = Hosted(tmp_path)
    hosted.open("t", log_config=SMALL)
    yield hosted
    hosted.lifecycle.close()


class BrokenPolicy(CleanupPolicy):
    def plan(self, log: LogState) -> CleanupPlan:
        raise RuntimeError("a bug of the policy's author")


class DeletesBelow(CleanupPolicy):
    def __init__(self, below: int) -> None:
        self.below = below

    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan(Deletion(self.below, "the test wants it"))


def clean(hosted: Hosted, policies: Policies | None = None, **settings: int | tuple[str, ...]) -> Replica:
    topic = hosted.replicas.topics["t"]
    topic.plan = attrs.evolve(topic.plan, cleanup=CleanupSettings(**settings))  # type: ignore[arg-type] # by name
    trio.run(retention_on(hosted, policies or Policies({"delete": DeletePolicy()})).clean)
    return hosted.replicas.get("t", 0)


def fill(hosted: Hosted, count: int) -> Replica:
    """Produce batches of one record, two to a segment, a second apart."""
    for sequence in range(count):
        hosted.produce("t", sequence)
        hosted.clock.advance(1_000)
    return hosted.replicas.get("t", 0)


def read_all(replica: Replica, offset: int) -> bytes:
    found = replica.read(offset, 1 << 20, UNCOMMITTED, is_follower=False, at_least_one=True).data
    return found if isinstance(found, bytes) else bytes(found) if isinstance(found, memoryview) else found.read()


def test_old_segments_go_and_the_log_starts_behind_them(hosted: Hosted) -> None:
    replica = fill(hosted, 7)
    bases = [segment.base_offset for segment in replica.log.segments()]
    clean(hosted, retention_ms=3_500)

    assert (bases, replica.log.log_start_offset) == ([0, 2, 4, 6], 4)
    assert replica.offsets.log_end_offset == 7


def test_who_reads_a_deleted_segment_reads_it_to_the_end(hosted: Hosted) -> None:
    replica = fill(hosted, 7)
    under_way = replica.read(0, 1 << 20, UNCOMMITTED, is_follower=False, at_least_one=True).data
    expected = read_all(replica, 0)
    clean(hosted, retention_bytes=0)

    assert replica.log.log_start_offset == 7
    assert not isinstance(under_way, bytes | memoryview)
    assert under_way.read() == expected


def test_when_all_is_old_the_active_segment_goes_too_and_the_log_goes_on_at_its_end(hosted: Hosted) -> None:
    replica = fill(hosted, 3)
    clean(hosted, retention_ms=0)
    again = clean(hosted, retention_ms=0)

    assert [(segment.base_offset, segment.size_bytes) for segment in again.log.segments()] == [(3, 0)]
    hosted.produce("t", 3)
    assert (replica.log.log_start_offset, replica.high_watermark) == (3, 4)


def test_what_is_staged_in_the_same_turn_stays(hosted: Hosted) -> None:
    replica = fill(hosted, 1)
    hosted.stage("t")
    clean(hosted, Policies({"delete": DeletesBelow(1)}))
    hosted.writes.write_staged()

    assert (replica.log.log_start_offset, replica.offsets.log_end_offset) == (0, 2)
    assert replica.high_watermark == 2


def test_times_are_known_again_after_a_restart(hosted: Hosted, tmp_path: Path) -> None:
    fill(hosted, 7)
    hosted.lifecycle.close()
    again = Hosted(tmp_path)
    again.clock.advance(hosted.clock.now_ms() - again.clock.now_ms())
    again.open("t", log_config=SMALL)
    replica = clean(again, retention_ms=3_500)

    assert (replica.log.log_start_offset, replica.log.log_end_offset) == (4, 7)
    again.lifecycle.close()
    hosted.replicas = Hosted(tmp_path).replicas


def test_a_log_that_never_had_a_record_is_left_alone(hosted: Hosted) -> None:
    replica = clean(hosted, retention_ms=0, retention_bytes=0)

    assert replica.log.log_end_offset == 0


def test_a_policy_that_fails_leaves_its_log_as_it_is(hosted: Hosted, caplog: pytest.LogCaptureFixture) -> None:
    fill(hosted, 7)
    with caplog.at_level(logging.ERROR):
        replica = clean(hosted, Policies({"delete": BrokenPolicy()}))

    assert replica.offline_reason is None
    assert replica.log.log_start_offset == 0
    assert [record.getMessage() for record in caplog.records] == ["retention of t-0 failed"]


def test_a_policy_that_nobody_offers_keeps_everything_and_is_told_once(
    hosted: Hosted, caplog: pytest.LogCaptureFixture
) -> None:
    fill(hosted, 7)
    policies = Policies({})
    replica = clean(hosted, policies, retention_ms=0)
    clean(hosted, policies, retention_ms=0)

    assert replica.log.log_start_offset == 0
    told = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0] for line in told] == ["topic t"]
    assert "no active plugin offers the cleanup policy 'delete'" in told[0]


def test_an_aborted_transaction_that_is_deleted_is_forgotten(hosted: Hosted) -> None:
    replica = fill(hosted, 7)
    clean(hosted, retention_bytes=0)

    assert replica.producers.transactions.aborted() == ()
    assert len(replica.producers) == 1


def test_retention_goes_through_both_tiers(tmp_path: Path) -> None:
    tier = FarTier()
    hosted = Hosted(tmp_path, tier=tier)
    hosted.open("t", log_config=SMALL, tier=TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=EVERYTHING))
    replica = fill(hosted, 10)
    bases = [segment.base_offset for segment in replica.log.segments()]
    tier.logs[replica.partition].send(bases[3])

    clean(hosted, Policies({"delete": DeletesBelow(bases[2])}))
    assert (replica.log.log_start_offset, tier.logs[replica.partition].local_log_start_offset) == (bases[2], bases[3])

    clean(hosted, Policies({"delete": DeletesBelow(10)}))
    assert replica.log.log_start_offset == 10
    hosted.lifecycle.close()


def test_what_is_tiered_is_expired_by_its_leader_alone(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path, tier=FarTier())
    tiered = TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=EVERYTHING)
    hosted.open("t", log_config=SMALL, tier=tiered)
    replica = fill(hosted, 10)
    hosted.open("t", leader=2, epoch=1, log_config=SMALL, tier=tiered)

    clean(hosted, Policies({"delete": DeletesBelow(replica.log.segments()[2].base_offset)}))

    assert not replica.is_leader
    assert replica.log.log_start_offset == 0
    hosted.lifecycle.close()
