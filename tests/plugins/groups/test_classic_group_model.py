"""A classic group under clients that come, go, stay silent and commit, beside a naive model of what they may see.

* In one generation no partition has two owners, and every member gets what the leader has sent.
* All joins of a generation are answered together, and only the leader is told who they are.
* Generations only grow; a committed offset changes by commits only.
* A shard that is loaded from the log has the same offsets, and the generation that was synced last.
* Whoever waits is answered in the end.
* An assignment that could not be written is nobody's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.kernel.api import ErrorCode, KafkaError
from odradek.kernel.wire.messages.data_group_records import GroupMetadataValue
from odradek.plugins.groups.classic.states import STABLE
from odradek.testing.shard_harness import ShardHarness

from .driven import GROUP, DrivenGroups, code_of, hard_state

if TYPE_CHECKING:
    from odradek.kernel.wire.messages.api_11_join_group import JoinGroupResponse
    from odradek.plugins.groups.records import GroupRecord
    from odradek.testing.shard_harness import RecordingWaiter

PARTITIONS = range(4)
SESSION_MS = 10_000
REBALANCE_MS = 20_000
NAMES = st.sampled_from(["a", "b", "c", "d"])

GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
MAY_REFUSE = {
    *GONE,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


@attrs.define
class Client:
    """What a member knows, as a client of any library does."""

    instance_id: str | None = None
    generation: int = 0
    members: list[str] = attrs.field(factory=list)
    join: RecordingWaiter | None = None
    sync: RecordingWaiter | None = None


class ClassicGroupMachine(RuleBasedStateMachine):
    """The group and its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.driven = DrivenGroups({"group.max.size": 3, "offsets.retention.minutes": 10**6})
        # A group whose first record was refused is here, and in no log.
        self.driven.harness = ShardHarness.of(self.driven.coordinator, snapshot=lambda shard: hard_state(shard)[0])
        self.clients = {name: Client(instance_id="i" if name == "d" else None) for name in "abcd"}
        self.sent: dict[int, dict[str, bytes]] = {}
        self.owners: dict[int, dict[int, str]] = {}
        self.offsets: dict[int, int] = {}
        self.generation = 0
        self.was_refused = False

    # What clients do.

    @rule(name=NAMES, version=st.sampled_from([3, 5, 9]), topic=st.sampled_from(["t", "u"]))
    def join(self, name: str, version: int, topic: str) -> None:
        client = self.clients[name]
        if client.join is not None or client.sync is not None:
            return
        client.join = self.driven.join(
            name,
            version=version,
            instance_id=client.instance_id,
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS,
            protocols={"range": [topic]},
        )
        self.collect()

    @rule(name=NAMES)
    def come_back_as_a_new_process(self, name: str) -> None:
        """Forget everything but the instance id."""
        client = self.clients[name]
        if client.join is None and client.sync is None:
            self.driven.member_ids.pop(name, None)
            client.generation = 0
            client.members = []

    @rule(name=NAMES, shift=st.integers(0, 3))
    def sync(self, name: str, shift: int) -> None:
        client = self.clients[name]
        if client.join is not None or client.sync is not None or not client.generation:
            return
        assignments = {}
        if client.members:
            shares: dict[str, list[int]] = {member_id: [] for member_id in client.members}
            for partition in PARTITIONS:
                shares[client.members[(partition + shift) % len(client.members)]].append(partition)
            assignments = {member_id: bytes(share) for member_id, share in shares.items()}
            self.sent.setdefault(client.generation, assignments)
            assignments = self.sent[client.generation]
        client.sync = self.driven.sync(name, client.generation, assignments, instance_id=client.instance_id)
        self.collect()

    @rule(name=NAMES)
    def heartbeat(self, name: str) -> None:
        client = self.clients[name]
        code = self.driven.heartbeat(name, client.generation, instance_id=client.instance_id)

        assert code is ErrorCode.NONE or code in MAY_REFUSE
        self.collect()

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        self.driven.leave((name, None))
        self.collect()

    @rule(name=NAMES, partition=st.sampled_from(PARTITIONS), offset=st.integers(0, 1000))
    def commit(self, name: str, partition: int, offset: int) -> None:
        client = self.clients[name]
        waiter = self.driven.commit(
            {"t": {partition: offset}}, name=name, generation=client.generation, instance_id=client.instance_id
        )
        if waiter.error is None:
            assert name in self.driven.member_ids, "a stranger may not commit"
            self.offsets[partition] = offset
        else:
            assert waiter.error.code in MAY_REFUSE

    @rule(duration_ms=st.sampled_from([1, 3_000, 9_000, 25_000, 301_000]))
    def wait(self, duration_ms: int) -> None:
        self.driven.harness.advance(duration_ms)
        self.collect()

    @rule(are_refused=st.booleans())
    def refuse_writes(self, are_refused: bool) -> None:
        """Too few replicas are in sync: what needs a record fails, and was never decided."""
        self.driven.harness.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) if are_refused else None
        self.was_refused = self.was_refused or are_refused

    @rule()
    def reload(self) -> None:
        group = self.driven.shard.classic.get(GROUP)
        before = self.driven.fetch(), None if group is None or group.state is not STABLE else group.record()
        self.driven.harness.reload()
        self.collect()
        group = self.driven.shard.classic.get(GROUP)
        after = self.driven.fetch(), None if group is None or before[1] is None else group.record()

        # Who came and went while nothing could be written is known to nobody else; offsets are never so.
        assert _untimed(before) == _untimed(after) or (self.was_refused and before[0] == after[0])
        self.was_refused = self.driven.harness.refusal is not None

    # What they are told.

    def collect(self) -> None:
        """Take the answers that have come.

        What was not written is forgotten by a reload, a generation that nobody synced too; so is a group that was empty
        for long. Its numbers are given again then, and its clients hear that they are unknown.
        """
        group = self.driven.shard.classic.get(GROUP)
        last = group.generation_id if group is not None else 0
        if last < self.generation:
            self.generation = last
            self.sent = {number: sent for number, sent in self.sent.items() if number <= last}
            self.owners = {number: owners for number, owners in self.owners.items() if number <= last}
        joined = {
            name: client.join.response
            for name, client in self.clients.items()
            if client.join is not None and client.join.is_done and code_of(client.join) is ErrorCode.NONE
        }
        self.check_joined(joined)
        for name, client in self.clients.items():
            if client.join is not None and client.join.is_done:
                self.take_join(name, client)
            if client.sync is not None and client.sync.is_done:
                self.take_sync(name, client)

    def check_joined(self, joined: dict[str, JoinGroupResponse]) -> None:
        """Check that whoever is of a new generation is told so at once, but for static members who have not joined."""
        told = {response.member_id for response in joined.values()}
        for response in joined.values():
            if response.generation_id > self.generation:
                dynamic = {member.member_id for member in response.members if member.group_instance_id is None}

                assert dynamic <= told

    def take_join(self, name: str, client: Client) -> None:
        assert client.join is not None
        waiter, client.join = client.join, None
        code = code_of(waiter)
        if waiter.error is None:
            self.driven.learn(name, waiter.response)
        if code is not ErrorCode.NONE:
            assert code in MAY_REFUSE
            if code in GONE:
                self.driven.member_ids.pop(name, None)
                client.generation = 0
            return
        told = waiter.response

        assert told.generation_id >= max(self.generation, client.generation)
        assert not told.members or told.leader == told.member_id
        self.generation = client.generation = told.generation_id
        client.members = [member.member_id for member in told.members] if not told.skip_assignment else []

    def take_sync(self, name: str, client: Client) -> None:
        assert client.sync is not None
        waiter, client.sync = client.sync, None
        code = code_of(waiter)
        if code is not ErrorCode.NONE:
            assert code in MAY_REFUSE
            if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self.sent.pop(client.generation, None)  # nobody was given that: the leader may decide anew
            return
        owners = self.owners.setdefault(client.generation, {})
        for partition in waiter.response.assignment:
            holder = owners.setdefault(partition, self.place(name))

            assert holder == self.place(name), f"{partition} has two owners in generation {client.generation}"

    def place(self, name: str) -> str:
        """Return what stays the same of a member: a static one keeps its share when it comes back."""
        return self.clients[name].instance_id or self.driven.member_ids[name]

    # What always holds.

    @invariant()
    def offsets_are_what_was_committed(self) -> None:
        assert {"t": self.offsets} == self.driven.fetch() or (not self.offsets and not self.driven.fetch())

    @invariant()
    def the_group_is_sound(self) -> None:
        group = self.driven.shard.classic.get(GROUP)
        if group is None:
            return
        waiting = sum(member.join_waiter is not None for member in group.members.values())

        assert waiting == group.awaiting_join_count
        assert waiting == 0 or group.state_name == "PreparingRebalance"
        assert group.leader_id is None or group.leader_id in group.members
        assert set(group.static_members.values()) <= group.members.keys()
        assert group.pending_syncs <= group.members.keys()
        assert len(group.members) <= 4

    @precondition(lambda self: any(client.join or client.sync for client in self.clients.values()))
    @rule()
    def everybody_is_answered_in_the_end(self) -> None:
        self.driven.harness.refusal = None
        self.driven.harness.advance(700_000)
        self.collect()

        assert not any(client.join or client.sync for client in self.clients.values())


def _untimed(state: tuple[object, GroupRecord | None]) -> object:
    """Return the same without since when the group is in its state: the record of a sync tells when it began."""
    offsets, record = state
    if record is None:
        return offsets
    assert isinstance(record.value, GroupMetadataValue)
    record.value.current_state_timestamp = -1
    return offsets, record


ClassicGroupMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
TestClassicGroup = ClassicGroupMachine.TestCase
