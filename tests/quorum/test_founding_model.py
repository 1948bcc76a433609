"""Disks replaced before, during and after a founding, under messages that are lost, late and doubled."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from uuid import UUID

import pytest

from odradek.kernel.quorum.founding import (
    ASKERS_MAX,
    UNKNOWN_ID,
    Candidate,
    FoundingNode,
    FoundingSteps,
    Holds,
    Keep,
    Serve,
    Step,
    Told,
    Unfounded,
)

from .founding_model import CANDIDATES, IDS, FoundedTwiceError, Model, RecordsMissingError

STEPS_MAX = 120


class ServesAtOnce(FoundingSteps):
    """Serves as soon as it keeps a founding, whoever else does."""

    def decide(self, answers: Iterable[tuple[Candidate, Told]]) -> Step | None:
        return Serve(self.held) if self.held is not None else super().decide(answers)


class ServesWithMost(FoundingSteps):
    """Serves as soon as a majority keeps the founding."""

    def decide(self, answers: Iterable[tuple[Candidate, Told]]) -> Step | None:
        told = list(answers)
        others = [each for _, each in told if isinstance(each, Holds) and each.founding == self.held]
        return Serve(self.held) if self.held is not None and others else super().decide(told)


class FoundsWithMost(FoundingSteps):
    """Takes whoever does not answer for empty, with whatever directory it asked from."""

    def decide(self, answers: Iterable[tuple[Candidate, Told]]) -> Step | None:
        told = dict(answers)
        if self.held is None and told and all(isinstance(each, Unfounded) for each in told.values()):
            for each in CANDIDATES:
                if each.node_id != self.own.node_id:
                    directory_id = self._asked_by.get(each.node_id, UUID(int=each.node_id))
                    told.setdefault(each, Unfounded(FoundingNode(each.node_id, directory_id), self._wanted))
        return super().decide(told.items())


class TakesFromAnybody(FoundingSteps):
    """Takes a founding from whoever holds one."""

    def decide(self, answers: Iterable[tuple[Candidate, Told]]) -> Step | None:
        told = dict(answers)
        held = [each.founding for each in told.values() if isinstance(each, Holds)]
        return Keep(held[0]) if self.held is None and held else super().decide(told.items())


def run(seed: int, wipes: int, *, steps: type[FoundingSteps] = FoundingSteps) -> Model:
    """Run a founding under all that chance brings, so many disks replaced at any time; then let it come to rest."""
    source = random.Random(seed)
    model = Model(source, steps)
    due = sorted(source.randrange(STEPS_MAX) for _ in range(wipes))
    loss, crashes = source.choice((0.0, 0.1, 0.4)), source.choice((0.0, 0.05))
    for number in range(STEPS_MAX):
        while due and due[0] == number:
            model.wipe(source.choice(IDS))
            del due[0]
        model.act(loss, crashes)
    model.settle()
    return model


@pytest.mark.parametrize("wipes", [0, 1, 2, 3])
def test_a_cluster_is_founded_once_whatever_is_replaced_and_no_leader_lacks_a_record(wipes: int) -> None:
    for seed in range(60):
        run(seed, wipes)


@pytest.mark.parametrize("wipes", [0, 1])
def test_with_one_disk_replaced_the_others_found_and_lead(wipes: int) -> None:
    for seed in range(60):
        model = run(seed, wipes)
        assert len(list(model.majorities())) == 1, f"seed {seed}"


def test_who_is_replaced_after_the_founding_never_votes() -> None:
    for seed in range(50):
        source = random.Random(seed)
        model = Model(source)
        model.settle()
        model.wipe(source.choice(IDS))
        for _ in range(STEPS_MAX):
            model.act(0.1, 0.05)
        model.settle()
        ((founding, disks),) = model.majorities()
        replaced = [disk for disk in model.disks.values() if disk not in disks]

        assert len(replaced) == 1
        assert not replaced[0].votes
        assert replaced[0].cluster_id == founding.cluster_id


def test_after_two_disks_of_three_were_replaced_nobody_leads() -> None:
    for seed in range(50):
        source = random.Random(seed)
        model = Model(source)
        model.settle()
        for node_id in source.sample(IDS, 2):
            model.wipe(node_id)
        model.settle()

        assert not list(model.majorities())
        assert len({disk.cluster_id for disk in model.disks.values()}) == 1


def test_after_all_disks_were_replaced_at_once_there_is_a_new_cluster() -> None:
    model = Model(random.Random(1))
    model.settle()
    for node_id in IDS:
        model.crash(node_id)
        model.wipe(node_id)
        model.crash(node_id)
    model.settle()
    ((founding, disks),) = model.majorities()

    assert len(disks) == 3
    assert founding.cluster_id == "cluster-2"


def node(number: int) -> FoundingNode:
    return FoundingNode(number, UUID(int=number + 1))


def steps_of(candidates: Sequence[Candidate]) -> FoundingSteps:
    return FoundingSteps(node(1), candidates, new_cluster_id=lambda: "cluster")


def test_who_asks_is_news_once_and_again_with_another_directory() -> None:
    steps = steps_of(CANDIDATES)

    assert [steps.asked_by(node(2)), steps.asked_by(node(2))] == [True, False]
    assert steps.asked_by(FoundingNode(2, UUID(int=77)))


def test_of_strangers_that_ask_no_note_is_taken() -> None:
    steps = steps_of(CANDIDATES)
    steps.asked_by(node(2))

    assert not any(steps.asked_by(node(number)) for number in range(4, 4 + 2 * ASKERS_MAX))
    assert not steps.asked_by(node(2)), "who may found is known as before"


def test_where_anybody_may_found_so_many_that_asked_are_known_and_no_more() -> None:
    steps = steps_of([Candidate(UNKNOWN_ID, f"node-{number}", 9093) for number in (1, 2, 3)])
    for number in range(ASKERS_MAX + 1):
        steps.asked_by(node(number))

    assert [steps.asked_by(node(number)) for number in (ASKERS_MAX, 1, 0)] == [False, False, True]


def is_safe(seed: int, steps: type[FoundingSteps]) -> bool:
    try:
        run(seed, 1 + seed % 3, steps=steps)
    except (FoundedTwiceError, RecordsMissingError):
        return False
    return True


def found_while_one_is_away(steps: type[FoundingSteps]) -> Model:
    """Have node 3 end once it was asked; it is back when the disks of the others, which hold the founding, are new."""
    model = Model(random.Random(1), steps)
    for node_id in IDS:
        model.start(node_id)
    model.begin_round(1)
    model.deliver_all()
    model.crash(3)
    for _ in range(3):
        for node_id in (1, 2):
            model.end_round(node_id)
            model.end_writing(node_id)
            model.begin_round(node_id)
        model.deliver_all()
    assert model.disks[1].held is not None
    assert model.disks[2].held == model.disks[1].held
    assert model.disks[3].held is None
    model.lead()
    model.wipe(1)
    model.wipe(2)
    model.settle()
    return model


def test_nobody_votes_before_all_hold_the_founding() -> None:
    model = found_while_one_is_away(FoundingSteps)

    assert len(list(model.majorities())) == 1


@pytest.mark.parametrize("planted", [ServesAtOnce, ServesWithMost])
def test_who_votes_before_all_hold_the_founding_is_found_out(planted: type[FoundingSteps]) -> None:
    with pytest.raises(FoundedTwiceError):
        found_while_one_is_away(planted)


def test_who_votes_at_once_is_found_out_by_chance_too() -> None:
    assert not all(is_safe(seed, ServesAtOnce) for seed in range(500))


@pytest.mark.parametrize("planted", [FoundsWithMost, TakesFromAnybody])
def test_who_founds_or_takes_too_early_stands_in_the_way_of_the_others(planted: type[FoundingSteps]) -> None:
    assert not all(list(run(seed, 1, steps=planted).majorities()) for seed in range(500))


@pytest.mark.sweep
@pytest.mark.parametrize("wipes", range(5))
def test_a_cluster_is_founded_once_in_thousands_of_runs(wipes: int) -> None:
    for seed in range(5_000):
        model = run(1_000_000 + seed, wipes)
        assert wipes > 1 or list(model.majorities()), f"seed {seed}"
