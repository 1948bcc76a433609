"""Delayed records against a dictionary: whatever happens, each is seen once, when it is due, in order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.kernel.config.delay_checks import DelaySettings
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.delay.companion import read_companion
from odradek.kernel.delay.headers import DELAYED_FROM
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.record import Record
from odradek.kernel.types import Buffer

from .delayed_partition import BY_LEVELS, WAITS, DelayedPartition, Sent

STEPS = 80
AFTER_MS_MAX = 300


def order_of(record: Record) -> tuple[int, int]:
    _, _, origin = (dict(record.headers)[DELAYED_FROM] or b"").partition(b":")
    return record.timestamp, int(origin)


class Story:
    """A partition, and what is to be seen of it; each delayed record is named like its value."""

    def __init__(self, directory: Path, seed: int, settings: DelaySettings = WAITS) -> None:
        self.random = random.Random(seed)
        self.partition = DelayedPartition(directory, log_config=LogConfig(segment_bytes=2_000), settings=settings)
        self.directory, self.late_count = directory, 0
        self.due: dict[bytes, int] = {}
        self.delivered: list[Record] = []
        self.carried_count = 0
        self.known: list[bytes] = []
        self.open: list[tuple[Sent, int]] | None = None
        self.sequence = 0

    def record(self) -> Sent:
        if self.known and self.random.random() < 0.2:
            return Sent(b"", cancels=self.random.choice(self.waiting() or self.known))
        value = b"%d" % len(self.known)
        self.known.append(value)
        after_ms = self.random.choice([0, 1, self.random.randint(1, AFTER_MS_MAX)])
        return Sent(value, after_ms, value if after_ms else b"")

    def waiting(self) -> list[bytes]:
        known = {record.value for record in self.delivered}
        return [value for value in self.due if value not in known]

    def take(self, sent: Sent, produced_ms: int) -> None:
        if (
            sent.cancels
            and sent.cancels in self.due
            and sent.cancels not in [record.value for record in self.delivered]
        ):
            del self.due[sent.cancels]
        elif sent.after_ms:
            self.due[sent.value] = produced_ms + sent.after_ms

    def produce(self) -> None:
        is_transactional = self.open is not None
        records, now_ms = [self.record() for _ in range(self.random.randint(1, 4))], self.partition.now_ms
        is_idempotent = is_transactional or self.random.random() < 0.5
        sequence = self.sequence if is_idempotent else -1
        self.partition.produce(records, sequence, is_transactional=is_transactional)
        if is_idempotent:
            self.sequence += len(records)
            if self.random.random() < 0.3:
                assert self.partition.produce(records, sequence, is_transactional=is_transactional) is None
        for sent in records:
            if self.open is None:
                self.take(sent, now_ms)
            else:
                self.open.append((sent, now_ms))

    def begin_transaction(self) -> None:
        if self.open is None:
            self.open = []
            self.produce()

    def end_transaction(self) -> None:
        if self.open is None:
            return
        is_commit = self.random.random() < 0.7
        self.partition.end_transaction(is_commit=is_commit)
        ended, self.open = self.open, None
        for sent, produced_ms in ended if is_commit else ():
            self.take(sent, produced_ms)

    def pass_time(self) -> None:
        self.wait(self.random.choice([0, 1, 50, AFTER_MS_MAX]))

    def wait(self, duration_ms: int) -> None:
        """Let time pass; what comes is all that is due, once, in order."""
        self.partition.pass_time(duration_ms)
        known = self.delivered[-1].offset if self.delivered else -1
        fresh = [record for record in self.partition.delivered() if record.offset > known]
        self.delivered += fresh
        missing = {value for value, due_ms in self.due.items() if due_ms <= self.partition.now_ms}

        assert fresh == sorted(fresh, key=order_of)
        assert {record.value for record in self.delivered} == missing
        assert len(self.delivered) == len(missing)
        assert [record.timestamp for record in fresh] == [self.due[record.value or b""] for record in fresh]

    def lose_segments(self) -> None:
        """Retention takes what lies below some segment's begin, or all there is; what waits is carried forward."""
        self.wait(0)
        log = self.partition.replica.log
        ends = [segment.base_offset for segment in log.segments()] + [self.partition.replica.high_watermark]
        below = self.random.choice(ends)
        self.carried_count += self.partition.take_segments(below)
        if self.open is None:
            assert log.log_start_offset >= below or any(is_young(batch) for batch in self.partition.batches())
        self.look_at_a_late_replica()
        self.random.choice([self.partition.restart, self.partition.read_again])()  # as upkeep keeps the producers

    def look_at_a_late_replica(self) -> None:
        """One that begins where the log starts now, and leads, delivers what is left to be, and nothing else."""
        late = self.partition.replicated(self.directory / f"late {self.late_count}")
        self.late_count += 1
        began = late.replica.log.log_end_offset
        late.pass_time(10 * AFTER_MS_MAX)
        seen = [record.value or b"" for record in late.delivered() if record.offset >= began]
        assert sorted(seen) == sorted(self.waiting())
        late.close()

    def lose_segments_amid_a_transaction(self) -> None:
        self.begin_transaction()
        self.lose_segments()
        self.end_transaction()
        self.lose_segments()

    def step(self) -> None:
        often = [self.produce, self.produce, self.produce, self.pass_time, self.pass_time]
        starts = [self.partition.kill, self.partition.restart]
        losses = [self.lose_segments, self.lose_segments, self.lose_segments_amid_a_transaction]
        self.random.choice([*often, self.begin_transaction, self.end_transaction, *losses, *starts])()


def is_young(batch: Buffer) -> bool:
    """Return whether a batch was carried forward: as nothing here takes a day it is not carried again."""
    companion = read_companion(batch, read_header(batch))
    return companion is not None and companion.is_carried


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("settings", [WAITS, BY_LEVELS], ids=lambda settings: settings.queue)
def test_each_record_is_seen_once_and_in_order(tmp_path: Path, seed: int, settings: DelaySettings) -> None:
    story = Story(tmp_path, seed, settings)
    for _ in range(STEPS):
        story.step()
    story.end_transaction()
    story.partition.kill()
    story.wait(10 * AFTER_MS_MAX)

    assert story.delivered
    assert story.carried_count
    assert not story.partition.ledger.queue.waiting_count
    story.partition.close()
