"""Delayed records on two replicas that lead in turn: what both had is seen once, whoever leads, whatever is cut."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import trio

from odradek.kernel.partitions.following import append_as_follower, rebuild_after_cut, truncate
from odradek.kernel.records.batch import read_header

from .delayed_partition import DelayedPartition, Sent

STEPS = 60
AFTER_MS_MAX = 200


class Pair:
    """A leader and a follower, with one time; what both have is committed."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.leader = DelayedPartition(directory / "a")
        self.follower = DelayedPartition(directory / "b", leader=2)
        self.due: dict[bytes, int] = {}
        self.origins: dict[bytes, int] = {}
        self.committed: set[bytes] = set()

    def produce(self) -> None:
        sent = []
        for _ in range(self.random.randint(1, 3)):
            value = b"%d" % len(self.due)
            after_ms = self.random.choice([0, 1, self.random.randint(1, AFTER_MS_MAX)])
            self.due[value] = self.leader.now_ms + after_ms
            sent.append(Sent(value, after_ms))
        base_offset = self.leader.produce(sent)
        assert base_offset is not None
        self.origins.update((each.value, base_offset + number) for number, each in enumerate(sent))

    def pass_time(self) -> None:
        duration_ms = self.random.choice([0, 1, 30, AFTER_MS_MAX])
        self.follower.pass_time(duration_ms)
        self.leader.pass_time(duration_ms)

    def replicate(self, batches_max: int = 3) -> None:
        end = self.follower.replica.log.log_end_offset
        ahead = [batch for batch in self.leader.batches() if read_header(batch).base_offset >= end]
        for batch in ahead[:batches_max]:
            append_as_follower(self.follower.replica, batch)
        self.follower.replica.write()
        end = self.follower.replica.log.log_end_offset
        self.committed |= {value for value, origin in self.origins.items() if origin < end}

    def fail_over(self) -> None:
        """The follower leads; the leader comes back, gives up what the other lacks, and follows."""
        old, new = self.leader, self.follower
        new.leader = 1
        new.epoch = old.epoch + 1
        new.take_state()
        self.leader, self.follower = new, old
        old.leader, old.epoch = 2, new.epoch
        if self.random.random() < 0.5:
            old.kill()
        else:
            old.take_state()
        end = new.replica.log.log_end_offset
        if old.replica.log.log_end_offset > end:
            truncate(old.replica, end)
            trio.run(rebuild_after_cut, old.hosted.lifecycle, old.replica, old.now_ms)
            assert old.replica.offline_reason is None
        self.origins = {value: origin for value, origin in self.origins.items() if origin < end}

    def check(self) -> None:
        """See that nothing came early or twice, and that what both logs have is the same."""
        seen = self.leader.seen()
        assert max(Counter(record.value for record in seen).values(), default=1) == 1
        assert all(self.due[record.value or b""] <= self.leader.now_ms for record in seen)
        ours, theirs = self.leader.batches(), self.follower.batches()
        assert ours[: len(theirs)] == theirs

    def step(self) -> None:
        often = [self.produce, self.pass_time, self.replicate]
        self.random.choice([*often, *often, self.fail_over, self.leader.kill])()


@pytest.mark.parametrize("seed", range(6))
def test_what_was_committed_is_seen_once_whoever_leads(tmp_path: Path, seed: int) -> None:
    pair = Pair(tmp_path, seed)
    for _ in range(STEPS):
        pair.step()
        pair.check()
    pair.pass_time()
    for partition in (pair.follower, pair.leader):
        partition.pass_time(10 * AFTER_MS_MAX)
    pair.check()

    assert pair.committed
    assert pair.committed <= {record.value for record in pair.leader.seen()}
    pair.leader.close()
    pair.follower.close()
