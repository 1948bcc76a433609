"""Delayed records on two replicas that lead in turn: what both had is seen once, whoever leads, whatever is cut."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import trio

from odradek.kernel.config.delay_checks import DelaySettings
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.following import (
    append_as_follower,
    begin_anew,
    note_leader,
    rebuild_after_cut,
    truncate,
)
from odradek.kernel.records.batch import read_header

from .delayed_partition import BY_LEVELS, WAITS, DelayedPartition, Sent

STEPS = 60
AFTER_MS_MAX = 200


class Pair:
    """A leader and a follower, with one time; what both have is committed."""

    def __init__(self, directory: Path, seed: int, settings: DelaySettings) -> None:
        self.random = random.Random(seed)
        self.leader = DelayedPartition(directory / "a", settings=settings)
        self.follower = DelayedPartition(directory / "b", leader=2, settings=settings)
        self.due: dict[bytes, int] = {}
        self.origins: dict[bytes, int] = {}
        self.committed: set[bytes] = set()
        self.carried_count = 0
        self.gone: dict[int, bytes | None] = {}  # what was seen, and lies below the start of some log

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

    def carry(self) -> None:
        """The leader carries what waits below an offset forward; its log starts later once the follower has that."""
        leader, follower = self.leader, self.follower
        ends = [read_header(batch).next_offset for batch in follower.batches()]
        below = self.random.choice([0, *ends])
        carrying = leader.delivery.carrying.begin(leader.replica, below)
        run_at_once(carrying.step())
        leader.write()
        self.carried_count += carrying.carried_count
        if self.random.random() < 0.7:
            self.replicate(1000)
            run_at_once(carrying.step())
            leader.write_staged()
            run_at_once(carrying.step())
            start = leader.replica.log.log_start_offset
            self.gone |= {record.offset: record.value for record in leader.seen() if record.offset < start}
            news = self.random.choice([self.hear_of_start, self.fall_behind, None])
            if news is not None:
                news()

    def hear_of_start(self) -> None:
        replica = self.leader.replica
        note_leader(self.follower.replica, self.follower.replica.log.log_end_offset, replica.log.log_start_offset)

    def fall_behind(self) -> None:
        """The follower was away for long, and begins where the leader's log starts."""
        begin_anew(self.follower.replica, self.leader.replica.log.log_start_offset, self.follower.now_ms)
        self.replicate(1000)

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
        values = [*self.gone.values(), *(record.value for record in seen if record.offset not in self.gone)]
        assert max(Counter(values).values(), default=1) == 1
        assert all(self.due[record.value or b""] <= self.leader.now_ms for record in seen)
        ours, theirs = ({read_header(each).base_offset: each for each in log.batches()} for log in self.both)
        assert all(ours[offset] == theirs[offset] for offset in ours.keys() & theirs.keys())

    @property
    def both(self) -> tuple[DelayedPartition, DelayedPartition]:
        return self.leader, self.follower

    def step(self) -> None:
        often = [self.produce, self.pass_time, self.replicate]
        self.random.choice([*often, *often, self.fail_over, self.carry, self.carry, self.leader.kill])()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("settings", [WAITS, BY_LEVELS], ids=lambda settings: settings.queue)
def test_what_was_committed_is_seen_once_whoever_leads(tmp_path: Path, seed: int, settings: DelaySettings) -> None:
    pair = Pair(tmp_path, seed, settings)
    for _ in range(STEPS):
        pair.step()
        pair.check()
    pair.pass_time()
    for partition in (pair.follower, pair.leader):
        partition.pass_time(10 * AFTER_MS_MAX)
    pair.check()

    assert pair.committed
    assert pair.committed <= {record.value for record in pair.leader.seen()} | set(pair.gone.values())
    assert not pair.leader.ledger.queue.waiting_count
    pair.leader.close()
    pair.follower.close()
