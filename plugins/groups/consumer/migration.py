"""Pure core: a group changes its protocol while its members go on reading (KIP-848, "Online migration").

*Upgrade*: a member of the consumer protocol joins a classic group. Its members become members of a consumer group that
are served by the classic protocol; what the leader assigned last is both their target and what they have.

*Downgrade*: the last member of the consumer protocol leaves, or is a static member that comes back with the classic
protocol. Who remains forms a classic group in its next generation.

Both write the tombstones of the old group and the records of the new one in one batch, and look at every member, a step
each.

*Source:* the behaviour of Kafka 4.3's GroupMetadataManager, ConsumerGroup and ClassicGroup.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import DecodeError, ErrorCode, KafkaError
from odradek.kernel.wire.messages.consumer_protocol import (
    VERSION_MAX,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    new_assignment,
    partitions_by_topic,
)
from odradek.kernel.wire.messages.data_consumer_group_records import ClassicMemberMetadata, ClassicProtocol
from odradek.kernel.wire.messages.data_group_records import GroupMetadataValue

from ..classic.group import ClassicGroup
from ..classic.member import ClassicMember, MemberProtocol
from ..group import CONSUMER_PROTOCOL_TYPE
from .group import NEVER_MS, ConsumerGroup
from .member import Member

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence
    from uuid import UUID

    from odradek.kernel.api import ClusterView

    from ..classic.operations import ClassicGroups
    from ..group import Effects, ShardContext
    from ..records import GroupRecord
    from .member import Target
    from .rebalancing import Rebalancing
    from .settings import Settings

_VERSION: Final = struct.Struct(">h")


def serialized(partitions: Mapping[UUID, Iterable[int]], metadata: bytes, cluster: ClusterView) -> bytes:
    """Return partitions as a member of the classic protocol reads them.

    Args:
        partitions: By topic id; topics that are gone are left out.
        metadata: The member's subscription: its version is the one that the member reads. JoinGroup reads only what
            is said for the first protocol; where this is another one and cannot be read, the lowest version is written.
        cluster: The metadata.
    """
    named = {}
    for topic_id, numbers in partitions.items():
        topic = cluster.topic_by_id(topic_id)
        if topic is not None:
            named[topic.name] = sorted(numbers)
    (version,) = _VERSION.unpack_from(metadata) if len(metadata) >= _VERSION.size else (0,)
    return encode_assignment(new_assignment(named), min(max(version, 0), VERSION_MAX))


@attrs.frozen
class Upgrade:
    """A classic group that is about to become a consumer group; nothing has changed yet.

    Attributes:
        classic: The group as it is.
        group: The group as it will be.
        records: That make it so.
    """

    classic: ClassicGroup
    group: ConsumerGroup
    records: Sequence[GroupRecord]


class Migration:
    """Changes the protocol of groups of a shard."""

    def __init__(
        self, context: ShardContext, settings: Settings, rebalancing: Rebalancing, classic: ClassicGroups
    ) -> None:
        """Make it."""
        self._context = context
        self._cluster = context.broker.cluster
        self._settings = settings
        self._rebalancing = rebalancing
        self._classic = classic

    # -------------------------------------------------------------------------------------------------------- upgrade

    def plan_upgrade(self, classic: ClassicGroup) -> Generator[None, None, Upgrade]:
        """Return what a classic group would be as a consumer group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND: it may not, or can not, become one.
        """
        group_id = classic.group_id
        refusal = self._upgrade_refusal(classic)
        if refusal is not None:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade classic group {group_id} to consumer group because {refusal}",
            )
        group = ConsumerGroup(group_id)
        group.group_epoch = group.assignment_epoch = classic.generation_id
        group.assignment_timestamp_ms = NEVER_MS
        try:
            for classic_member in classic.members.values():
                member = self._member_of(classic, classic_member)
                group.targets[member.member_id] = {
                    topic_id: tuple(sorted(partitions)) for topic_id, partitions in member.assigned.items()
                }
                group.put_member(member)
                yield
        except DecodeError:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade classic group {group_id} to consumer group because the embedded consumer protocol "
                "is malformed.",
            ) from None
        group.metadata_hash = self._rebalancing.hash_of(group.topic_names)
        content = yield from group.content_in_steps()
        return Upgrade(classic, group, [*classic.deletion_records(), *content])

    def _upgrade_refusal(self, classic: ClassicGroup) -> str | None:
        if not self._settings.migration.allows_upgrade:
            return "online upgrade is disabled."
        if not classic.uses_consumer_protocol:
            return "the group does not use the consumer embedded protocol."
        if len(classic.members) > self._settings.size_max:
            return "the group size exceeds the consumer group maximum size."
        return None

    def _member_of(self, classic: ClassicGroup, one: ClassicMember) -> Member:
        # Only a group that has never completed a join has no protocol; Kafka fails inside then.
        if classic.protocol_name is None:
            raise DecodeError(f"{classic!r} has not chosen a protocol yet")
        try:
            told = one.metadata(classic.protocol_name)
        except KeyError:  # the group is about to choose another protocol; when it joins again its first one is read
            told = one.protocols[0].metadata
        subscription = decode_subscription(told)
        assigned: dict[UUID, dict[int, int]] = {}
        if one.assignment:
            assignment = decode_assignment(one.assignment)
            if assignment.user_data:
                raise KafkaError(
                    ErrorCode.GROUP_ID_NOT_FOUND,
                    f"Cannot upgrade classic group {classic.group_id} to consumer group because an unsupported custom "
                    "assignor is in use. Please refer to the documentation or switch to a default assignor before "
                    "re-attempting the upgrade.",
                )
            for name, partitions in partitions_by_topic(assignment).items():
                topic = self._cluster.topic(name)
                if topic is not None:
                    assigned[topic.topic_id] = dict.fromkeys(partitions, classic.generation_id)
        return Member(
            member_id=one.member_id,
            member_epoch=classic.generation_id,
            previous_epoch=classic.generation_id,
            instance_id=one.instance_id,
            rack_id=subscription.rack_id,
            rebalance_timeout_ms=one.rebalance_timeout_ms,
            client_id=one.client_id,
            client_host=one.client_host,
            topics=frozenset(subscription.topics),
            assigned=assigned,
            classic=ClassicMemberMetadata(
                session_timeout_ms=one.session_timeout_ms,
                supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in one.protocols],
            ),
        )

    def finish_upgrade(self, upgrade: Upgrade, effects: Effects) -> Generator[None, None, None]:
        """Have whoever waits in the classic group join again, now that the operation stands."""
        return self._classic.rebalances.abandon(upgrade.classic, ErrorCode.REBALANCE_IN_PROGRESS, effects)

    # ------------------------------------------------------------------------------------------------------ downgrade

    def may_downgrade_without(self, group: ConsumerGroup, leaving: Sequence[Member]) -> bool:
        """Return whether a group becomes a classic one when members leave: only classic members remain, and some do."""
        remaining = len(group.members) - len(leaving)
        remaining_classic = group.classic_count - sum(member.is_classic for member in leaving)
        return remaining_classic == remaining > 0 and self._may_be_classic(remaining)

    def may_downgrade_replacing(self, group: ConsumerGroup, replaced: Member) -> bool:
        """Return whether a group becomes a classic one when a static member comes back with the classic protocol."""
        size = len(group.members)
        return not replaced.is_classic and group.classic_count == size - 1 and self._may_be_classic(size)

    def _may_be_classic(self, size: int) -> bool:
        return self._settings.migration.allows_downgrade and size <= self._settings.classic_size_max

    def downgrade(
        self,
        group: ConsumerGroup,
        effects: Effects,
        now_ms: int,
        *,
        leaving: Sequence[Member] = (),
        joining: Member | None = None,
        rebalances: bool = True,
    ) -> Generator[None, None, None]:
        """Make a group a classic one.

        Args:
            group: The group.
            effects: Gets the records and, perhaps, answers.
            now_ms: The wall clock.
            leaving: Who leaves.
            joining: The static member that takes another one's place.
            rebalances: Whether the classic group rebalances at once.
        """
        replaced = group.static_member(joining.instance_id) if joining is not None else None
        renamed = {replaced.member_id: joining.member_id} if replaced is not None and joining is not None else {}
        without = {member.member_id for member in (*leaving, *((replaced,) if replaced is not None else ()))}
        members = [(member, group.targets.get(member.member_id, {})) for member in group.members.values()]
        members = [(member, target) for member, target in members if member.member_id not in without]
        if joining is not None and replaced is not None:
            members.append((joining, group.targets.get(replaced.member_id, {})))
        classic, record = yield from self._classic_of(group, members, now_ms)
        effects.records += yield from group.replacement_in_steps(classic, renamed)
        effects.records.append(record)
        self._classic.rebalances.saw_all(classic, classic.members.values())
        if rebalances:
            self._classic.rebalances.prepare(classic, now_ms, effects)

    def _classic_of(
        self, group: ConsumerGroup, members: Sequence[tuple[Member, Target]], now_ms: int
    ) -> Generator[None, None, tuple[ClassicGroup, GroupRecord]]:
        """Return the classic group of members and targets, as it is once its record is loaded, and that record."""
        classic = ClassicGroup(group.group_id, now_ms)
        classic.generation_id = group.group_epoch
        for member, _ in members:
            classic.add(_classic_member(member), CONSUMER_PROTOCOL_TYPE)
            yield
        protocol = classic.protocol_name = classic.select_protocol()
        for member, target in members:
            one = classic.members[member.member_id]
            one.assignment = serialized(target, one.metadata(protocol), self._cluster)
            yield
        record = classic.record()
        assert isinstance(record.value, GroupMetadataValue), f"{classic!r} has no record"
        # A group that is loaded is stable and knows its topics; what the record leaves out is given back to it.
        loaded = yield from ClassicGroup.from_record_in_steps(group.group_id, record.value)
        for one in classic.members.values():
            loaded.update(
                loaded.members[one.member_id],
                protocols=one.protocols,
                rebalance_timeout_ms=one.rebalance_timeout_ms,
                session_timeout_ms=one.session_timeout_ms,
            )
            yield
        return loaded, record


def _classic_member(member: Member) -> ClassicMember:
    assert member.classic is not None, f"{member!r} does not speak the classic protocol"
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols=tuple(MemberProtocol(one.name, one.metadata) for one in member.classic.supported_protocols),
    )
