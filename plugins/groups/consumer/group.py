"""Pure core: a consumer group as the log has it, and what follows from its records.

Everything here is derived from records; `apply` methods are called by `replay` and nowhere else, but for a group that
is converted from a classic one: that is built beside, from the very records that are about to be written.

*Source:* KIP-848; the form of Kafka's ConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import run_at_once

from ..group import CONSUMER_PROTOCOL_TYPE, count_names
from ..group_type import GroupType
from . import records
from .access import AccessChecks
from .member import NOTHING, Member

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Generator, Iterable, Sequence
    from uuid import UUID

    import odradek.kernel.wire.messages.data_consumer_group_records as messages

    from ..classic.group import ClassicGroup
    from ..records import GroupRecord
    from .member import Target

FIRST_EPOCH: Final = 1
"""The group epoch and the assignment epoch of a group that has just been made."""

NO_ASSIGNMENT_EPOCH: Final = -1
"""The assignment epoch after its tombstone."""

NEVER_MS: Final = 0
"""In place of the time of an assignment that is not known."""

NO_NAMES: Final[Mapping[str, str]] = {}


class GroupState(Enum):
    """How far a group is; the values are how ListGroups and ConsumerGroupDescribe name it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@attrs.frozen
class ResolvedRegex:
    """The topics that match a regular expression.

    Attributes:
        topics: Their names.
        version: Of the metadata in which they were looked up.
        timestamp_ms: When they were looked up.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup(AccessChecks):
    """A group. Owned by its shard.

    Attributes:
        group_id: Its id.
        group_epoch: Grows whenever the group has to be assigned anew.
        assignment_epoch: The group epoch that the target assignment is for.
        assignment_timestamp_ms: When that was computed; `NEVER_MS` when unknown.
        metadata_hash: Of the topics that it reads, see `topics_hash`.
        members: By id.
        static_members: Member ids by instance id.
        targets: Member ids to what they shall have.
        resolved: Regular expressions to the topics that match.
        topics_by_name: How many members subscribe to a topic by its name.
        topics_by_regex: How many regular expressions match a topic.
        regexes: How many members subscribe to a regular expression.
        assignors: How many members prefer an assignor.
        classic_count: How many members speak the classic protocol.
        classic_protocols: How many of them offer a protocol.
        has_partition_metadata: Whether Kafka before 4.1 wrote a record that has to be removed.
        is_metadata_stale: Soft: whether a topic may have changed since `metadata_hash` was computed.
        changes_seen: Soft: up to which change of topics that was looked at, see `TopicHashes`.
        successor: Soft: what takes its place when its tombstone is replayed.
        assigned_at_ms: Soft: when this broker last computed targets, by the clock of timers; None for never.
        looked_up_at_ms: Soft: the same of its regular expressions.
        counted_epoch: Soft: up to which group epoch rebalances were counted.
    """

    type = GroupType.CONSUMER
    protocol_type = CONSUMER_PROTOCOL_TYPE

    def __init__(self, group_id: str) -> None:
        """Make a group without members."""
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = NEVER_MS
        self.metadata_hash = 0
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Target] = {}
        self.resolved: dict[str, ResolvedRegex] = {}
        self.topics_by_name: dict[str, int] = {}
        self.topics_by_regex: dict[str, int] = {}
        self.regexes: dict[str, int] = {}
        self.assignors: dict[str, int] = {}
        self.classic_count = 0
        self.classic_protocols: dict[str, int] = {}
        self.has_partition_metadata = False
        self._owners: dict[UUID, dict[int, int]] = {}
        self.is_metadata_stale = True
        self.changes_seen = 0
        self.successor: ClassicGroup | None = None
        self.assigned_at_ms: int | None = None
        self.looked_up_at_ms: int | None = None
        self.counted_epoch = 0

    def __repr__(self) -> str:
        return f"ConsumerGroup({self.group_id!r}, {self.state.value}, epoch {self.group_epoch})"

    # ------------------------------------------------------------------------------------------------ what it is now

    @property
    def state(self) -> GroupState:
        """How far it is; looks at every member."""
        if not self.members:
            return GroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def state_name(self) -> str:
        """Its state as ListGroups tells it."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def topic_names(self) -> set[str]:
        """All topics that somebody reads, by name or by regular expression; they need not exist."""
        return self.topics_by_name.keys() | self.topics_by_regex.keys()

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads the topic."""
        return topic in self.topics_by_name or topic in self.topics_by_regex

    def static_member(self, instance_id: str | None) -> Member | None:
        """Return who has an instance id now."""
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members[member_id] if member_id is not None else None

    def owned_of(self, topic_id: UUID) -> Container[int]:
        """Return the partitions of a topic that a member was given and has not given up."""
        return self._owners.get(topic_id, ())

    def target_of(self, member: Member) -> Target:
        """Return a member's target; a static member has that of whoever it replaces."""
        if member.instance_id is None:
            return self.targets.get(member.member_id, NOTHING)
        return self.targets.get(self.static_members.get(member.instance_id, ""), NOTHING)

    def topics_of(self, member: Member) -> frozenset[str]:
        """Return the names of what a member reads; an expression that is not resolved yet matches nothing."""
        return topics_read_by(member, self.resolved)

    def waits_for_others(self, member: Member) -> bool:
        """Return whether another member still holds something of this one's target."""
        for topic_id, partitions in self.targets.get(member.member_id, NOTHING).items():
            mine, owned = member.assigned.get(topic_id, ()), self.owned_of(topic_id)
            if any(partition not in mine and partition in owned for partition in partitions):
                return True
        return False

    def supports_protocols(self, protocol_type: str, protocols: Collection[str]) -> bool:
        """Return whether a member of the classic protocol could join with these."""
        return protocol_type == CONSUMER_PROTOCOL_TYPE and any(
            self.classic_protocols.get(name, 0) == self.classic_count for name in protocols
        )

    # --------------------------------------------------------------------------------- what it would be, for planning

    def topics_if(
        self, removed: Iterable[Member], added: Iterable[Member] = (), gone_regexes: Collection[str] = ()
    ) -> Collection[str]:
        """Return the topics that somebody would read if members came and went and expressions were no longer used."""
        by_name = dict(self.topics_by_name)
        for member in removed:
            count_names(by_name, member.topics, -1)
        for member in added:
            count_names(by_name, member.topics, 1)
        by_regex = dict(self.topics_by_regex)
        for regex in gone_regexes:
            if regex in self.resolved:
                count_names(by_regex, self.resolved[regex].topics, -1)
        return by_name.keys() | by_regex.keys()

    def preferred_assignor(self, names: Sequence[str], *, old: Member | None = None, new: Member | None = None) -> str:
        """Return the assignor that most members prefer; of several the earliest of `names`, whose first is the default.

        Args:
            names: The assignors that the broker offers, in the order of its configuration.
            old: A member as it is counted now.
            new: The same member, as it is to be counted.
        """
        counts = self.assignors
        if old is not new:
            counts = dict(counts)
            count_names(counts, _assignor_of(old), -1)
            count_names(counts, _assignor_of(new), 1)
        best = max(counts.values(), default=0)
        favourites = [name for name, count in counts.items() if count == best]
        return min(favourites, key=lambda name: names.index(name) if name in names else len(names), default=names[0])

    # ------------------------------------------------------------------------------------------------------ records

    def put_member(self, member: Member) -> None:
        """Add or change a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._recount(old, member)
        self._disown(old)
        self._own(member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it is there."""
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._recount(old, None)
        self._disown(old)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def apply_metadata(self, value: messages.ConsumerGroupMetadataValue) -> None:
        """Take a new group epoch."""
        self.group_epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def apply_member(self, member_id: str, value: messages.ConsumerGroupMemberMetadataValue) -> None:
        """Take what a member is."""
        self.put_member((self.members.get(member_id) or Member(member_id)).with_metadata(value))

    def apply_current(self, member_id: str, value: messages.ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        """Take what a member has; nothing, for a tombstone."""
        member = self.members.get(member_id)
        if value is not None:
            self.put_member((member or Member(member_id)).with_assignment(value))
        elif member is not None:
            self.put_member(member.gone())

    def apply_target(self, member_id: str, value: messages.ConsumerGroupTargetAssignmentMemberValue | None) -> None:
        """Take what a member shall have."""
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = {
                topic.topic_id: tuple(sorted(topic.partitions)) for topic in value.topic_partitions
            }

    def apply_target_metadata(self, value: messages.ConsumerGroupTargetAssignmentMetadataValue | None) -> None:
        """Take the epoch that the targets are for."""
        self.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = NEVER_MS if value is None else value.assignment_timestamp

    def apply_regex(self, regex: str, value: messages.ConsumerGroupRegularExpressionValue | None) -> None:
        """Take the topics that match a regular expression."""
        old = self.resolved.pop(regex, None)
        if old is not None:
            count_names(self.topics_by_regex, old.topics, -1)
        if value is not None:
            new = self.resolved[regex] = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
            count_names(self.topics_by_regex, new.topics, 1)

    def begin_to_time(self, now_ms: int, clock_ms: int) -> None:
        """Take how long ago things were done from what the log says; from here on the wall clock may jump.

        Args:
            now_ms: The wall clock, by which they were written down.
            clock_ms: The clock of timers.
        """
        if self.assignment_timestamp_ms != NEVER_MS:
            self.assigned_at_ms = clock_ms - max(now_ms - self.assignment_timestamp_ms, 0)
        if self.resolved:
            latest_ms = max(resolved.timestamp_ms for resolved in self.resolved.values())
            self.looked_up_at_ms = clock_ms - max(now_ms - latest_ms, 0)

    def deletion_records(self) -> list[GroupRecord]:
        """Return the tombstones of all records of the group."""
        return self.replacement_records(None)

    def replacement_records(self, successor: ClassicGroup | None) -> list[GroupRecord]:
        """Return the tombstones of a group that has no members; see `replacement_in_steps`."""
        return run_at_once(self.replacement_in_steps(successor))

    def replacement_in_steps(
        self, successor: ClassicGroup | None, renamed: Mapping[str, str] = NO_NAMES
    ) -> Generator[None, None, list[GroupRecord]]:
        """Return the tombstones of the group, at the last of which another one takes its place.

        Args:
            successor: The group that does, None for none. Whoever joins or waits in it is soft state, which its own
                record could not tell; and should the records be refused, this group is still the one of its id.
            renamed: By their present ids, ids of members that go by another one in the log already.
        """
        self.successor = successor
        group_id = self.group_id
        member_ids = [renamed.get(member_id, member_id) for member_id in self.members]
        found: list[GroupRecord] = []
        yield from _made(found, (records.current_tombstone(group_id, member_id) for member_id in member_ids))
        yield from _made(found, (records.target_tombstone(group_id, member_id) for member_id in member_ids))
        found.append(records.target_metadata_tombstone(group_id))
        yield from _made(found, (records.member_tombstone(group_id, member_id) for member_id in member_ids))
        yield from _made(found, (records.regex_tombstone(group_id, regex) for regex in self.resolved))
        found += (records.partition_metadata_tombstone(group_id), records.group_tombstone(group_id))
        return found

    def content_in_steps(self) -> Generator[None, None, list[GroupRecord]]:
        """Return the records that make this group from nothing."""
        group_id, members = self.group_id, self.members.values()
        targets = ((member.member_id, self.targets.get(member.member_id, NOTHING)) for member in members)
        found: list[GroupRecord] = []
        yield from _made(found, (records.member(group_id, member) for member in members))
        found.append(records.group(group_id, self.group_epoch, self.metadata_hash))
        yield from _made(found, (records.target(group_id, *target) for target in targets))
        found.append(records.target_metadata(group_id, self.assignment_epoch, self.assignment_timestamp_ms))
        yield from _made(found, (records.current(group_id, member) for member in members))
        return found

    # ---------------------------------------------------------------------------------------------------- counting

    def _recount(self, old: Member | None, new: Member | None) -> None:
        for counts, names_of in _COUNTED:
            before = names_of(old) if old is not None else ()
            after = names_of(new) if new is not None else ()
            if before != after:
                count_names(counts(self), before, -1)
                count_names(counts(self), after, 1)
        self.classic_count += (new is not None and new.is_classic) - (old is not None and old.is_classic)

    def _own(self, member: Member) -> None:
        for held in (member.assigned, member.revoking):
            for topic_id, partitions in held.items():
                owners = self._owners.setdefault(topic_id, {})
                later = {
                    each: owners[each] for each in owners.keys() & partitions if owners[each] > member.member_epoch
                }
                owners.update(dict.fromkeys(partitions, member.member_epoch))
                owners.update(later)

    def _disown(self, member: Member | None) -> None:
        if member is None:
            return
        for held in (member.assigned, member.revoking):
            for topic_id, partitions in held.items():
                owners = self._owners.get(topic_id, {})
                # A partition that another member was given since is no longer this one's to give up.
                for partition in [each for each in owners.keys() & partitions if owners[each] == member.member_epoch]:
                    del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)


