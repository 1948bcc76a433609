"""Groups of the consumer protocol beside a naive model: honest members that forget, lose answers, die and come back."""

from __future__ import annotations

import copy
from typing import Any

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.kernel.api import ErrorCode, KafkaError
from odradek.kernel.wire.messages.consumer_protocol import decode_assignment, partitions_by_topic
from odradek.plugins.groups.consumer.group import ConsumerGroup
from odradek.plugins.groups.consumer.member import MemberState

from ..driven import GROUP, code_of
from .driven_consumers import DrivenConsumers, hard_state

Owned = frozenset[tuple[str, int]]

SESSION_MS = 45_000
REBALANCE_MS = 20_000
TOPICS = ("t", "u", "v")
NAMES = st.sampled_from(["a", "b", "c", "d"])
CLASSIC_NAMES = st.sampled_from(["x", "y"])
FENCED = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}


@attrs.define
class Client:
    """A member as it sees itself.

    Attributes:
        epoch: That it was told last; 0 when it has to join.
        owned: What it reads.
        topics: What it subscribes to.
        regex: Or by which expression.
        instance_id: Its own, if it is static.
        is_away: Whether it has left for now.
    """

    epoch: int = 0
    owned: Owned = frozenset()
    topics: tuple[str, ...] = ("t",)
    regex: str | None = None
    instance_id: str | None = None
    is_away: bool = False


