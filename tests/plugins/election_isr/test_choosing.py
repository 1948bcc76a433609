"""Who leads, and who is in sync afterwards: the table of `choosing`'s docstring, row by row."""

from __future__ import annotations

import attrs
import pytest

from odradek.kernel.api import ElectionReason, PartitionState
from odradek.plugins.election_isr.choosing import choose_leader, initial_state

OFFLINE, SHUTDOWN = ElectionReason.OFFLINE, ElectionReason.CONTROLLED_SHUTDOWN
PREFERRED, REASSIGNMENT, UNCLEAN = ElectionReason.PREFERRED, ElectionReason.REASSIGNMENT, ElectionReason.UNCLEAN
REPLICAS = (1, 2, 3)


def led_by(leader: int, *isr: int, removing: tuple[int, ...] = ()) -> PartitionState:
    return PartitionState(
        leader=leader, leader_epoch=4, partition_epoch=7, replicas=REPLICAS, isr=isr, removing_replicas=removing
    )


@pytest.mark.parametrize(
    ("reason", "state", "live", "expected"),
    [
        # A leader that may go on does, and who does not live is not in sync any more.
        (OFFLINE, led_by(2, 2, 3, 1), {1, 2}, (2, (2, 1))),
        (SHUTDOWN, led_by(2, 2, 3, 1), {1, 2}, (2, (2, 1))),
        (UNCLEAN, led_by(2, 2, 3), {2, 3}, (2, (2, 3))),
        # The first replica by assignment, not by the order of the in-sync set.
        (OFFLINE, led_by(1, 1, 3, 2), {2, 3}, (2, (3, 2))),
        (SHUTDOWN, led_by(1, 1, 3, 2), {3}, (3, (3,))),
        (UNCLEAN, led_by(1, 1, 3, 2), {2, 3}, (2, (3, 2))),
        # One that lives and is not in sync may have lost records.
        (OFFLINE, led_by(1, 1), {2, 3}, None),
        (SHUTDOWN, led_by(1, 1), {2, 3}, None),
        (UNCLEAN, led_by(1, 1), {3, 2}, (2, (2,))),
        (UNCLEAN, led_by(1, 1), set(), None),
        (UNCLEAN, led_by(-1, 1, 3), {2, 3}, (3, (3,))),
        # Preferred: the first replica or nobody; the in-sync set stays, with those in it that do not live.
        (PREFERRED, led_by(2, 2, 1, 3), {1, 2}, (1, (2, 1, 3))),
        (PREFERRED, led_by(2, 2, 3), {1, 2, 3}, None),
        (PREFERRED, led_by(2, 1, 2), {2, 3}, None),
        # Reassignment: nobody who is being removed; the in-sync set is the reassignment's own business.
        (REASSIGNMENT, led_by(1, 1, 2, 3, removing=(1,)), {1, 2, 3}, (2, (1, 2, 3))),
        (REASSIGNMENT, led_by(2, 1, 2, 3, removing=(1,)), {1, 2}, (2, (1, 2, 3))),
        (REASSIGNMENT, led_by(1, 1, 2, removing=(1,)), {1, 3}, None),
        (OFFLINE, led_by(2, 1, 2, removing=(1,)), {1}, (1, (1,))),
    ],
)
def test_a_leader_is_chosen_as_the_table_says(
    reason: ElectionReason, state: PartitionState, live: set[int], expected: tuple[int, tuple[int, ...]] | None
) -> None:
    chosen = choose_leader(state, live, reason)

    assert expected == (None if chosen is None else (chosen.leader, chosen.isr))
    if chosen is not None:
        assert attrs.evolve(chosen, leader=state.leader, isr=state.isr) == state, (
            "nothing else changes, no epoch either"
        )


def test_of_a_new_partition_those_that_live_are_in_sync_and_the_first_of_them_leads() -> None:
    state = initial_state((3, 1, 2), {1, 2})

    assert (state.leader, state.isr, state.replicas) == (1, (1, 2), (3, 1, 2))
    assert (state.leader_epoch, state.partition_epoch) == (0, 0)


def test_a_partition_is_not_made_where_none_of_its_replicas_lives() -> None:
    with pytest.raises(AssertionError):
        initial_state((3, 1), {2})
