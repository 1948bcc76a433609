"""Logs under a tier: when they are wrapped and unwrapped, what is deleted, what a start needs and what it does not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import PartitionLog
from odradek.kernel.contracts.tiering import TieredLog, TierSettings
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.threads import Workers
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.log_move import begin_move, move_replica
from odradek.kernel.partitions.producer_snapshot import decode_snapshot
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.types import IsolationLevel, TopicIdPartition
from odradek.plugins.storage_segment.log import SegmentLog
from odradek.plugins.storage_tiered.log import TieredPartitionLog
from odradek.testing.far_tier import FarLog, FarTier
from tests.plugins.storage_tiered.tiered_house import House

from .hosted import Hosted, unlimited

TIERED = TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=CleanupSettings())
NO_COPY = TierSettings(-1, -1, remote_log_copy_disable=True, cleanup=CleanupSettings())
UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED


@pytest.fixture
def tier() -> FarTier:
    return FarTier()


@pytest.fixture
def hosted(tmp_path: Path, tier: FarTier) -> Iterator[Hosted]:
    hosted = Hosted(tmp_path, tier=tier)
    yield hosted
    hosted.lifecycle.close()


def replica_of(hosted: Hosted) -> Replica:
    return hosted.replicas.get("t", 0)


def filled(hosted: Hosted, tier: FarTier) -> FarLog:
    """Write three segments of three records each; the first two are far."""
    for sequence in range(0, 9, 3):
        replica = replica_of(hosted)
        replica.log.roll()
        hosted.produce("t", sequence, 3)
    tier.logs[replica_of(hosted).partition].send(6)
    return tier.logs[replica_of(hosted).partition]


def read_size(replica: Replica, offset: int) -> int:
    return replica.read(offset, 1 << 20, UNCOMMITTED, is_follower=False, at_least_one=True).size_bytes


def test_only_a_topic_that_wants_a_tier_has_one(hosted: Hosted, tier: FarTier) -> None:
    hosted.open("t", tier=TIERED)
    hosted.open("plain")

    assert [partition.topic for partition in tier.logs] == ["t"]
    assert replica_of(hosted).log is replica_of(hosted).tiered_log
    assert hosted.replicas.get("plain", 0).tiered_log is None


def test_a_living_topic_is_put_under_a_tier_and_taken_out_of_it(hosted: Hosted, tier: FarTier) -> None:
    hosted.open("t")
    hosted.produce("t", 0, 3)
    replica = replica_of(hosted)
    plain = replica.log

    run_at_once(hosted.lifecycle.reconfigure_topic_in_steps("t", hosted.plan(tier=TIERED)))
    log = tier.logs[replica.partition]
    assert (replica.log, replica.tiered_log, log.inner) == (log, log, plain)
    assert (plain.active_base_offset, list(plain.sidecars("snapshot"))) == (3, [3]), "what is there may be sent, and go"
    hosted.produce("t", 3, 3).log.roll()
    log.send(6)
    hosted.produce("t", 6, 3)

    run_at_once(hosted.lifecycle.reconfigure_topic_in_steps("t", hosted.plan(tier=NO_COPY)))
    assert (log.settings, tier.switched_off) == (NO_COPY, [])

    run_at_once(hosted.lifecycle.reconfigure_topic_in_steps("t", hosted.plan()))
    assert (replica.log, replica.tiered_log, tier.switched_off) == (plain, None, [replica.partition])
    assert tier.deleted == []
    assert (plain.log_start_offset, replica.high_watermark) == (6, 9)
    with pytest.raises(KafkaError) as refusal:
        read_size(replica, 5)
    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert read_size(replica, 6) > 0


def test_a_topic_that_nothing_was_written_to_is_taken_out_of_its_tier(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "hosted", tier=House(tmp_path / "house").tier)
    hosted.open("t", 2, tier=TIERED)

    run_at_once(hosted.lifecycle.reconfigure_topic_in_steps("t", hosted.plan()))

    assert [replica.offline_reason for replica in hosted.replicas] == [None, None]
    assert hosted.produce("t", 0, 3).log.log_end_offset == 3
    hosted.lifecycle.close()


@pytest.mark.parametrize("state", ["empty", "offline", "closed", "a bug"])
def test_a_tiered_replica_moves_away_whatever_is_wrong_with_it(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tier = House(tmp_path / "house").tier
    hosted = Hosted(tmp_path / "hosted", tier=tier)
    hosted.open("t", tier=TIERED)
    replica = replica_of(hosted)
    tiered = replica.tiered_log
    assert isinstance(tiered, TieredPartitionLog)
    assert isinstance(tiered.inner, SegmentLog)
    if state != "empty":
        hosted.produce("t", 0, 3)
    if state == "offline":
        tiered.inner.set_offline("the disk failed")
    elif state == "closed":
        tiered.inner.close()
    elif state == "a bug":
        monkeypatch.setattr(type(tiered), "unwrap", lambda self: 1 // 0)
    moved = PartitionState(leader=2, leader_epoch=1, partition_epoch=1, replicas=(2,), isr=(2,))
    stays = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
    topic = hosted.replicas.topics["t"]

    hosted.lifecycle.open_topic("t", topic.topic_id, topic.plan, {0: moved, 1: stays})

    assert topic.elsewhere == {0: moved}
    assert hosted.replicas.get("t", 1).is_leader
    assert not Path(replica.log.log_dir, "t-0").exists()
    assert (replica.partition in {log.partition for log in tier.logs}) == (state == "a bug")
    assert ("what the tier keeps of t-0" in caplog.text) == (state == "a bug")
    hosted.lifecycle.close()


def test_deleting_a_topic_reaches_the_store(hosted: Hosted, tier: FarTier) -> None:
    hosted.open("t", 2, tier=TIERED)
    hosted.open("plain")
    partitions = [hosted.replicas.get("t", index).partition for index in range(2)]

    run_at_once(hosted.lifecycle.delete_topic_in_steps("t", 2))
    run_at_once(hosted.lifecycle.delete_topic_in_steps("plain", 1))

    assert tier.deleted == partitions


def test_a_tier_that_fails_keeps_no_topic_from_being_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Fails(FarTier):
        def delete(self, partition: TopicIdPartition) -> None:
            raise RuntimeError("a bug of the tier's author")

    hosted = Hosted(tmp_path, tier=Fails())
    hosted.open("t", tier=TIERED)

    run_at_once(hosted.lifecycle.delete_topic_in_steps("t", 1))

    assert "t" not in hosted.replicas.topics
    assert "in the remote store is not removed" in caplog.text
    hosted.lifecycle.close()


def test_a_tier_that_fails_keeps_no_topic_from_being_taken_out_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(FarTier):
        def switch_off(self, partition: TopicIdPartition) -> None:
            raise RuntimeError("a bug of the tier's author")

    hosted = Hosted(tmp_path, tier=Fails())
    hosted.open("t", 2, tier=TIERED)

    run_at_once(hosted.lifecycle.reconfigure_topic_in_steps("t", hosted.plan()))

    assert [(replica.tiered_log, replica.offline_reason) for replica in hosted.replicas] == [(None, None)] * 2
    assert caplog.text.count("in the remote store is not removed") == 2
    assert hosted.produce("t", 0, 3).log.log_end_offset == 3
    hosted.lifecycle.close()


def test_without_tiered_storage_a_tiered_partition_is_offline_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hosted = Hosted(tmp_path)
    with caplog.at_level(logging.ERROR):
        hosted.open("t", tier=TIERED)
    hosted.open("plain")

    with pytest.raises(KafkaError) as refusal:
        replica_of(hosted)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "start with remote.log.storage.system.enable=true, or delete the topic" in caplog.text
    assert hosted.replicas.get("plain", 0).is_leader
    hosted.lifecycle.close()


def test_a_moved_log_is_wrapped_again(hosted: Hosted, tier: FarTier) -> None:
    hosted.open("t", tier=TIERED)
    hosted.produce("t", 0, 3)
    replica = replica_of(hosted)
    (other,) = set(hosted.dirs) - {replica.log.log_dir}

    begin_move(hosted.replicas, replica, other, unlimited())
    trio.run(move_replica, *hosted.local, replica, Workers(SystemThreads(), 1))

    assert (replica.log.log_dir, replica.log is replica.tiered_log) == (other, True)
    assert read_size(replica, 0) > 0


def test_a_start_reads_nothing_that_is_far(hosted: Hosted, tier: FarTier, tmp_path: Path) -> None:
    hosted.open("t", tier=TIERED)
    filled(hosted, tier)
    hosted.lifecycle.close()

    class Begun(FarTier):
        """The same far part, from the first moment on."""

        def wrap(self, partition_log: PartitionLog, settings: TierSettings, *, is_new: bool = False) -> TieredLog:
            wrapped = super().wrap(partition_log, settings, is_new=is_new)
            self.logs[partition_log.partition].send(6)
            return wrapped

    again = Hosted(tmp_path, tier=Begun())
    again.open("t", tier=TIERED)
    replica = replica_of(again)

    assert (replica.log.log_start_offset, replica.high_watermark) == (0, 9)
    assert len(replica.producers) == 1
    again.produce("t", 9, 1)
    again.lifecycle.close()


def test_the_producers_state_at_the_end_of_each_segment_stays_until_the_segment_was_sent(
    hosted: Hosted, tier: FarTier
) -> None:
    hosted.open("t", tier=TIERED)
    replica = replica_of(hosted)
    for sequence in range(0, 15, 3):
        replica.log.roll()
        hosted.produce("t", sequence, 3)
        replica.keep_producers()

    assert list(replica.log.sidecars("snapshot")) == [3, 6, 9, 12, 15]
    for offset in (3, 6, 9, 12):
        (entry,) = decode_snapshot(replica.log.read_sidecar(offset, "snapshot"))
        assert entry.last_sequence == offset - 1

    tier.logs[replica.partition].send(9)
    hosted.produce("t", 15, 3)
    replica.keep_producers()
    assert list(replica.log.sidecars("snapshot")) == [12, 15, 18]


def test_a_snapshot_that_a_crash_cannot_make_doubtful_is_kept(hosted: Hosted) -> None:
    hosted.open("t")
    replica = replica_of(hosted)
    for sequence in range(0, 12, 3):
        hosted.produce("t", sequence, 3)
        replica.keep_producers()
        if sequence == 0:
            replica.log.flush()

    assert (replica.log.recovery_point, list(replica.log.sidecars("snapshot"))) == (3, [3, 9, 12])