def topics_read_by(member: Member, resolved: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """Return the names of what a member reads, given what expressions match."""
    by_regex = resolved.get(member.regex) if member.regex else None
    if by_regex is None:
        return member.topics
    return member.topics | by_regex.topics if member.topics else by_regex.topics


def _made(found: list[GroupRecord], made: Iterable[GroupRecord]) -> Generator[None, None, None]:
    """Add records to those found, a step each."""
    for record in made:
        found.append(record)
        yield


def _assignor_of(member: Member | None) -> tuple[str, ...]:
    return (member.assignor,) if member is not None and member.assignor is not None else ()


def _protocols_of(member: Member) -> tuple[str, ...]:
    """Return what is counted of a member: each name once, though a client may offer it twice."""
    return (
        () if member.classic is None else tuple(dict.fromkeys(one.name for one in member.classic.supported_protocols))
    )


_COUNTED: Final[tuple[tuple[Callable[[ConsumerGroup], dict[str, int]], Callable[[Member], Collection[str]]], ...]] = (
    (lambda group: group.topics_by_name, lambda member: member.topics),
    (lambda group: group.regexes, lambda member: (member.regex,) if member.regex else ()),
    (lambda group: group.assignors, _assignor_of),
    (lambda group: group.classic_protocols, _protocols_of),
)
"""What is counted of members, and by what."""
