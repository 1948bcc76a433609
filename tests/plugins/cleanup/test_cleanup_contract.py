"""Kafka's policies keep the contract, and the kit finds policies that do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import CleanupPlan, CleanupPolicy, Compaction, Deletion, LogState
from odradek.kernel.testing.contracts.cleanup import CleanupPolicyContract
from odradek.plugins.cleanup.compact import CompactPolicy
from odradek.plugins.cleanup.delete import DeletePolicy
from odradek.plugins.cleanup.key_map import NewestOffsets


class TestDelete(CleanupPolicyContract):
    def make_policy(self) -> CleanupPolicy:
        return DeletePolicy()


class TestCompact(CleanupPolicyContract):
    def make_policy(self) -> CleanupPolicy:
        return CompactPolicy()


class DeletesEverything:
    compacts = False

    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan(Deletion(log.segments[-1].next_offset, "all of it"))


class CompactsEverything:
    compacts = True

    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan(compaction=Compaction(log.log_start_offset, 1 << 40, 1.0, NewestOffsets))


class NeverTheSame:
    compacts = False

    def __init__(self) -> None:
        self.calls = 0

    def plan(self, log: LogState) -> CleanupPlan:
        self.calls += 1
        return CleanupPlan(Deletion(self.calls, "chance"))


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (DeletesEverything, "test_only_whole_committed_segments_are_deleted"),
        (CompactsEverything, "test_only_closed_stable_segments_are_compacted"),
        (NeverTheSame, "test_the_same_state_gives_the_same_plan_and_stays_as_it_is"),
    ],
)
def test_the_kit_finds_a_broken_policy(broken: type[CleanupPolicy], test: str) -> None:
    kit = CleanupPolicyContract()
    kit.make_policy = broken  # type: ignore[method-assign] # a class is what makes it
    with pytest.raises(AssertionError):
        getattr(kit, test)()


@given(st.lists(st.tuples(st.binary(max_size=2), st.integers(1, 3)), max_size=200), st.integers(1, 3_000))
def test_the_map_of_keys_is_a_dictionary_of_newest_offsets(steps: list[tuple[bytes, int]], memory_bytes: int) -> None:
    found = NewestOffsets(memory_bytes, len(steps) + 1, 0.9)
    expected: dict[bytes, int] = {}
    offset = 0
    for key, gap in steps:
        offset += gap
        if not found.note(key, offset):
            break
        expected[key] = offset
    assert len(found) == len(expected)
    for key, newest in expected.items():
        assert found.keeps(key, newest)
        assert not found.keeps(key, newest - 1)
    assert found.keeps(b"never noted", 0)
