"""Pure core: a classic group: its members, generation and state. Timers are in `rebalance.py`.

*Source:* KIP-62 (sessions), KIP-345 (static members), KIP-394 (required member ids), KIP-211 (expiry of offsets); the
behaviour of Kafka's ClassicGroup.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.kernel.api import NO_TIMESTAMP, ErrorCode, KafkaError, run_at_once
from odradek.kernel.wire.messages.data_group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

from ..group import CONSUMER_PROTOCOL_TYPE, count_names
from ..group_type import GroupType
from ..records import GroupRecord
from .member import ClassicMember, MemberProtocol
from .states import COMPLETING, DEAD, EMPTY, MAY_BECOME, PREPARING, STABLE, ClassicState

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from odradek.kernel.api import Waiter


class ClassicGroup:
    """A group whose leader assigns. Owned by its shard.

    Invariants: a leader is a member; `static_members` leads to members; `protocol_counts` counts the members that know
    a protocol; nobody waits for a JoinGroup unless the group prepares a rebalance; `unseen` are members.

    Attributes:
        group_id: Its id.
        generation_id: Its generation, 0 before the first.
        protocol_name: What its members assign by in this generation, or None.
        leader_id: Who assigns, or None.
        members: By id, in the order in which they came.
        static_members: Member ids by instance id.
        pending_joins: Ids that were given to members who have yet to join with them (KIP-394).
        pending_syncs: Ids of members who have yet to sync in this generation.
        unseen: Ids of members who were answered with all the others, and whose sessions are about to begin anew.
        has_new_member: Whether a member came since the initial delay was last armed.
        state: Its state; changed by `become`.
        previous_state: The state before.
        state_timestamp_ms: Since when it is in its state, or `NO_TIMESTAMP`.
    """

    type = GroupType.CLASSIC

    def __init__(self, group_id: str, now_ms: int = NO_TIMESTAMP) -> None:
        """Make an empty group."""
        self.group_id = group_id
        self.generation_id = 0
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: set[str] = set()
        self.pending_syncs: set[str] = set()
        self.unseen: dict[str, None] = {}
        self.has_new_member = False
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_timestamp_ms = now_ms
        self._protocol_type: str | None = None
        self._protocol_counts: dict[str, int] = {}
        self._subscribed_topics: frozenset[str] | None = None
        self._awaiting_join_count = 0

    def __repr__(self) -> str:
        return f"ClassicGroup({self.group_id!r}, {self.state.value}, generation {self.generation_id})"

    # --------------------------------------------------------------------------------------------- what every group has

    @property
    def protocol_type(self) -> str:
        """What its members share, `consumer` for partitions; empty when it never had a member."""
        return self._protocol_type or ""

    @property
    def protocol_type_or_none(self) -> str | None:
        """As `protocol_type`, but None where that is empty: for answers that say null then."""
        return self._protocol_type

    @property
    def state_name(self) -> str:
        """Its state as ListGroups tells it."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return self.state is EMPTY

    @property
    def is_simple(self) -> bool:
        """Whether it only stands for committed offsets: it never had a member, and no record but theirs tells of it."""
        return self._protocol_type is None and self.state is EMPTY and not self.pending_joins

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether its members read partitions, so that their subscriptions can be understood."""
        return self._protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads the topic; True when the subscriptions cannot be understood."""
        if self._subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self._subscribed_topics

    def owes_partitions(self, member: ClassicMember) -> bool:
        """Return whether a member was told to give up partitions in this generation, and has not said that it has."""
        protocol = self.protocol_name
        return self.uses_consumer_protocol and protocol is not None and member.owes_partitions(protocol)

    def validate_offset_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, is_transactional: bool, api_version: int
    ) -> None:
        """Check that the sender may commit; its partitions need not be its own. See `Group`."""
        if generation < 0 and self.state is EMPTY:
            return
        if generation >= 0 or member_id or instance_id is not None:
            self.validate_member(member_id, instance_id)
            if generation != self.generation_id:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state is COMPLETING:
            # The member knows the new generation from its JoinGroup; it has to sync first.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def validate_offset_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        """Check nothing: everybody may read the offsets of a classic group."""

    def validate_offset_delete(self) -> None:
        """Check that subscriptions can be understood, or that there are none; see `Group`."""
        if self.state is not EMPTY and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def validate_delete(self) -> None:
        """Check that it has no members; see `Group`."""
        if self.state is not EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def deletion_records(self) -> list[GroupRecord]:
        """Return its tombstone."""
        return [GroupRecord(GroupMetadataKey(group=self.group_id), None)]

    def offsets_expire_from(self) -> Callable[[int], int] | None:
        """Return from when on the retention of offsets counts: since it is empty, or since they were committed.

        Offsets of a group with members only expire when its subscriptions are known, and then by commit.
        """
        if self._protocol_type is None:
            return _since_commit
        if self.state is EMPTY:
            since_ms = self.state_timestamp_ms
            return _since_commit if since_ms == NO_TIMESTAMP else lambda commit_timestamp_ms: since_ms
        if self.state is STABLE and self.uses_consumer_protocol and self._subscribed_topics is not None:
            return _since_commit
        return None

    # ----------------------------------------------------------------------------------------------------------- states

    def become(self, state: ClassicState, now_ms: int) -> None:
        """Change the state, as the table allows."""
        assert state in MAY_BECOME[self.state], f"{self!r} may not become {state.value}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def may_rebalance(self) -> bool:
        """Whether a rebalance may begin now."""
        return PREPARING in MAY_BECOME[self.state]

    def begin_generation(self, now_ms: int) -> Generator[None, None, None]:
        """Begin the next generation with the members there are, a member a step; with none, become empty."""
        self.generation_id += 1
        self.protocol_name = (yield from self._select_protocol_in_steps()) if self.members else None
        self._subscribed_topics = self._known_topics()
        self.become(COMPLETING if self.members else EMPTY, now_ms)
        self.pending_syncs.clear()

    # ---------------------------------------------------------------------------------------------------------- members

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member may take to join again."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def awaiting_join_count(self) -> int:
        """How many members have joined the generation that is being formed."""
        return self._awaiting_join_count

    @property
    def have_all_joined(self) -> bool:
        """Whether nobody is waited for any more."""
        return not self.pending_joins and self._awaiting_join_count == len(self.members)

    def is_leader(self, member_id: str) -> bool:
        """Return whether this member assigns."""
        return self.leader_id == member_id

    def validate_member(self, member_id: str, instance_id: str | None) -> None:
        """Check that the sender is a member.

        Raises:
            KafkaError: FENCED_INSTANCE_ID for a static member that another one has replaced, else UNKNOWN_MEMBER_ID.
        """
        if instance_id is not None:
            existing = self.static_members.get(instance_id)
            if existing is not None and existing != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
            if existing is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def park_join(self, member: ClassicMember, waiter: Waiter) -> None:
        """Let a member's JoinGroup wait until all have joined; it replaces one that the member gave up."""
        self._awaiting_join_count += member.join_waiter is None
        member.join_waiter = waiter

    def take_join_waiter(self, member: ClassicMember) -> Waiter | None:
        """Return who waits for the member's JoinGroup, to be answered, if anybody does."""
        waiter, member.join_waiter = member.join_waiter, None
        self._awaiting_join_count -= waiter is not None
        return waiter

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Take a member in; the first one leads, and says what the group shares."""
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, f"{member!r} is here already"
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self._protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        count_names(self._protocol_counts, _names(member.protocols), 1)
        self._read_topics(member)
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Let a member go; the one who is here longest leads after the leader. Unknown ids are ignored."""
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.join_waiter is None, f"{member!r} still waits for an answer"
            count_names(self._protocol_counts, _names(member.protocols), -1)
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)
        self.unseen.pop(member_id, None)

    def update(
        self,
        member: ClassicMember,
        *,
        protocols: Sequence[MemberProtocol],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Take what a member says when it joins again."""
        count_names(self._protocol_counts, _names(member.protocols), -1)
        member.take_protocols(protocols)
        count_names(self._protocol_counts, _names(protocols), 1)
        self._read_topics(member)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def replace_static(self, old_member_id: str, new_member_id: str) -> ClassicMember:
        """Give a static member a new id, in its old place, and return it as it is now.

        The old id is fenced from now on; whoever waited under it has been answered before.
        """
        old = self.members[old_member_id]
        assert old.join_waiter is None, f"{old!r} still waits for an answer"
        new = ClassicMember(
            member_id=new_member_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        assert old.instance_id is not None, "only static members are replaced"
        self.members = {
            (new_member_id if member is old else member.member_id): (new if member is old else member)
            for member in self.members.values()
        }
        self.static_members[old.instance_id] = new_member_id
        if self.is_leader(old_member_id):
            self.leader_id = new_member_id
        self.pending_syncs.discard(old_member_id)
        self.unseen.pop(old_member_id, None)
        return new

    def elect_joined_leader(self) -> bool:
        """Have a member that has joined lead, if the leader has not; return whether one that has joined leads now."""
        if self.leader_id is None:
            return False
        if not self.members[self.leader_id].is_awaiting_join:
            joined = next((member for member in self.members.values() if member.is_awaiting_join), None)
            if joined is None:
                return False
            self.leader_id = joined.member_id
        return True

    # -------------------------------------------------------------------------------------------------------- protocols

    def supports(self, protocol_type: str, protocols: Iterable[MemberProtocol]) -> bool:
        """Return whether a member with these protocols may join: the group shares the same, by a common protocol."""
        if self.state is EMPTY:
            return bool(protocol_type) and bool(list(protocols))
        count = len(self.members)
        return protocol_type == self._protocol_type and any(
            self._protocol_counts.get(name, 0) == count for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """Return the protocol that most members vote for, among those that all of them know."""
        return run_at_once(self._select_protocol_in_steps())

    def _select_protocol_in_steps(self) -> Generator[None, None, str]:
        count = len(self.members)
        first = next(iter(self.members.values()))  # what all know it knows, too, and the table may be much longer
        candidates = {name for name, _ in first.protocols if self._protocol_counts[name] == count}
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[member.vote(candidates)] += 1
            yield
        return votes.most_common(1)[0][0]

    def _read_topics(self, member: ClassicMember) -> None:
        if self.uses_consumer_protocol:
            member.read_topics()

    def _known_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            read = member.topics(self.protocol_name)
            if read is None:
                return None
            topics |= read
        return frozenset(topics)

    # ---------------------------------------------------------------------------------------------------------- records

    def record(self, assignments: Mapping[str, bytes] | None = None) -> GroupRecord:
        """Return the record of this generation: with it, a coordinator that starts anew knows the members.

        Args:
            assignments: What the leader gives, by member; None for the shares that members have.
        """
        return run_at_once(self.record_in_steps(assignments))

    def record_in_steps(self, assignments: Mapping[str, bytes] | None) -> Generator[None, None, GroupRecord]:
        """Return the same, a member a step."""
        protocol = self.protocol_name
        members = []
        for member in self.members.values():
            one = MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(protocol) if protocol is not None else b"",
                assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
            )
            members.append(one)
            yield
        return GroupRecord(
            GroupMetadataKey(group=self.group_id),
            GroupMetadataValue(
                protocol_type=self.protocol_type,
                generation=self.generation_id,
                protocol=protocol,
                leader=self.leader_id,
                current_state_timestamp=self.state_timestamp_ms,
                members=members,
            ),
        )

    def take_assignment(self, value: GroupMetadataValue) -> None:
        """Take what the record of the present generation gives each member, and be stable."""
        assert value.generation == self.generation_id, f"{self!r} wrote of another generation"
        for item in value.members:
            self.members[item.member_id].assignment = item.assignment
        self.become(STABLE, value.current_state_timestamp)

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """Return the group that `record` was made of: stable, or empty if it has no members."""
        return run_at_once(cls.from_record_in_steps(group_id, value))

    @classmethod
    def from_record_in_steps(cls, group_id: str, value: GroupMetadataValue) -> Generator[None, None, ClassicGroup]:
        """Return the same, a member a step."""
        group = cls(group_id, value.current_state_timestamp)
        group.generation_id = value.generation
        group.protocol_name = value.protocol
        group.leader_id = value.leader
        group._protocol_type = value.protocol_type or None
        for item in value.members:
            member = ClassicMember(
                member_id=item.member_id,
                instance_id=item.group_instance_id,
                client_id=item.client_id,
                client_host=item.client_host,
                rebalance_timeout_ms=item.session_timeout if item.rebalance_timeout == -1 else item.rebalance_timeout,
                session_timeout_ms=item.session_timeout,
                protocols=(MemberProtocol(value.protocol or "", item.subscription),),
                assignment=item.assignment,
            )
            group.add(member, value.protocol_type)
            yield
        if group.members:
            group.state = STABLE
        group._subscribed_topics = group._known_topics()
        return group


def _names(protocols: Iterable[MemberProtocol]) -> list[str]:
    """Return what is counted of a member: each name once, though a client may offer it twice."""
    return list(dict.fromkeys(name for name, _ in protocols))


def _since_commit(commit_timestamp_ms: int) -> int:
    return commit_timestamp_ms
