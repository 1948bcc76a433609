"""Shell: a log against a naive model: Hypothesis looks for calls after which the two disagree.

The model is a list of batches. Where the contract leaves a choice (where segments begin), the model asks the log.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from odradek.kernel.contracts.storage import NO_LIMIT

from ..batches import make_batch
from .storage_base import PARTITION, SMALL, StorageKit, read_bytes, rewrite

if TYPE_CHECKING:
    from odradek.kernel.contracts.storage import PartitionLog, StorageEngine


class _Batch(NamedTuple):
    base_offset: int
    last_offset: int
    timestamp: int
    data: bytes


class _LogMachine(RuleBasedStateMachine):
    """Calls of a log's owner, each checked at once."""

    kit: StorageKit
    root: Path
    runs = 0

    def __init__(self) -> None:
        super().__init__()
        _LogMachine.runs += 1
        self.directory = self.root / str(_LogMachine.runs)
        self.directory.mkdir()
        self.batches: list[_Batch] = []
        self.epochs: list[tuple[int, int]] = []
        self.log_start = 0
        self.end = 0
        self.epoch = 0
        self.engine: StorageEngine = self.kit.start(self.directory)
        self.log: PartitionLog = self.engine.open_log(PARTITION, SMALL)

    @initialize(start=st.integers(0, 5_000))
    def begin_somewhere(self, start: int) -> None:
        self.log.truncate_fully(start)
        self.log_start = self.end = start

    @rule(
        batches=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(-1, 50)), min_size=1, max_size=9),
        is_new_epoch=st.booleans(),
        is_run=st.booleans(),
    )
    def append(self, batches: list[tuple[int, int, int]], is_new_epoch: bool, is_run: bool) -> None:
        fresh = []
        if is_new_epoch:
            self.epoch += 1
        for gap, count, timestamp in batches:
            base = self.end + gap
            data = make_batch(base, count=count, timestamp=timestamp, epoch=self.epoch)
            fresh.append(_Batch(base, base + count - 1, timestamp, data))
            self.end = base + count
        if not self.epochs or self.epochs[-1][0] < self.epoch:
            start = fresh[0].base_offset
            self.log.assign_epoch(self.epoch, start)
            self.epochs = [*(e for e in self.epochs if e[1] < start), (self.epoch, start)]
        if is_run:
            data = b"".join(b.data for b in fresh)
            self.log.append(data, fresh[0].base_offset, fresh[-1].last_offset, max(b.timestamp for b in fresh))
        else:
            for b in fresh:
                self.log.append(b.data, b.base_offset, b.last_offset, b.timestamp)
        self.log.write_pending()
        self.batches += fresh

    @rule(data=st.data(), max_bytes=st.integers(0, 2_500), at_least_one=st.booleans(), is_limited=st.booleans())
    def read(self, data: st.DataObject, max_bytes: int, at_least_one: bool, is_limited: bool) -> None:
        offset = data.draw(st.integers(self.log_start, self.end), "offset")
        end = data.draw(st.integers(offset, self.end + 1), "end") if is_limited else NO_LIMIT
        read = self.log.read(offset, max_bytes, end, at_least_one=at_least_one)
        wanted = [b for b in self.batches if b.last_offset >= offset]
        found = read_bytes(read)
        taken: list[bytes] = []
        while len(b"".join(taken)) < len(found):
            taken.append(wanted[len(taken)].data)
        assert found == b"".join(taken), "a read is a run of the next batches"
        assert all(b.last_offset < end for b in wanted[: len(taken)]), "a read ends below the end offset"
        assert len(found) <= max_bytes or (at_least_one and len(taken) == 1)
        if taken:
            following = [b.base_offset for b in wanted[len(taken) :]] or [self.end]
            assert wanted[len(taken) - 1].last_offset < read.next_offset <= max(following[0], end if is_limited else 0)
        elif wanted and wanted[0].last_offset < end:
            assert len(wanted[0].data) > max_bytes, "a batch that fits is given"
            assert not at_least_one, "the first batch is given when asked for"

    @rule(timestamp=st.integers(0, 51), data=st.data())
    def find_by_timestamp(self, timestamp: int, data: st.DataObject) -> None:
        start = data.draw(st.integers(self.log_start, self.end), "start")
        matching = (b.data for b in self.batches if b.last_offset >= start and b.timestamp >= timestamp)
        assert self.log.batch_for_timestamp(timestamp, start) == next(matching, None)

    @rule(epoch=st.integers(-1, 40))
    def ask_for_an_epoch(self, epoch: int) -> None:
        found = tuple(self.log.end_offset_for_epoch(epoch))
        known = [e for e in self.epochs if e[0] <= epoch]
        later = [e for e in self.epochs if e[0] > epoch]
        if epoch < 0 or (not later and (not known or known[-1][0] < epoch)):
            assert found == (-1, -1)
        elif not known:
            assert found == (epoch, later[0][1])
        else:
            assert found == (known[-1][0], later[0][1] if later else self.end)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(max(self.log_start - 2, 0), self.end + 2), "offset")
        self.log.truncate_to(offset)
        if offset < self.end:
            self.batches = [b for b in self.batches if b.last_offset < offset]
            last = self.batches[-1].last_offset + 1 if self.batches else 0
            self.end = max(last, self.log.active_base_offset)
            self.log_start = min(self.log_start, self.end)
        self.epochs = [e for e in self.epochs if e[1] < offset]

    @rule(distance=st.integers(0, 100))
    def truncate_fully(self, distance: int) -> None:
        start, is_epoch_known = self.end + distance, distance % 2
        self.log.truncate_fully(start, *([self.epoch] if is_epoch_known else []))
        self.batches, self.epochs = [], [(self.epoch, start)] if is_epoch_known else []
        self.log_start = self.end = start

    @rule(data=st.data())
    def advance_log_start(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log_start, self.end), "offset")
        self.log.advance_log_start(offset)
        self._start_at(offset)

    def _start_at(self, offset: int) -> None:
        if offset <= self.log_start:
            return
        self.log_start = offset
        before = [e for e in self.epochs if e[1] <= offset]
        if before:
            self.epochs = [(before[-1][0], offset), *(e for e in self.epochs if e[1] > offset)]

    @rule()
    def roll(self) -> None:
        self.log.roll()
        assert self.log.active_base_offset == self.end

    @rule(data=st.data())
    def delete_segments(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log_start, self.end), "offset")
        bases = [s.base_offset for s in self.log.segments()]
        count = sum(1 for following in bases[1:] if following <= offset)
        assert self.log.delete_segments_below(offset) == count
        self.batches = [b for b in self.batches if b.base_offset >= bases[count] or not count]
        self._start_at(bases[count])

    @precondition(lambda self: len(self.log.segments()) > 2)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        closed = self.log.segments()[:-1]
        first = data.draw(st.integers(0, len(closed) - 1), "first")
        last = data.draw(st.integers(first + 1, min(first + 3, len(closed))), "last")
        start, end = closed[first].base_offset, closed[last - 1].next_offset
        inside = [b for b in self.batches if start <= b.base_offset < end]
        kept = [b for b in inside[:-1] if data.draw(st.booleans(), "keep")] + inside[-1:]
        rewrite(self.engine, self.log, [s.base_offset for s in closed[first:last]], [b.data for b in kept])
        self.batches = [b for b in self.batches if b not in inside or b in kept]

    @rule()
    def flush(self) -> None:
        assert self.log.flush() == self.end

    @precondition(lambda self: self.kit.is_durable)
    @rule()
    def end_cleanly(self) -> None:
        self.engine.close({})
        self._reopen()

    @precondition(lambda self: self.kit.recovers)
    @rule()
    def end_in_a_crash(self) -> None:
        self.engine.checkpoint({})
        self.kit.crash(self.engine)
        self._reopen()

    def _reopen(self) -> None:
        self.engine = self.kit.start(self.directory)
        self.log = self.engine.open_log(PARTITION, SMALL)
        is_emptied = 0 < self.log_start == self.end
        self.epochs = [e for e in self.epochs if e[1] < self.end + is_emptied]

    @invariant()
    def the_log_says_the_same(self) -> None:
        found = (self.log.log_start_offset, self.log.log_end_offset)
        assert found == (self.log_start, self.end), "bounds"
        assert list(self.log.epoch_entries()) == self.epochs, "epochs"
        assert self.log.size_bytes == sum(len(b.data) for b in self.batches), "size"
        assert self.log.recovery_point <= self.end
        stamp = max((b.timestamp for b in self.batches), default=-1)
        assert self.log.max_timestamp() == next(
            ((b.timestamp, b.last_offset) for b in self.batches if b.timestamp == stamp >= 0), (-1, -1)
        )

    @invariant()
    def the_log_holds_the_same(self) -> None:
        visible = [b.data for b in self.batches if b.last_offset >= self.log_start]
        assert [bytes(b) for b in self.log.batches(self.log_start)] == visible

    @invariant()
    def segments_cover_the_log(self) -> None:
        segments = self.log.segments()
        assert all(s.next_offset == f.base_offset for s, f in pairwise(segments))
        assert (segments[-1].next_offset, segments[-1].is_active) == (self.end, True)

    def teardown(self) -> None:
        self.engine.close({})


def check_against_model(
    kit: StorageKit, directory: Path, *, examples: int = 25, steps: int = 30, shrinks: bool = True
) -> None:
    """Run the machine over `kit`'s engine.

    Args:
        kit: Makes the engines.
        directory: Where.
        examples: How many runs.
        steps: Calls in each.
        shrinks: Whether to look for the shortest calls that show a difference, which takes a while.

    Raises:
        AssertionError: The log and the model disagree; Hypothesis prints the shortest calls that show it.
    """
    with TemporaryDirectory(dir=directory) as root:
        machine = type("LogMachine", (_LogMachine,), {"kit": kit, "root": Path(root)})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                suppress_health_check=[HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.too_slow],
                derandomize=True,
                database=None,
                phases=[Phase.generate, *([Phase.shrink] if shrinks else [])],
            ),
        )
