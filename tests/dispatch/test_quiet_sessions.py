"""A follower that repeats what it said: of its session nothing is read, and whatever changes is told all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.dispatch.fetch_operation import read_targets
from odradek.kernel.errors import ErrorCode
from odradek.kernel.partitions.leading import advance_log_start, note_follower
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.wire.messages.api_01_fetch import FetchResponse, PartitionData
from tests.profiled import counting_calls

from .house import House, batch, follower_request, produce_request
from .memory_client import MemoryClient

VERSION = 15


class Follower:
    """Broker 2, which follows partition 0 in a session, and has all of it."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._client = MemoryClient(house.router)
        self._topic_id = house.hosted.replicas.topics["t"].topic_id
        request = follower_request(self._topic_id, 1)
        request.session_epoch = 0
        request.topics[0].partitions[0].current_leader_epoch = 1
        answer: Any = self._client.ask(request, VERSION)
        self._session_id = answer.session_id
        self._epoch = 0
        assert self._session_id

    def send(self, *, wait_ms: int = 500) -> None:
        """Repeat what it said."""
        self._epoch += 1
        request = follower_request(self._topic_id, 1)
        request.topics, request.max_wait_ms, request.min_bytes = [], wait_ms, 1
        request.session_id, request.session_epoch = self._session_id, self._epoch
        self._client.send(request, VERSION)
        self._client.turn()

    def told(self) -> list[PartitionData] | None:
        """Return what it is told of the partition, None while it waits."""
        answers = self._client.received()
        if not answers:
            return None
        (answer,) = answers
        assert isinstance(answer, FetchResponse)
        return [part for topic in answer.responses for part in topic.partitions]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.hosted.open("t")
    yield house
    house.hosted.lifecycle.close()


def lead(house: House, *, epoch: int = 1, isr: tuple[int, ...] = (1, 2)) -> Replica:
    """Lead the partition, which broker 2 follows."""
    replica = house.hosted.replicas.get("t", 0)
    state = PartitionState(leader=1, leader_epoch=epoch, partition_epoch=epoch, replicas=isr, isr=isr)
    house.hosted.lifecycle.apply_leadership(replica, state)
    return replica


def quiet_follower(house: House) -> Follower:
    """Append one record, and return a follower that has it, and was told all that there is."""
    house.client.ask(produce_request((0, batch(b"a")), acks=1), 9)
    follower = Follower(house)
    for _ in range(2):  # it is told what is committed, and is heard once
        follower.send(wait_ms=0)
        follower.told()
    return follower


@pytest.fixture
def followed(house: House) -> tuple[Replica, Follower]:
    """One record, which the follower has, and it knows that it is committed."""
    return lead(house), quiet_follower(house)


def test_who_repeats_what_it_said_is_answered_without_a_read(house: House, followed: tuple[Replica, Follower]) -> None:
    replica, follower = followed
    with counting_calls() as quiet:
        follower.send()
        house.pass_time(501)
    told = follower.told()
    append(house, replica)
    with counting_calls() as others:
        follower.send(wait_ms=0)

    assert (quiet[read_targets.__code__], quiet[note_follower.__code__], told) == (0, 0, [])
    assert (others[read_targets.__code__], others[note_follower.__code__]) == (1, 1)


def append(house: House, _replica: Replica) -> None:
    house.client.ask(produce_request((0, batch(b"b")), acks=1), 9)


def begin_later(_house: House, replica: Replica) -> None:
    advance_log_start(replica, 1)


def lead_anew(house: House, _replica: Replica) -> None:
    lead(house, epoch=2)


CHANGES: dict[str, tuple[Callable[[House, Replica], None], Callable[[PartitionData], bool]]] = {
    "a record": (append, lambda part: bool(part.records)),
    "where the log begins": (begin_later, lambda part: part.log_start_offset == 1),
    "another epoch": (lead_anew, lambda part: part.error_code == ErrorCode.FENCED_LEADER_EPOCH),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_since_is_told(house: House, followed: tuple[Replica, Follower], change: str) -> None:
    replica, follower = followed
    follower.send()
    house.pass_time(501)
    quiet = follower.told()
    make, is_it = CHANGES[change]
    make(house, replica)
    follower.send()
    house.pass_time(501)
    told = follower.told()

    assert quiet == []
    assert told is not None
    assert [is_it(part) for part in told] == [True]


def test_what_another_follower_has_had_committed_is_told(house: House) -> None:
    lead(house, isr=(1, 2, 3))
    follower = quiet_follower(house)
    follower.send()
    house.pass_time(501)
    quiet = follower.told()
    other = follower_request(house.hosted.replicas.topics["t"].topic_id, 1)
    assert other.replica_state is not None
    other.replica_state.replica_id = 3
    MemoryClient(house.router).ask(other, VERSION)
    follower.send()
    house.pass_time(501)
    told = follower.told()

    assert quiet == []
    assert told is not None
    assert [part.high_watermark for part in told] == [1]
