"""What an election has decided is carried out in order, to the end, and not at all where one broker cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import attrs
import pytest

from odradek.kernel.contracts.disk_work import DiskWork, do_now
from odradek.kernel.contracts.election import Election, IsrChange, PeerMessage, Ready, Role
from odradek.kernel.errors import PluginError, StorageError
from odradek.kernel.partitions.election_driver import carry_out, walk
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


class Noted:
    """A disk work that notes its halves."""

    def __init__(self, told: list[object], name: str, error: Exception | None = None) -> None:
        self._told, self._name, self._error = told, name, error

    def run(self) -> None:
        self._told.append(f"{self._name} runs")
        if self._error is not None:
            raise self._error

    def finish(self, error: Exception | None) -> None:
        if error is not None:
            raise error
        self._told.append(f"{self._name} is durable")


class Keeping:
    """A keeper that notes what it is told."""

    flushed_offset = 7

    def __init__(self, told: list[object], error: Exception | None = None) -> None:
        self._told, self._error = told, error

    def begin_keep(self, hard_state: bytes) -> DiskWork:
        self._told.append(hard_state)
        return Noted(self._told, "hard state", self._error)

    def begin_append(self, records: Sequence[object], leader_epoch: int) -> DiskWork:
        self._told.append((list(records), leader_epoch))
        return Noted(self._told, "append")


class Counting(Deciding):
    """An election that commits all but one record, and leads in one epoch."""

    role = Role.LEADER
    leader_epoch = 4

    def local_append(self, log_end_offset: int) -> int:
        return log_end_offset - 1


RECORD = LeaderChange(leader_id=1)
LED = Ready(hard_state=b"voted", role=Role.LEADER, leader_id=1, leader_epoch=4, append=(RECORD,))
KEPT: list[object] = [b"voted", "hard state runs", "hard state is durable"]


def test_what_is_to_be_kept_is_kept_first_and_what_a_leader_appends_counts_before_it_is_told() -> None:
    replica = Told()
    ready = attrs.evolve(LED, messages=(PeerMessage(2, VoteRequest()),))
    election = cast("Election", Counting(ready, told=replica.told))
    for work in walk(
        ready,
        election,
        replica,
        keeper=Keeping(replica.told),
        send=lambda messages: replica.told.append([each.broker_id for each in messages]),
    ):
        do_now(work)

    appended = [([RECORD], 4), "append runs", "append is durable"]
    assert replica.told == [*KEPT, (Role.LEADER, 1, 4), *appended, 6, [2], "done"]


def test_who_walks_at_once_waits_for_the_disk() -> None:
    replica = Told()
    carry_out(cast("Election", Counting(LED, told=replica.told)), replica, keeper=Keeping(replica.told))

    assert replica.told[-3:] == ["append is durable", 6, "done"]


def test_whose_lead_is_lost_while_its_vote_is_kept_appends_nothing() -> None:
    replica = Told()
    election = Counting(LED, told=replica.told)
    steps = walk(LED, cast("Election", election), replica, keeper=Keeping(replica.told))
    do_now(next(steps))
    election.leader_epoch = 5
    left = list(steps)

    assert (left, replica.told) == ([], [*KEPT, (Role.LEADER, 1, 4), "done"])


def test_where_a_vote_cannot_be_kept_nothing_follows_from_it() -> None:
    replica = Told()
    keeper = Keeping(replica.told, StorageError("no space"))
    with pytest.raises(StorageError, match="no space"):
        carry_out(cast("Election", Counting(LED, told=replica.told)), replica, keeper=keeper)

    assert replica.told == KEPT[:2]


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
