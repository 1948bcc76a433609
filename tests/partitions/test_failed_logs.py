"""Logs that could not be opened are opened again in slices, and what happens in between counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.turnstile import SLICE_STEPS, run_at_once
from odradek.kernel.partitions.producer_snapshot import ProducerSnapshotEntry
from odradek.kernel.partitions.replica import Replica

from .hosted import Hosted

MANY = 3 * SLICE_STEPS


class Failed(Hosted):
    """A log of many producers that could not be opened at first."""

    def __init__(self, directory: Path) -> None:
        earlier = Hosted(directory)
        earlier.open("t")
        for producer_id in range(MANY):
            earlier.produce("t", 0, producer_id=producer_id)
        replica = earlier.replicas.get("t", 0)
        self.expected: list[ProducerSnapshotEntry] = replica.producers.snapshot()
        assert replica.log.directory is not None
        self.path = replica.log.directory
        self.topic_id = replica.partition.topic_id
        earlier.lifecycle.close()
        super().__init__(directory)
        elections, self.lifecycle._opener.elections = self.lifecycle._opener.elections, {}
        self.open("t")
        self.lifecycle._opener.elections = elections

    @property
    def replica(self) -> Replica | None:
        return self.replicas.find("t", 0)

    def retry(self, between: Callable[[], None] = lambda: None) -> int:
        """Try again; do something in the third pass. Return how many there were."""
        passes = 0

        async def count() -> None:
            nonlocal passes
            while True:
                await trio.lowlevel.checkpoint()
                passes += 1
                if passes == 3:
                    between()

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(count)
                await self.lifecycle.retry_failed_logs()
                nursery.cancel_scope.cancel()

        trio.run(main)
        return passes


@pytest.fixture
def failed(tmp_path: Path) -> Iterator[Failed]:
    failed = Failed(tmp_path)
    assert failed.replica is None
    yield failed
    failed.lifecycle.close()


def test_many_producers_are_read_in_slices(failed: Failed) -> None:
    assert failed.retry() >= MANY // SLICE_STEPS

    assert failed.replica is not None
    assert failed.replica.is_leader
    assert sorted(failed.replica.producers.snapshot()) == sorted(failed.expected)
    failed.produce("t", 1, producer_id=7)


def test_a_log_without_a_snapshot_is_replayed_in_slices(failed: Failed) -> None:
    for snapshot in failed.path.glob("*.snapshot"):
        snapshot.unlink()
    (failed.path / f"{0:020}.txnindex").touch()  # so that the log is read

    assert failed.retry() >= MANY // SLICE_STEPS
    assert failed.replica is not None
    assert len(failed.replica.producers) == MANY


def test_a_topic_that_is_deleted_meanwhile_stays_deleted(failed: Failed) -> None:
    failed.retry(between=lambda: run_at_once(failed.lifecycle.delete_topic_in_steps("t", 1)))

    assert failed.replica is None
    with pytest.raises(KafkaError, match="hosts no such topic"):
        failed.replicas.get("t", 0)
    assert not failed.path.exists()


def test_a_partition_that_becomes_another_brokers_meanwhile_is_given_up(failed: Failed) -> None:
    elsewhere = PartitionState(leader=2, leader_epoch=1, partition_epoch=1, replicas=(2,), isr=(2,))
    failed.retry(
        between=lambda: failed.lifecycle.open_topic("t", failed.topic_id, failed.plan(), {0: elsewhere}),
    )

    assert failed.replica is None
    assert not failed.path.exists()


def test_the_newest_state_and_settings_count(failed: Failed) -> None:
    later = PartitionState(leader=1, leader_epoch=7, partition_epoch=7, replicas=(1,), isr=(1,))
    plan = failed.plan()

    def change() -> None:
        failed.lifecycle.open_topic("t", failed.topic_id, failed.plan(), {0: later})
        run_at_once(failed.lifecycle.reconfigure_topic_in_steps("t", plan))

    failed.retry(between=change)

    assert failed.replica is not None
    assert failed.replica.leader_epoch == 7
    assert failed.replica.settings is plan.settings


def test_one_that_fails_again_waits_for_the_next_time(failed: Failed) -> None:
    elections, failed.lifecycle._opener.elections = failed.lifecycle._opener.elections, {}
    failed.retry()
    with pytest.raises(KafkaError) as refused:
        failed.replicas.get("t", 0)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR

    failed.lifecycle._opener.elections = elections
    failed.retry()
    assert failed.replica is not None


def test_one_that_is_cancelled_is_closed_and_can_be_tried_again(failed: Failed) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(failed.lifecycle.retry_failed_logs)
            for _ in range(3):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert failed.replica is None

    failed.retry()
    assert failed.replica is not None
