"""Members of both protocols against naive coordinators, in any order of events: nobody owns what another one owns."""

from __future__ import annotations

import random
import uuid
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.client.cluster import Cluster
from odradek.client.group.assigning import assign
from odradek.client.group.classic_member import ClassicMember, Phase
from odradek.client.group.consumer_member import ConsumerMember
from odradek.client.group.member import Assign, Call, GroupSettings, Send
from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest
from odradek.plugins.assignors.cooperative import CooperativeStickyAssignor
from odradek.plugins.assignors.range_assignor import RangeAssignor

from .naive_coordinators import NaiveClassicGroup, NaiveConsumerGroup

TOPIC_ID = uuid.UUID(int=7)
PARTITIONS_COUNT = 5
SETTINGS = GroupSettings(group_id="g", poll_interval_ms_max=1_000_000, heartbeat_interval_ms=10)
EVENTS = st.lists(
    st.tuples(st.sampled_from(["act", "act", "act", "poll", "poll", "expire", "lose", "begin"]), st.integers(0, 2)),
    max_size=60,
)


def known_cluster() -> Cluster:
    cluster = Cluster()
    topic = MetadataResponseTopic(
        name="t",
        topic_id=TOPIC_ID,
        partitions=[MetadataResponsePartition(partition_index=n, leader_id=1) for n in range(PARTITIONS_COUNT)],
    )
    cluster.update(MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)], topics=[topic]), 0)
    return cluster


@attrs.define
class Client:
    """One member, and what drives it.

    Attributes:
        is_expired: Whether the coordinator dropped it without its knowing: what it owns then is out of date.
        call: What the polling task is at.
        waiting: The request that is not answered yet.
    """

    name: str
    member: Any
    is_expired: bool = False
    call: Call | None = None
    waiting: Any = None

    def begin_call(self) -> None:
        if self.call is None and (call := self.member.ownership.first) is not None:
            self.call = call
            self.member.ownership.begin(call)

    def poll(self, now_ms: int) -> None:
        self.member.polled(now_ms)
        self.begin_call()
        if self.call is not None:
            call, self.call = self.call, None
            self.member.call_done(call, now_ms)


