"""What an election has decided is carried out in order, to the end, and not at all where one broker cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from odradek.kernel.contracts.election import Election, IsrChange, PeerMessage, Ready, Role
from odradek.kernel.errors import PluginError
from odradek.kernel.partitions.election_driver import carry_out
from odradek.kernel.records.control import LeaderChange
from odradek.kernel.wire.messages.api_52_vote import VoteRequest


class Deciding:
    """An election that has decided these things, one behind the other."""

    def __init__(self, *effects: Ready, told: list[object]) -> None:
        self._effects = list(effects)
        self._told = told

    def ready(self) -> Ready | None:
        return self._effects[0] if self._effects else None

    def advance(self, ready: Ready) -> None:
        assert ready is self._effects.pop(0)
        self._told.append("done")


class Restless(Deciding):
    """An election that wants the same for ever."""

    def advance(self, ready: Ready) -> None:
        self._told.append("done")


class Told:
    """A replica that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def take_role(self, role: Role, leader_id: int, leader_epoch: int) -> None:
        self.told.append((role, leader_id, leader_epoch))

    def raise_high_watermark(self, offset: int) -> None:
        self.told.append(offset)


def carried_out(*effects: Ready, kind: type[Deciding] = Deciding) -> list[object]:
    replica = Told()
    carry_out(cast("Election", kind(*effects, told=replica.told)), replica)
    return replica.told


def test_the_role_is_taken_before_the_high_watermark_rises_and_then_the_election_hears_that_it_is_done() -> None:
    told = carried_out(Ready(high_watermark=7, role=Role.LEADER, leader_id=1, leader_epoch=4))

    assert told == [(Role.LEADER, 1, 4), 7, "done"]


def test_one_input_may_have_many_effects() -> None:
    told = carried_out(
        Ready(role=Role.CANDIDATE, leader_epoch=4),
        Ready(role=Role.LEADER, leader_id=1, leader_epoch=4),
        Ready(high_watermark=0),
    )

    assert told == [(Role.CANDIDATE, -1, 4), "done", (Role.LEADER, 1, 4), "done", 0, "done"]


class Keeping:
    """A keeper that notes what it is told."""

    def __init__(self, told: list[object]) -> None:
        self._told = told

    def keep(self, hard_state: bytes) -> None:
        self._told.append(hard_state)

    def append(self, records: Sequence[object], leader_epoch: int) -> int:
        self._told.append((list(records), leader_epoch))
        return 7


class Counting(Deciding):
    """An election that commits all but one record."""

    def local_append(self, log_end_offset: int) -> int:
        return log_end_offset - 1


def test_what_is_to_be_kept_is_kept_first_and_what_a_leader_appends_counts() -> None:
    replica = Told()
    record = LeaderChange(leader_id=1)
    ready = Ready(hard_state=b"voted", role=Role.LEADER, leader_id=1, leader_epoch=4, append=(record,))
    election = cast("Election", Counting(ready, told=replica.told))
    carry_out(election, replica, keeper=Keeping(replica.told))

    assert replica.told == [b"voted", (Role.LEADER, 1, 4), ([record], 4), 6, "done"]


def test_where_nothing_was_decided_nothing_is_done() -> None:
    assert carried_out() == []


@pytest.mark.parametrize(
    "wanted",
    [
        {"hard_state": b"voted for 1"},
        {"append": (LeaderChange(leader_id=1),)},
        {"messages": (PeerMessage(2, VoteRequest()),)},
        {"isr_change": IsrChange(isr=(1, 2), leader_epoch=4, partition_epoch=0)},
    ],
    ids=lambda wanted: "".join(wanted),
)
def test_what_one_broker_has_no_way_to_do_is_refused_and_nothing_beside_it_is_done(wanted: dict[str, Any]) -> None:
    replica = Told()
    election = Deciding(Ready(role=Role.LEADER, leader_id=1, leader_epoch=4, **wanted), told=replica.told)

    with pytest.raises(PluginError, match="the election Deciding needs a cluster"):
        carry_out(cast("Election", election), replica)
    assert replica.told == []


def test_effects_that_never_end_are_given_up() -> None:
    with pytest.raises(PluginError, match="the election Restless has effects that never end"):
        carried_out(Ready(high_watermark=1), kind=Restless)
