"""Elections that are left alone, in piles of those that hear the same brokers."""

from __future__ import annotations

from typing import Any, cast

from odradek.kernel.partitions.quiet_followers import FollowersHeard, Stamp
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.replication.calm_voters import LOOK_THROUGH_MS, CalmVoters, Heard

LENGTH_MS = 2000
MANY = 1000


class Voice:
    """A broker that is heard, or is not."""

    def __init__(self, heard_ms: int | None = 0) -> None:
        self.now_ms = heard_ms

    def heard_ms(self) -> int | None:
        return self.now_ms


class Voters:
    """What is left alone, each with whom it hears and when."""

    def __init__(self, count: int, voice: Voice) -> None:
        self.calm = CalmVoters()
        self.replicas = [cast("Replica", f"replica {number}") for number in range(count)]
        self.hears: dict[Replica, Heard | None] = {}
        self.asked: list[Replica] = []
        for replica in self.replicas:
            self.begin(replica, voice)

    def begin(self, replica: Replica, voice: Voice, heard_ms: int = 0) -> None:
        self.hears[replica] = heard = Heard(heard_ms, voice)
        self.calm.begin(replica, LENGTH_MS, heard)

    def heard(self, replica: Replica) -> Heard | None:
        self.asked.append(replica)
        return self.hears[replica]

    def steps(self, now_ms: int) -> list[Replica | None]:
        """Return what is due, and end it."""
        self.asked.clear()
        found = []
        for each in self.calm.due(now_ms, self.heard):
            found.append(each)
            if each is not None:
                self.calm.end(each)
        return found


def test_however_many_hear_a_broker_they_are_put_off_at_once() -> None:
    voice = Voice()
    voters = Voters(MANY, voice)
    voice.now_ms = 1900

    assert voters.steps(1999) == []
    assert voters.steps(2000) == [None]
    assert (voters.asked, len(voters.calm)) == ([], MANY)
    assert voters.steps(3899) == []


def test_none_is_left_alone_whose_broker_is_not_heard_any_more() -> None:
    voice = Voice()
    voters = Voters(3, voice)
    voice.now_ms = 100
    for replica in voters.replicas:
        voters.hears[replica] = Heard(100, voice)

    assert voters.steps(2000) == [None]
    assert voters.steps(2100) == voters.replicas
    assert (len(voters.calm), voters.steps(100_000)) == (0, [])


def test_who_is_heard_for_some_of_a_pile_alone_puts_off_these_and_wakes_the_others() -> None:
    voice = Voice()
    voters = Voters(3, voice)
    first, second, third = voters.replicas
    voice.now_ms = None
    voters.hears = {first: Heard(1900, voice), second: None, third: Heard(0, voice)}

    assert voters.steps(2000) == [None, second, third]
    assert (first in voters.calm, len(voters.calm)) == (True, 1)


def test_a_pile_is_looked_through_now_and_then_whatever_is_said_of_it() -> None:
    voice = Voice()
    voters = Voters(3, voice)
    first, second, third = voters.replicas
    voters.hears[second] = None
    woken = []
    for now_ms in range(0, LOOK_THROUGH_MS + LENGTH_MS, 500):
        voice.now_ms = now_ms
        for replica in (first, third):
            voters.hears[replica] = Heard(now_ms, voice)
        woken += [each for each in voters.steps(now_ms) if each is not None]

    assert woken == [second]
    assert len(voters.calm) == 2


def test_who_hears_another_broker_by_now_is_due_with_those_that_hear_it_too() -> None:
    one, other = Voice(), Voice()
    voters = Voters(2, one)
    first, second = voters.replicas
    one.now_ms = None
    voters.hears = {first: Heard(1500, other), second: Heard(1500, other)}
    assert voters.steps(2000) == [None, None]
    other.now_ms = 3000

    assert voters.steps(3500) == [None]
    assert voters.asked == []


def test_who_was_woken_is_not_due_and_what_was_heard_of_it_is_told() -> None:
    voice = Voice()
    voters = Voters(2, voice)
    first, second = voters.replicas
    voice.now_ms = 1900
    voters.steps(2000)

    assert voters.calm.end(first) == 1900
    assert (voters.calm.end(first), first in voters.calm) == (None, False)
    voters.hears[second] = None
    voice.now_ms = None
    assert voters.steps(3900) == [second]


def test_who_is_woken_while_others_of_its_pile_are_looked_at_is_passed_over() -> None:
    voice = Voice()
    voters = Voters(3, voice)
    first, second, third = voters.replicas
    voters.hears = dict.fromkeys(voters.replicas)
    voice.now_ms = None
    due: Any = voters.calm.due(2000, voters.heard)

    assert next(due) == first
    voters.calm.end(first)
    voters.calm.end(second)
    voters.begin(second, Voice(1000), 1000)
    assert [*due] == [third]
    assert second in voters.calm


def test_a_session_that_counts_no_more_for_a_partition_says_nothing_of_those_that_it_was_asked_for_with_it() -> None:
    one, other = Stamp(100), Stamp(200)
    heard = FollowersHeard((one, other), 0)
    again = FollowersHeard((one, other), 0)

    assert (heard.heard_ms(), heard == again, hash(heard) == hash(again)) == (100, True, True)
    one.heard_ms = 300
    assert heard.heard_ms() == 200
    other.ended_count += 1
    assert heard.heard_ms() is None
    assert FollowersHeard((one, other), 1).heard_ms() == 200
    assert FollowersHeard((one, other), 1) != heard