class World:
    """Some clients and their coordinator."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.cluster = known_cluster()
        self.backoff = Backoff(0, 0, random.Random(1))
        self.clients: list[Client] = []

    def check(self) -> None:
        """Nobody owns what another one owns, but for those whom the coordinator has dropped."""
        owners: dict[TopicPartition, str] = {}
        for client in self.clients:
            for partition in () if client.is_expired else client.member.ownership.owned:
                assert owners.setdefault(partition, client.name) == client.name

    def event(self, what: str, which: int) -> None:
        client = self.clients[which]
        self.now_ms += 7
        if what == "act":
            self.act(client)
        elif what == "poll":
            client.poll(self.now_ms)
        elif what == "begin":
            client.begin_call()
        elif what == "expire":
            self.expire(client)
        elif what == "lose" and client.waiting is not None:
            self.lose(client)
        self.check()

    def act(self, client: Client) -> None:
        raise NotImplementedError

    def expire(self, client: Client) -> None:
        raise NotImplementedError

    def lose(self, client: Client) -> None:
        """Have the connection break: the request may have been done."""
        request, client.waiting = client.waiting, None
        client.member.on_failure(request, ConnectionFailedError("lost"), self.now_ms)

    def settle(self) -> None:
        for _ in range(60):
            for number in range(len(self.clients)):
                self.event("act", number)
                self.event("poll", number)


class ClassicWorld(World):
    """Clients in a classic group."""

    def __init__(self, assignor: Any) -> None:
        super().__init__()
        self.group = NaiveClassicGroup()
        for name in "abc":
            member = ClassicMember(SETTINGS, (assignor,), self.cluster, self.backoff)
            member.subscribe(frozenset({"t"}), None, 0)
            self.clients.append(Client(name, member))

    def act(self, client: Client) -> None:
        self.group.tick()
        if client.waiting is not None:
            answer = self.group.answers.pop(client.name, None)
            if answer is None:
                return
            request, client.waiting = client.waiting, None
            client.member.on_response(request, answer, self.now_ms)
        else:
            action = client.member.action(self.now_ms)
            if isinstance(action, Assign):
                found, counts = assign(action.assignor, action.members, action.topics, self.cluster)
                client.member.assigned(found, counts)
            elif isinstance(action, Send):
                answer = self.group.ask(client.name, action.request)
                if answer is None:
                    client.waiting = action.request
                    self.group.answers.pop(client.name, None)
                else:
                    client.member.on_response(action.request, answer, self.now_ms)
        client.is_expired = client.is_expired and bool(client.member.ownership.owned)

    def expire(self, client: Client) -> None:
        if client.member.member_id in self.group.members and client.waiting is None:
            self.group.remove(client.member.member_id)
            client.is_expired = True

    def lose(self, client: Client) -> None:
        # A broker notices, and drops members that wait; else the world would wait for a join that nobody hears.
        self.group.remove(client.member.member_id)
        client.is_expired = True
        super().lose(client)


class ConsumerWorld(World):
    """Clients in a group of the consumer protocol."""

    def __init__(self) -> None:
        super().__init__()
        self.group = NaiveConsumerGroup(TOPIC_ID, PARTITIONS_COUNT)
        for name in "abc":
            member = ConsumerMember(SETTINGS, f"id-{name}", self.cluster, self.backoff)
            member.subscribe(frozenset({"t"}), None, 0)
            self.clients.append(Client(name, member))

    def act(self, client: Client) -> None:
        action = client.member.action(self.now_ms)
        if not isinstance(action, Send):
            return
        answer = self.group.ask(action.request)  # type: ignore[arg-type] # it sends nothing else
        client.member.on_response(action.request, answer, self.now_ms)
        client.is_expired = client.is_expired and bool(client.member.ownership.owned)

    def expire(self, client: Client) -> None:
        if client.member.member_id in self.group.epochs:
            self.group.remove(client.member.member_id)
            client.is_expired = True


@pytest.mark.parametrize("assignor", [RangeAssignor(), CooperativeStickyAssignor()], ids=["eager", "cooperative"])
@given(events=EVENTS)
def test_a_classic_group_never_gives_a_partition_twice_and_settles(
    assignor: Any, events: list[tuple[str, int]]
) -> None:
    world = ClassicWorld(assignor)
    for what, which in events:
        world.event(what, which)
    world.settle()

    owned = [partition for client in world.clients for partition in client.member.ownership.owned]
    assert sorted(owned) == [TopicPartition("t", number) for number in range(PARTITIONS_COUNT)]
    counts = [len(client.member.ownership.owned) for client in world.clients]
    assert max(counts) - min(counts) <= 1
    assert {Phase.IN} == {client.member.phase for client in world.clients}
    assert len({client.member.generation_id for client in world.clients}) == 1


@given(events=EVENTS)
@example([("act", 0), ("act", 2), *[("poll", 0), ("act", 0)] * 2, ("act", 1), ("expire", 0)])
@example([("act", 2), ("act", 0), ("act", 1), ("act", 2), ("poll", 2), ("expire", 0)])
def test_a_consumer_group_never_gives_a_partition_twice_and_settles(events: list[tuple[str, int]]) -> None:
    world = ConsumerWorld()
    for what, which in events:
        world.event(what, which)
    world.settle()

    owned = {client.member.member_id: client.member.ownership.owned for client in world.clients}
    expected = {each: {TopicPartition("t", number) for number in many} for each, many in world.group.target().items()}
    assert expected == owned


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_is_not_polled_leaves_and_comes_back_with_the_next_poll(protocol: str) -> None:
    world: Any = ConsumerWorld() if protocol == "consumer" else ClassicWorld(RangeAssignor())
    world.clients = world.clients[:1]
    world.settle()
    client = world.clients[0]
    world.now_ms += SETTINGS.poll_interval_ms_max
    action = client.member.action(world.now_ms)

    assert isinstance(action, Send)
    request: Any = action.request
    assert isinstance(request, LeaveGroupRequest) or request.member_epoch == -1
    assert client.member.metadata is None
    assert len(client.member.ownership.owned) == PARTITIONS_COUNT
    assert client.member.polled(world.now_ms)
    assert client.member.ownership.first.kind.value == "lost"
    if protocol == "classic":
        world.group.remove(request.members[0].member_id)
    world.settle()
    assert len(client.member.ownership.owned) == PARTITIONS_COUNT
