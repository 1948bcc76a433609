"""The scenario `groups`, and its rules: each is broken by something, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest

from odradek.lab.simulator.group_oracle import Committer, GroupOracle, name_of
from odradek.lab.simulator.groups import GROUPS, PROTOCOLS, Plan
from odradek.lab.simulator.oracle import PromiseBrokenError
from odradek.lab.simulator.runs import run_seed
from odradek.lab.simulator.seeds import Seeds
from odradek.plugins.groups.classic.group import ClassicGroup
from odradek.plugins.groups.consumer.access import AccessChecks
from odradek.plugins.groups.offsets import Offsets

FIRST = Committer("first", 1, "first")
SECOND = Committer("second", 2, "second")


def oracle(*, may_overtake: bool = False) -> GroupOracle:
    return GroupOracle(may_overtake=may_overtake)


def commit(told: GroupOracle, who: Committer, offset: int) -> None:
    told.attempted(who, {0: offset})
    told.accepted(who, {0: offset})


def test_members_that_take_turns_break_nothing() -> None:
    told = oracle()
    for offset in range(4):
        assert told.read("a", 0, offset) == (offset == 0)
        told.processed(0, offset)
    commit(told, FIRST, 2)
    commit(told, SECOND, 4)
    told.told(0, 4, told.floor(0))

    assert told.has_committed({0: 4})
    told.check({0: 4})


def test_two_members_do_not_commit_in_one_generation() -> None:
    told = oracle()
    commit(told, FIRST, 1)
    commit(told, attrs.evolve(FIRST, member_id="again"), 2)  # a static member, restarted

    with pytest.raises(PromiseBrokenError, match=r"^owner: generation 1: first and second both committed partition 0"):
        commit(told, attrs.evolve(SECOND, generation=1), 3)


def test_a_generation_that_is_not_known_is_nobodys() -> None:
    told = oracle()
    commit(told, attrs.evolve(FIRST, generation=-1), 1)
    commit(told, attrs.evolve(SECOND, generation=-1), 2)

    assert told.floor(0).offset == 2


def test_what_is_committed_does_not_go_back() -> None:
    told = oracle()
    commit(told, FIRST, 1)
    commit(told, FIRST, 2)

    with pytest.raises(PromiseBrokenError, match=r"^back: "):
        told.told(0, 1, told.floor(0))


def test_what_was_told_once_does_not_go_back_either() -> None:
    told = oracle()
    commit(told, FIRST, 1)
    told.attempted(SECOND, {0: 5})  # nobody was told what became of it
    told.told(0, 5, told.floor(0))

    with pytest.raises(PromiseBrokenError, match=r"^back: "):
        told.told(0, 1, told.floor(0))


def test_a_members_own_commits_may_overtake_each_other_and_others_not() -> None:
    told = oracle(may_overtake=True)
    commit(told, FIRST, 1)
    commit(told, FIRST, 2)
    told.told(0, 1, told.floor(0))
    assert told.overtaken_count == 1

    commit(told, SECOND, 3)
    with pytest.raises(PromiseBrokenError, match=r"^back: "):
        told.told(0, 2, told.floor(0))


def test_nothing_is_told_that_nobody_committed() -> None:
    with pytest.raises(PromiseBrokenError, match=r"^origin: "):
        oracle().told(0, 7, oracle().floor(0))


def test_a_member_reads_without_a_gap_until_it_begins_anew() -> None:
    told = oracle()
    told.read("a", 0, 3)
    told.begins("a", 0)
    assert told.read("a", 0, 0)

    with pytest.raises(PromiseBrokenError, match=r"^gap: a was given 2 of partition 0, not 1"):
        told.read("a", 0, 2)


def test_everything_is_processed_and_committed() -> None:
    told = oracle()
    told.processed(0, 0)
    commit(told, FIRST, 1)

    with pytest.raises(PromiseBrokenError, match=r"^processed: partition 0: nobody processed 1"):
        told.check({0: 2})
    told.processed(0, 1)
    with pytest.raises(PromiseBrokenError, match=r"^processed: partition 0 ends at 2"):
        told.check({0: 2})


def test_what_is_transformed_is_so_once() -> None:
    told = oracle()
    told.transformed([name_of(0, 0), name_of(1, 0)])

    with pytest.raises(PromiseBrokenError, match=r"^once: record 0 of partition 1"):
        told.transformed([name_of(1, 0)])


def test_plans_differ() -> None:
    plans = [Plan.drawn(Seeds(seed).stream("workload")) for seed in range(60)]

    assert {(plan.protocol, plan.is_transactional) for plan in plans} == {
        (name, kind) for name in PROTOCOLS for kind in (False, True)
    }
    assert {plan.is_static for plan in plans} == {False, True}


def fence_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take commits of members that the group has gone on without."""
    for kind in (ClassicGroup, AccessChecks):
        monkeypatch.setattr(kind, "validate_offset_commit", lambda _self, **_committer: None)


def forget_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer every fifth OffsetCommit and write nothing."""
    commit = Offsets.commit
    calls = 0

    def commit_or_forget(self: Offsets, *args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        result = commit(self, *args, **named)
        return attrs.evolve(result, records=[]) if calls % 5 == 0 else result

    monkeypatch.setattr(Offsets, "commit", commit_or_forget)


@pytest.mark.unmeasured
@pytest.mark.parametrize(("sabotage", "seeds"), [(fence_nobody, (9, *range(1, 41))), (forget_commits, range(1, 11))])
def test_sabotage_is_found_within_so_many_seeds(
    sabotage: Callable[[pytest.MonkeyPatch], None], seeds: Iterable[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    assert any(run_seed(GROUPS, seed, {}).failure for seed in seeds)
