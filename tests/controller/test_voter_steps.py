"""Voters that come and go, as the controller decides it: one with each step, the next when a leader has told."""

from __future__ import annotations

from itertools import pairwise

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.controller.partition_states import wanted_replicas
from odradek.kernel.controller.voter_steps import begun, cancelled, changes_voters, told, voting
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.election_quorum.factory import QuorumElectionFactory

LIVE = (1, 2, 3, 4, 5, 6)
THREE = PartitionState(leader=1, leader_epoch=4, partition_epoch=10, replicas=(1, 2, 3), isr=(1, 2, 3))


def counted(state: PartitionState) -> PartitionState:
    """Return a state as it is recorded: with the next partition epoch."""
    return attrs.evolve(state, partition_epoch=state.partition_epoch + 1)


def told_all(state: PartitionState, live: tuple[int, ...] = LIVE) -> PartitionState:
    """Return what follows when a leader tells that voters of this step elected it, and all have caught up."""
    return counted(told(state, state.voters_epoch, LIVE, live))


def walked(state: PartitionState) -> list[PartitionState]:
    """Return the states until nothing is left to be done."""
    states = [state]
    for _ in range(40):
        if not (states[-1].adding_replicas or states[-1].removing_replicas or states[-1].former_voters):
            return states
        states.append(told_all(states[-1]))
    raise AssertionError(f"it does not end: {states[-1]}")


@pytest.mark.parametrize(
    ("target", "sets"),
    [
        pytest.param((1, 2, 3, 4), ["123", "1234"], id="grown"),
        pytest.param((2, 3), ["123", "23"], id="shrunk"),
        pytest.param((3,), ["123", "13", "3"], id="to one"),
        pytest.param((4, 2, 3), ["123", "1234", "234"], id="one moved"),
        pytest.param((4, 5, 6), ["123", "1234", "134", "1345", "145", "1456", "456"], id="all moved"),
        pytest.param((3, 1, 2), ["123"], id="another order"),
    ],
)
def test_voters_become_others_by_one_at_a_time_and_the_leader_goes_last(
    target: tuple[int, ...], sets: list[str]
) -> None:
    states = walked(counted(begun(THREE, target)))
    voters = ["".join(map(str, sorted(voting(state)))) for state in states]

    assert list(dict.fromkeys(voters)) == sets
    assert (states[-1].replicas, states[-1].voters) == (target, ())


def test_while_it_goes_on_clients_see_what_kafka_shows() -> None:
    state = counted(begun(THREE, (3, 4)))

    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((3, 4, 1, 2), (4,), (1, 2))
    assert (voting(state), wanted_replicas(state)) == ((3, 1, 2), (3, 4))


def test_who_has_not_caught_up_gets_no_vote() -> None:
    state = counted(begun(THREE, (1, 2, 3, 4)))
    behind, ready = told(state, 0, (1, 2, 3), LIVE), told(state, 0, (1, 2, 3, 4), LIVE)

    assert (set(voting(behind)), set(voting(ready))) == ({1, 2, 3}, {1, 2, 3, 4})
    assert (ready.former_voters, ready.voters_epoch) == ((1, 2, 3), state.partition_epoch + 1)


@pytest.mark.parametrize("told_epoch", [0, 10, 11, 13])
def test_the_next_step_waits_for_a_leader_of_the_last_one(told_epoch: int) -> None:
    step = told_all(counted(begun(THREE, (1, 2))))  # 3 goes, with partition epoch 12
    another = counted(begun(step, (1,)))

    assert step.voters_epoch == 12
    assert voting(told(another, told_epoch, LIVE, LIVE)) == (1, 2)
    assert voting(told(another, 12, LIVE, LIVE)) == (1,)


def test_the_dead_go_first_and_not_so_that_nobody_could_lead() -> None:
    state = counted(begun(THREE, (1,)))

    assert voting(told_all(state, live=(1, 3))) == (1, 3)
    assert voting(told_all(state, live=(1,))) == (1, 2, 3)


def test_a_step_is_taken_back_where_too_few_of_its_voters_live() -> None:
    step = told_all(counted(begun(THREE, (1, 2))))
    waiting, back = (counted(told(step, 0, LIVE, live)) for live in ((1, 2), (1, 3)))

    assert (voting(waiting), waiting.voters_epoch) == ((1, 2), step.voters_epoch)
    assert (voting(back), back.former_voters, back.voters_epoch) == ((1, 2, 3), (1, 2), back.partition_epoch)


def test_a_step_is_taken_back_at_once_and_the_next_waits_for_that() -> None:
    step = told_all(counted(begun(THREE, (1, 2))))
    back = counted(cancelled(step))
    onwards = counted(begun(back, (2, 3)))

    assert (voting(back), back.former_voters, back.voters_epoch) == ((1, 2, 3), (1, 2), back.partition_epoch)
    assert voting(told(onwards, step.voters_epoch, LIVE, LIVE)) == (2, 3, 1)
    assert voting(told(onwards, back.voters_epoch, LIVE, LIVE)) == (2, 3)


def test_what_is_cancelled_late_becomes_what_it_was_and_a_second_time_changes_nothing() -> None:
    state = counted(begun(THREE, (4, 5)))
    while len(voting(state)) != 3 or 4 not in voting(state):
        state = told_all(state)
    back = counted(cancelled(state))
    again = counted(cancelled(back))

    assert attrs.evolve(again, partition_epoch=0) == attrs.evolve(back, partition_epoch=0)
    assert sorted(walked(again)[-1].replicas) == [1, 2, 3]


def test_who_was_to_come_and_has_no_vote_is_forgotten_at_once() -> None:
    assert cancelled(counted(begun(THREE, (1, 2, 3, 4)))) == attrs.evolve(THREE, partition_epoch=11)


def test_elections_say_whether_their_voters_change() -> None:
    assert (changes_voters(QuorumElectionFactory()), changes_voters(IsrElectionFactory())) == (True, False)


replica_sets = st.lists(st.sampled_from(LIVE), min_size=1, max_size=4, unique=True).map(tuple)
moves = st.one_of(
    st.tuples(st.just("begin"), replica_sets),
    st.tuples(st.just("cancel"), st.just(())),
    st.tuples(st.just("tell"), replica_sets),
    st.tuples(st.just("tell late"), replica_sets),
)


@settings(deadline=None, max_examples=200)
@given(replica_sets, st.lists(moves, max_size=30))
def test_whoever_may_count_at_one_time_overlaps(
    first: tuple[int, ...], events: list[tuple[str, tuple[int, ...]]]
) -> None:
    """All voters since those that were last told of, with them, are two sets that differ by one replica at most."""
    state = PartitionState(leader=first[0], leader_epoch=1, partition_epoch=0, replicas=first, isr=first)
    possible = [frozenset(first)]
    for event, some in events:
        before = state
        if event == "begin":
            state = begun(state, some)
        elif event == "cancel":
            state = cancelled(state)
        else:
            is_late = event == "tell late" and state.voters_epoch > 0
            if not is_late:
                possible = [frozenset(voting(state))]
            state = told(state, state.voters_epoch - is_late, (*voting(state), *some), some)
        state = counted(state)
        if state.voters_epoch != before.voters_epoch:
            assert state.voters_epoch == state.partition_epoch
            possible.append(frozenset(voting(state)))

        assert set(voting(state)) | set(state.former_voters) <= set(state.replicas)
        assert frozenset(voting(state)) == possible[-1]
        assert len(set(possible)) <= 2
        assert all(len(one ^ other) <= 1 for one, other in pairwise(possible))
    assert sorted(walked(counted(begun(state, first)))[-1].replicas) == sorted(first)
