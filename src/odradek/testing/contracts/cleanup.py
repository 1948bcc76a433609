"""Pure core: what every cleanup policy promises; subclass it and say how yours is made.

    class TestMyPolicy(CleanupPolicyContract):
        def make_policy(self):
            return MyPolicy()

        def settings(self):
            return CleanupSettings(cleanup_policy=("mine",), retention_ms=100)

.. versionadded:: 0.1
"""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.kernel.contracts.cleanup import CleanupSettings, LogState
from odradek.kernel.contracts.log_values import SegmentInfo
from odradek.kernel.records.record import Record
from odradek.kernel.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.contracts.cleanup import CleanupPolicy, RecordDue, SelectionFactory
    from odradek.kernel.records.record_view import RecordView

_NOW_MS = 1_000_000
_KEYS = [b"%d" % (number % 40) for number in range(60)]
_SEGMENT = st.tuples(st.integers(1, 50), st.integers(1, 200), st.integers(-1, _NOW_MS))


def a_record(offset: int, key: bytes | None, value: bytes | None = b"", *, timestamp: int = 0) -> RecordView:
    """Return a record for a selection to judge."""
    return Record(offset, timestamp, key, value)


@st.composite
def log_states(draw: st.DrawFn, settings: CleanupSettings) -> LogState:
    """Draw a log of a few segments, with offsets as they may stand to each other."""
    infos, offset = [], draw(st.integers(0, 3))
    first = offset
    for records, size_bytes, timestamp in draw(st.lists(_SEGMENT, max_size=5)):
        infos.append(SegmentInfo(offset, offset + records, size_bytes, timestamp, _NOW_MS, is_active=False))
        offset += records
    size_bytes, timestamp = draw(st.sampled_from([(0, -1), (10, 5), (10, _NOW_MS)]))
    infos.append(SegmentInfo(offset, offset + bool(size_bytes), size_bytes, timestamp, _NOW_MS, is_active=True))
    start = draw(st.integers(first, infos[0].next_offset))
    high_watermark = draw(st.integers(start, infos[-1].next_offset))
    return LogState(
        partition=TopicPartition("t", 0),
        segments=infos,
        settings=settings,
        log_start_offset=start,
        last_stable_offset=draw(st.integers(start, high_watermark)),
        high_watermark=high_watermark,
        first_dirty_offset=draw(st.integers(start, infos[-1].next_offset)),
        rewritable_end=draw(st.integers(0, offset)),
        now_ms=_NOW_MS,
        due_ms=draw(
            st.dictionaries(st.sampled_from([info.base_offset for info in infos]), st.integers(0, 2 * _NOW_MS))
        ),
        has_expired_records=draw(st.booleans()),
    )


class CleanupPolicyContract:
    """What the cleaner counts on. `make_policy` is the subclass's, `settings` may be."""

    def make_policy(self) -> CleanupPolicy:
        """Return the policy."""
        raise NotImplementedError

    def settings(self) -> CleanupSettings:
        """Return settings under which it has something to do."""
        return CleanupSettings(retention_ms=100, retention_bytes=100, min_cleanable_dirty_ratio=0.0)

    def for_all_logs(self, check: Callable[[LogState], None]) -> None:
        """Run a check on many logs."""
        on_any_machine = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
        on_any_machine(given(log_states(self.settings()))(check))()

    def test_the_same_state_gives_the_same_plan_and_stays_as_it_is(self) -> None:
        """A policy is pure."""

        def check(state: LogState) -> None:
            before = copy.deepcopy(state)
            policy = self.make_policy()

            plan, again = policy.plan(state), policy.plan(state)
            # Pickled, as partials are equal to nothing but themselves.
            assert pickle.dumps(plan) == pickle.dumps(again), f"the same state gave two plans: {plan} and {again}"
            assert state == before, "a policy changes nothing of what it is shown"

        self.for_all_logs(check)

    def test_only_whole_committed_segments_are_deleted(self) -> None:
        """What is not committed stays, and a deletion ends where a segment does."""

        def check(state: LogState) -> None:
            deletion = self.make_policy().plan(state).deletion
            if deletion is not None:
                assert deletion.below <= state.high_watermark
                assert deletion.below in {segment.next_offset for segment in state.segments}
                assert deletion.reason

        self.for_all_logs(check)

    def test_only_closed_stable_segments_are_compacted(self) -> None:
        """A compaction ends where a segment begins, not above what is stable and durable."""

        def check(state: LogState) -> None:
            policy = self.make_policy()
            compaction = policy.plan(state).compaction
            if compaction is not None:
                assert policy.compacts
                assert compaction.end_offset in {segment.base_offset for segment in state.segments}
                assert compaction.end_offset <= min(state.last_stable_offset, state.rewritable_end)
                assert compaction.first_dirty_offset <= compaction.end_offset

        self.for_all_logs(check)

    def test_a_selection_travels_and_keeps_some_record_of_each_key_that_it_noted(self) -> None:
        """It is pickled into another process, where records are noted until it is full."""

        def check(state: LogState) -> None:
            compaction = self.make_policy().plan(state).compaction
            if compaction is None:
                return
            copied: SelectionFactory = pickle.loads(pickle.dumps(compaction.new_selection))  # our own
            selection = copied(state.high_watermark, len(_KEYS), 0.9)
            noted = []
            for offset, key in enumerate(_KEYS):
                record = Record(offset, _NOW_MS, key, b"")
                if not selection.note(key, record):
                    break
                noted.append((key, record))

            assert noted, "a selection has room for one record at least"
            assert {key for key, record in noted if selection.keeps(key, record)} == {key for key, _ in noted}

        self.for_all_logs(check)

    def test_an_expiry_travels_and_looks_through_closed_stable_segments(self) -> None:
        """A policy that expires always says when records are to go; what is active, or may yet be undone, it leaves."""

        def check(state: LogState) -> None:
            policy = self.make_policy()
            expiry = policy.plan(state).expiry
            assert (expiry is not None) == policy.expires
            if expiry is None:
                return
            copied: RecordDue = pickle.loads(pickle.dumps(expiry.due_of))  # our own
            record = Record(0, _NOW_MS, None, None)

            assert copied(record) == copied(record)
            end_offset = min(state.last_stable_offset, state.rewritable_end)
            closed = {s.base_offset for s in state.segments if not s.is_active and s.next_offset <= end_offset}
            assert set(expiry.segments) <= closed

        self.for_all_logs(check)

    def test_settings_are_judged_in_words(self) -> None:
        """What is wrong with a topic's settings is a text for a client, empty where nothing is."""
        policy = self.make_policy()

        assert policy.problem_with(self.settings()) == ""
        assert isinstance(policy.requires_keys, bool)