class ConsumerGroupModel(RuleBasedStateMachine):
    """Clients that follow the protocol's rules, and what must hold whatever happens to them."""

    def __init__(self) -> None:
        super().__init__()
        self.driven = DrivenConsumers({"group.consumer.migration.policy": "upgrade"}, {"t": 4, "u": 2})
        self.clients: dict[str, Client] = {}
        self.classic: dict[str, Client] = {}
        self.renamed = 0
        self.last_epochs = (0, 0)

    @initialize(interval_ms=st.sampled_from([0, 1000]))
    def space_assignments(self, interval_ms: int) -> None:
        self.driven.broker.config.set("group.consumer.assignment.interval.ms", interval_ms)

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.driven.shard.context.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    # ------------------------------------------------------------------------------------------------ what clients do

    @rule(name=NAMES, topics=st.lists(st.sampled_from(TOPICS), unique=True, max_size=3), is_static=st.booleans())
    def join(self, name: str, topics: list[str], is_static: bool) -> None:
        """A client joins, or begins anew under its own id."""
        if name not in self.clients:
            self.clients[name] = Client(instance_id=f"i{name}" if is_static else None)
            self.driven.member_ids[name] = name
        client = self.clients[name]
        client.topics, client.regex = tuple(topics), None
        self.send_join(name)

    @rule(name=NAMES, regex=st.sampled_from(["t", "[tu]", "t|v", "w.*", ".*"]))
    def join_by_expression(self, name: str, regex: str) -> None:
        client = self.clients.setdefault(name, Client())
        self.driven.member_ids.setdefault(name, name)
        client.topics, client.regex = (), regex
        self.send_join(name)

    def send_join(self, name: str) -> None:
        client = self.clients[name]
        was_away = client.is_away
        if was_away:
            # Whoever comes back for a static member comes under another id.
            self.renamed += 1
            self.driven.member_ids[name] = f"{name}{self.renamed}"
        client.owned, client.is_away = frozenset(), False
        waiter = self.driven.enter(
            name,
            *client.topics,
            instance_id=client.instance_id,
            subscribed_topic_regex=client.regex or "",
            rebalance_timeout_ms=REBALANCE_MS,
        )
        if waiter.error is None:
            self.take(client, waiter.response)
            return
        # A static member that was not heard of for a while is still in its own way.
        assert waiter.error.code is ErrorCode.UNRELEASED_INSTANCE_ID
        assert client.instance_id is not None
        client.epoch = 0

    def take(self, client: Client, told: Any) -> None:
        """Take an answer: let go of what is not in it, read what is new."""
        client.epoch = told.member_epoch
        if told.assignment is not None:
            given = self.driven.names(told.assignment.topic_partitions)
            client.owned = frozenset((topic, part) for topic, parts in given.items() for part in parts)

    def told_owned(self, owned: Owned) -> dict[str, list[int]]:
        by_topic: dict[str, list[int]] = {}
        for topic, part in sorted(owned):
            by_topic.setdefault(topic, []).append(part)
        return by_topic

    @rule(name=NAMES, tells=st.booleans(), is_lost=st.booleans())
    def beat(self, name: str, tells: bool, is_lost: bool) -> None:
        """A client sends a heartbeat, telling what it owns or not; the answer may get lost."""
        client = self.clients.get(name)
        if client is None or client.epoch <= 0:
            return
        owned = self.driven.partitions(self.told_owned(client.owned)) if tells else None
        waiter = self.driven.beat(name, client.epoch, topic_partitions=owned, instance_id=client.instance_id)
        if waiter.error is not None:
            assert waiter.error.code in FENCED
            client.epoch, client.owned = 0, frozenset()
        elif not is_lost:
            self.take(client, waiter.response)

    @rule(name=NAMES, tells=st.booleans(), joins=st.booleans())
    def beat_while_nothing_can_be_written(self, name: str, tells: bool, joins: bool) -> None:
        """What could not be written was never decided, and the client knows nothing of it."""
        client = self.clients.get(name)
        group = self.group
        if client is None or group is None or (client.epoch <= 0 and not joins):
            return
        before = copy.deepcopy(hard_state(self.driven.shard))
        owned = self.driven.partitions(self.told_owned(client.owned)) if tells else None
        self.driven.harness.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if joins:
            self.driven.enter(name, *TOPICS, instance_id=client.instance_id, rebalance_timeout_ms=REBALANCE_MS)
        else:
            self.driven.beat(name, client.epoch, topic_partitions=owned, instance_id=client.instance_id)
        self.driven.harness.refusal = None

        assert before == hard_state(self.driven.shard)

    @rule(name=NAMES, is_for_now=st.booleans())
    def leave(self, name: str, is_for_now: bool) -> None:
        client = self.clients.get(name)
        if client is None or client.epoch <= 0:
            return
        leaves_for_now = is_for_now and client.instance_id is not None
        self.driven.beat(name, -2 if leaves_for_now else -1, instance_id=client.instance_id)
        client.epoch, client.owned, client.is_away = 0, frozenset(), leaves_for_now

    @precondition(lambda self: self.group is not None and not self.group.is_empty)
    @rule(name=CLASSIC_NAMES, topics=st.lists(st.sampled_from(TOPICS), unique=True, min_size=1, max_size=2))
    def join_with_the_classic_protocol(self, name: str, topics: list[str]) -> None:
        client = self.classic.setdefault(name, Client())
        client.topics = tuple(topics)
        self.join_classic(name)

    @rule(name=CLASSIC_NAMES)
    def beat_with_the_classic_protocol(self, name: str) -> None:
        client = self.classic.get(name)
        if client is None or client.epoch <= 0 or self.group is None:
            return
        code = self.driven.heartbeat(name, client.epoch)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join_classic(name)
        elif code is not ErrorCode.NONE:
            assert code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
            client.epoch, client.owned = 0, frozenset()
            self.driven.member_ids.pop(name, None)

    def join_classic(self, name: str) -> None:
        client = self.classic[name]
        if self.group is None or self.group.is_empty:
            return
        known = self.driven.member_ids.get(name)
        if known is not None and known not in self.group.members:
            client.owned = frozenset()
        waiter = self.driven.join_classic(name, client.topics, owned=self.told_owned(client.owned))
        if code_of(waiter) is ErrorCode.MEMBER_ID_REQUIRED:
            waiter = self.driven.join_classic(name, client.topics, owned={})
        assert code_of(waiter) is ErrorCode.NONE
        client.epoch = waiter.response.generation_id
        synced = self.driven.sync(name, client.epoch)
        if code_of(synced) is ErrorCode.NONE:
            given = partitions_by_topic(decode_assignment(synced.response.assignment))
            client.owned = frozenset((topic, part) for topic, parts in given.items() for part in parts)
        else:
            assert code_of(synced) is ErrorCode.REBALANCE_IN_PROGRESS

    # -------------------------------------------------------------------------------------------- what happens to them

    @rule(duration_ms=st.sampled_from([0, 1, 999, 5_000, 11_000, REBALANCE_MS, SESSION_MS]))
    def wait(self, duration_ms: int) -> None:
        self.driven.harness.advance(duration_ms)

    @rule()
    def start_the_coordinator_anew(self) -> None:
        self.driven.harness.reload()

    @rule(name=st.sampled_from(TOPICS), more=st.integers(1, 2))
    def grow(self, name: str, more: int) -> None:
        known = self.driven.broker.cluster.topic(name)
        self.driven.create_topic(name, min((known.partitions_count if known else 0) + more, 6))

    @rule(name=NAMES, off=st.sampled_from([-1, 1, 7]))
    def a_stranger_uses_a_members_name(self, name: str, off: int) -> None:
        """A request in an epoch that is not the member's, with partitions that it was never given, changes nothing."""
        group = self.group
        member = group.members.get(self.driven.member_ids.get(name, name)) if group is not None else None
        if group is None or member is None or member.member_epoch + off <= 0 or member.instance_id is not None:
            return
        before = len(self.driven.harness.log)
        owned = self.driven.partitions({"t": [77]})
        waiter = self.driven.beat(name, member.member_epoch + off, topic_partitions=owned)

        assert waiter.error_code is ErrorCode.FENCED_MEMBER_EPOCH
        assert before == len(self.driven.harness.log)

    # ------------------------------------------------------------------------------------------------- what must hold

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        group = self.group
        if group is None:
            return
        given: dict[tuple[Any, int], str] = {}
        for member in group.members.values():
            for held in (member.assigned, member.revoking):
                for topic_id, parts in held.items():
                    for part in parts:
                        assert given.setdefault((topic_id, part), member.member_id) == member.member_id
                        assert part in group.owned_of(topic_id)

    @invariant()
    def no_two_clients_read_the_same(self) -> None:
        group = self.group
        members = group.members if group is not None else {}
        reading: dict[tuple[str, int], str] = {}
        for name, client in (*self.clients.items(), *self.classic.items()):
            # Whoever the coordinator has given up has to give up by itself, when its session is over.
            if self.driven.member_ids.get(name) in members:
                for partition in client.owned:
                    assert reading.setdefault(partition, name) == name

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.group
        if group is None:
            self.last_epochs = (0, 0)
            return
        epochs = (group.group_epoch, group.assignment_epoch)

        assert epochs[0] >= self.last_epochs[0]
        assert epochs[1] >= self.last_epochs[1]
        assert epochs[1] <= epochs[0]
        assert all(member.member_epoch <= group.assignment_epoch for member in group.members.values())
        self.last_epochs = epochs

    @invariant()
    def who_must_let_go_has_a_deadline(self) -> None:
        group = self.group
        for member in group.members.values() if group is not None else ():
            assert ("consumer session", GROUP, member.member_id) in self.driven.harness.armed
            if member.state is MemberState.UNREVOKED_PARTITIONS and not member.is_classic:
                assert ("consumer rebalance", GROUP, member.member_id) in self.driven.harness.armed

    def teardown(self) -> None:
        """Every member that heartbeats honestly gets what it shall have, and all that is read is read by somebody."""
        self.driven.harness.advance(SESSION_MS)
        for _ in range(40):
            for name, client in self.clients.items():
                if client.epoch <= 0 and not client.is_away:
                    self.send_join(name)
                self.beat(name, tells=True, is_lost=False)
            for name in self.classic:
                self.beat_with_the_classic_protocol(name)
            self.driven.harness.advance(1_001)
        group = self.group
        if group is None or group.is_empty:
            return
        cluster = self.driven.broker.cluster
        names = {name for member in group.members.values() for name in group.topics_of(member)}
        expected = {
            (view.topic_id, part)
            for name in names
            if (view := cluster.topic(name)) is not None
            for part in range(view.partitions_count)
        }
        given = {
            (topic_id, part)
            for member in group.members.values()
            for topic_id, parts in member.assigned.items()
            for part in parts
        }

        assert group.state_name == "Stable"
        assert expected == given
        for member in group.members.values():
            assert {topic_id: tuple(sorted(parts)) for topic_id, parts in member.assigned.items()} == {
                topic_id: parts for topic_id, parts in group.targets.get(member.member_id, {}).items() if parts
            }


TestConsumerGroupModel = ConsumerGroupModel.TestCase
TestConsumerGroupModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
