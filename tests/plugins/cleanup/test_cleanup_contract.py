"""Kafka's policies keep the contract, and the kit finds policies that do not."""

from __future__ import annotations

import pytest

from odradek.kernel.api import (
    CleanupPlan,
    CleanupPolicy,
    CleanupSettings,
    Compaction,
    Deletion,
    Expiry,
    HeaderDue,
    KeyTable,
    LogState,
    RecordView,
)
from odradek.plugins.cleanup.compact import CompactPolicy
from odradek.plugins.cleanup.delete import DeletePolicy
from odradek.plugins.cleanup.ttl import TtlPolicy
from odradek.testing.contracts.cleanup import CleanupPolicyContract


class TestDelete(CleanupPolicyContract):
    def make_policy(self) -> CleanupPolicy:
        return DeletePolicy()


class TestCompact(CleanupPolicyContract):
    def make_policy(self) -> CleanupPolicy:
        return CompactPolicy()


class TestTtl(CleanupPolicyContract):
    def make_policy(self) -> CleanupPolicy:
        return TtlPolicy()


class DeletesEverything(CleanupPolicy):
    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan(Deletion(log.segments[-1].next_offset, "all of it"))


class CompactsEverything(CleanupPolicy):
    compacts = True

    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan(compaction=Compaction(log.log_start_offset, 1 << 40, 1.0, KeyTable))


class NeverTheSame(CleanupPolicy):
    def __init__(self) -> None:
        self.calls = 0

    def plan(self, log: LogState) -> CleanupPlan:
        self.calls += 1
        return CleanupPlan(Deletion(self.calls, "chance"))


class ExpiresTheActiveSegment(CleanupPolicy):
    expires = True

    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan(expiry=Expiry(HeaderDue("h"), [log.segments[-1].base_offset]))


class KeepsNothing(CleanupPolicy):
    compacts = True

    def plan(self, log: LogState) -> CleanupPlan:
        base_offset = log.segments[0].base_offset
        return CleanupPlan(compaction=Compaction(base_offset, base_offset, 1.0, NothingStays))


class NothingStays:
    def __init__(self, memory_bytes: int, records_max: int, load_factor: float) -> None:
        pass

    def note(self, key: bytes, record: RecordView) -> bool:
        return True

    def keeps(self, key: bytes, record: RecordView) -> bool:
        return False


class JudgesInNumbers(CleanupPolicy):
    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan()

    def problem_with(self, settings: CleanupSettings) -> str:
        return "never right"


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (DeletesEverything, "test_only_whole_committed_segments_are_deleted"),
        (CompactsEverything, "test_only_closed_stable_segments_are_compacted"),
        (NeverTheSame, "test_the_same_state_gives_the_same_plan_and_stays_as_it_is"),
        (ExpiresTheActiveSegment, "test_an_expiry_travels_and_looks_through_closed_stable_segments"),
        (KeepsNothing, "test_a_selection_travels_and_keeps_some_record_of_each_key_that_it_noted"),
        (JudgesInNumbers, "test_settings_are_judged_in_words"),
    ],
)
def test_the_kit_finds_a_broken_policy(broken: type[CleanupPolicy], test: str) -> None:
    kit = CleanupPolicyContract()
    kit.make_policy = broken  # type: ignore[method-assign] # a class is what makes it
    with pytest.raises(AssertionError):
        getattr(kit, test)()
