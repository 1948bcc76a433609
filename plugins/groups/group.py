"""Pure core: what groups of both protocols have in common, and what the parts of a shard share.

A shard holds its groups in one table, by id; a group is of one type at a time and may be replaced by one of the other
type under the same id. Committed offsets belong to the id, not to the group, and outlive such a change.

*Source:* KIP-848; the form of Kafka's Group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import attrs

from odradek.kernel.api import CoordinatorResult

from .records import GroupRecord

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping

    from odradek.kernel.api import (
        BrokerHandle,
        CoordinatorSteps,
        CoordinatorTimers,
        Message,
        ProducerIdentity,
        Waiter,
    )
    from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest
    from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
    from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest
    from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest

    from .counters import GroupCounters
    from .group_type import GroupType

PartitionCheck: TypeAlias = "Callable[[str, uuid.UUID, int], None]"
"""Takes a topic's name and id and a partition; raises `KafkaError` if its offset may not be committed."""

Decided: TypeAlias = "CoordinatorResult[GroupRecord, Any] | CoordinatorSteps"
"""What an operation returns: a result, or steps towards one."""

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of groups whose members read partitions; groups of other types share other work."""

NO_GENERATION: Final = -1
"""In place of a generation or a member epoch: the sender is no member."""


class Group(Protocol):
    """A group, as whoever does not care for its protocol sees it."""

    @property
    def group_id(self) -> str:
        """Its id."""
        ...

    @property
    def type(self) -> GroupType:
        """Its protocol."""
        ...

    @property
    def protocol_type(self) -> str:
        """What its members share, `consumer` for partitions; empty when it never had a member."""
        ...

    @property
    def state_name(self) -> str:
        """Its state as ListGroups tells it."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads the topic, or has to be taken to read it."""
        ...

    def validate_offset_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, is_transactional: bool, api_version: int
    ) -> PartitionCheck | None:
        """Check that the sender may commit.

        Args:
            member_id: Of the sender; may be empty.
            instance_id: Of the sender, if it is a static member that says so.
            generation: The generation or the member epoch that the sender is in; negative when it is in none.
            is_transactional: Whether it is TxnOffsetCommit.
            api_version: Of that request.

        Returns:
            What each partition has to pass as well, if anything; the first that fails fails the whole commit.

        Raises:
            KafkaError: It may not.
        """
        ...

    def validate_offset_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        """Check that the sender may read offsets; as `validate_offset_commit`."""
        ...

    def validate_offset_delete(self) -> None:
        """Check that offsets of topics that nobody is subscribed to may be deleted.

        Raises:
            KafkaError: They may not, whatever the topic.
        """
        ...

    def validate_delete(self) -> None:
        """Check that the group may be deleted.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        ...

    def deletion_records(self) -> list[GroupRecord]:
        """Return the tombstones of the group itself; those of its offsets are not among them."""
        ...

    def offsets_expire_from(self) -> Callable[[int], int] | None:
        """Return from when on the retention of offsets counts.

        Returns:
            A function from the time at which an offset was committed to the time from which its retention counts; None
            when no offset may expire now.
        """
        ...


@attrs.define
class Effects:
    """What an operation has decided so far; every step of it adds.

    Attributes:
        records: To be committed.
        answers: For requests that were parked before.
        steps: What is left to decide, where that is long: the end of the operation, which adds to the others.
    """

    records: list[GroupRecord] = attrs.field(factory=list)
    answers: list[tuple[Waiter, Any]] = attrs.field(factory=list)
    steps: Generator[None, None, None] | None = None

    def decided(self, response: Any) -> Decided:
        """Return the result of the operation, or the steps to it where it is not all decided yet."""
        return self.result(response) if self.steps is None else self._in_steps(self.steps, response)

    def _in_steps(
        self, steps: Generator[None, None, None], response: Any
    ) -> Generator[None, None, CoordinatorResult[GroupRecord, Any]]:
        yield from steps
        self.steps = None
        return self.result(response)

    def result(self, response: Any, *, is_atomic: bool = True) -> CoordinatorResult[GroupRecord, Any]:
        """Return the result of the operation."""
        assert self.steps is None, "not all is decided yet"
        return CoordinatorResult(self.records, response, self.answers, is_atomic)


@attrs.frozen
class Caller:
    """Who sent a request.

    Attributes:
        client_id: As in the request's header, empty for null.
        client_host: `/` and the address, as Kafka shows it.
        api_version: The request's.
    """

    client_id: str
    client_host: str
    api_version: int


@attrs.define
class ShardContext:
    """What the parts of a shard share.

    Attributes:
        broker: Configuration, metadata, ids, chance.
        timers: The shard's.
        counters: The coordinator's, of all its shards.
        groups: The shard's groups by id. `replay` alone puts them in.
        is_loaded: Whether this broker coordinates, so that replayed records are those of operations.
    """

    broker: BrokerHandle
    timers: CoordinatorTimers
    counters: GroupCounters
    groups: dict[str, Group] = attrs.field(factory=dict)
    is_loaded: bool = False


class ReplayMethod(Protocol):
    """Applies a record of one type; `value` is None for a tombstone."""

    def __call__(self, key: Any, value: Any, offset: int, producer: ProducerIdentity) -> None:
        """Apply it."""
        ...


class ShardPart(Protocol):
    """A part of a shard: offsets, classic groups, groups of the consumer protocol.

    Attributes:
        replays: By class of key, what applies a record.
    """

    @property
    def replays(self) -> Mapping[type[Message], ReplayMethod]:
        """By class of key, what applies a record."""
        ...

    def loaded(self, now_ms: int) -> Iterable[None]:
        """Everything is replayed: arm timers, a step at a time."""
        ...


def count_names(counts: dict[str, int], names: Iterable[str], change: int) -> None:
    """Add to counts; what is not counted any more is not in the table."""
    for name in names:
        if name not in counts:
            if change > 0:
                counts[name] = change
        elif counts[name] + change > 0:
            counts[name] += change
        else:
            del counts[name]


class MembershipOperations(Protocol):
    """The APIs of the classic protocol, on a group of one type; `waiter` is who asks, for answers that come later."""

    def join(self, request: JoinGroupRequest, caller: Caller, waiter: Waiter, now_ms: int) -> Decided:
        """Answer JoinGroup."""
        ...

    def sync(self, request: SyncGroupRequest, waiter: Waiter, now_ms: int) -> Decided:
        """Answer SyncGroup."""
        ...

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> CoordinatorResult[GroupRecord, Any]:
        """Answer Heartbeat."""
        ...

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Decided:
        """Answer LeaveGroup."""
        ...

    def keep(self, group_id: str, member_ids: Collection[str]) -> None:
        """Take it that members have just spoken; see `GroupShard.keep_members`."""
        ...
