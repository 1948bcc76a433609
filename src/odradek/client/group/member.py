"""Pure core: what a member of a group, of either protocol, asks of those who drive it.

Two tasks drive a member. One keeps the membership: it does what `action` says, and hands the answers back. The other is
the task that polls: it does the calls (tells the user's listener, commits before partitions go), one after the other,
for the member's next step waits for them::

    membership task:  action() -> Send, Assign or Rest;  on_response, on_failure, assigned
    polling task:     ownership.first -> ownership.begin(call) -> the listener -> call_done(call)

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.contracts.assignor import Assignor, GroupMember, MemberAssignment
    from odradek.kernel.peers.errors import ClientError
    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire import Message

NEVER: Final = float("inf")
NO_GENERATION: Final = -1
NO_MEMBER: Final = ""


@attrs.frozen(kw_only=True)
class GroupSettings:
    """What a consumer's settings say of its group; times in milliseconds.

    Attributes:
        group_id: `group.id`.
        instance_id: `group.instance.id`: a static member.
        is_consumer_protocol: `group.protocol=consumer`.
        assignor_names: `partition.assignment.strategy`: names, or the assignors themselves.
        remote_assignor: `group.remote.assignor`; None leaves it to the broker.
        session_timeout_ms: Of the classic protocol.
        heartbeat_interval_ms: Of the classic protocol.
        poll_interval_ms_max: `max.poll.interval.ms`, and so how long a rebalance waits for this member.
        is_auto_commit: `enable.auto.commit`.
        auto_commit_interval_ms: How often.
        excludes_internal_topics: Whether a pattern matched here passes internal topics over.
        rack: `client.rack`.
        retry_backoff_ms: The pause before a request is tried again.
    """

    group_id: str
    instance_id: str | None = None
    is_consumer_protocol: bool = False
    assignor_names: tuple[object, ...] = ()
    remote_assignor: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    poll_interval_ms_max: int = 300_000
    is_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    excludes_internal_topics: bool = True
    rack: str | None = None
    retry_backoff_ms: int = 100


@attrs.frozen
class GroupMetadata:
    """Who commits: what a transactional producer sends along with a consumer's offsets (KIP-447).

    Attributes:
        group_id: The group.
        generation_id: The generation, or the member epoch; -1 for a consumer that is no member.
        member_id: Empty for a consumer that is no member.
        instance_id: Of a static member.

    .. versionadded:: 0.1
    """

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = NO_MEMBER
    instance_id: str | None = None


@attrs.frozen
class Send:
    """Send a request to the coordinator, and hand its answer back.

    Attributes:
        request: The request.
        timeout_ms: How long the answer may take; None for the client's usual time.
    """

    request: Message
    timeout_ms: int | None = None


@attrs.frozen
class Assign:
    """As the leader of a classic group: find out how many partitions there are, and distribute them.

    Attributes:
        assignor: Who does it.
        members: All members.
        topics: All that somebody subscribed to.
        skips: Whether the group keeps the assignment it has, so that only the topics are to be counted (KIP-814).
    """

    assignor: Assignor
    members: Sequence[GroupMember]
    topics: frozenset[str]
    skips: bool


@attrs.frozen
class Rest:
    """Do nothing until then, unless something happens; monotonic milliseconds, infinity for never."""

    until_ms: float


Action: TypeAlias = Send | Assign | Rest


class CallKind(Enum):
    """What the polling task has to tell the user's listener."""

    REVOKED = "revoked"
    ASSIGNED = "assigned"
    LOST = "lost"


@attrs.frozen(eq=False)
class Call:
    """Something for the polling task to do; told apart by identity.

    Attributes:
        kind: What happens.
        partitions: To which partitions; nobody is told of none that are revoked or lost.
        commits: Whether positions are committed before, where the consumer commits by itself.
    """

    kind: CallKind
    partitions: frozenset[TopicPartition]
    commits: bool = False


@attrs.define
class Ownership:
    """What a member owns, and what is still to be done about it.

    A call that is under way when the member is thrown out of its group ends all the same; then what it changed is taken
    out of the calls that came instead.

    Attributes:
        owned: The partitions that the member has now: from the beginning of the call that assigns them to the end of
            the one that takes them away.
        calls: What the polling task has to do, first to last.
    """

    owned: frozenset[TopicPartition] = frozenset()
    calls: deque[Call] = attrs.field(factory=deque)

    @property
    def first(self) -> Call | None:
        """What the polling task has to do now."""
        return self.calls[0] if self.calls else None

    def add(
        self, kind: CallKind, partitions: frozenset[TopicPartition], *, commits: bool = False, is_needed: bool = False
    ) -> None:
        """Have something done, if there are partitions that it is about, or it `is_needed` without."""
        if partitions or is_needed:
            self.calls.append(Call(kind, partitions, commits))

    def begin(self, call: Call) -> None:
        """Take note that the polling task begins with a call."""
        if call.kind is CallKind.ASSIGNED:
            self.owned |= call.partitions

    def finish(self, call: Call) -> bool:
        """Take note of its end; return whether the member still stood by it."""
        if call.kind is not CallKind.ASSIGNED:
            self.owned -= call.partitions
        if self.first is call:
            self.calls.popleft()
            return True
        left = (attrs.evolve(each, partitions=each.partitions & self.owned) for each in self.calls)
        self.calls = deque(each for each in left if each.partitions)
        return False


class Member(Protocol):
    """A member of a group, of either protocol; one owner, no awaits between its calls needed.

    Attributes:
        ownership: What it owns, and what the polling task has to do.
        error: Why the member has failed for good; raised by every poll.
    """

    ownership: Ownership
    error: ClientError | None

    @property
    def is_rebalancing(self) -> bool:
        """Whether a rebalance is under way, in which commits are refused."""
        ...

    @property
    def metadata(self) -> GroupMetadata | None:
        """Who commits now; None while the member is not in its group."""
        ...

    def subscribe(self, topics: frozenset[str], regex: str | None, now_ms: int) -> None:
        """Want these topics, and those that the broker finds by a pattern (consumer protocol only)."""
        ...

    def polled(self, now_ms: int) -> bool:
        """Take note that the user polls; who had left for not polling comes back: return whether that is so."""
        ...

    def waits(self, is_waiting: bool, now_ms: int) -> None:
        """Take note that a poll waits for records, or no longer: as long as it does, the user is not stuck."""
        ...

    def action(self, now_ms: int) -> Action:
        """Return what the membership task has to do next."""
        ...

    def on_response(self, request: Message, response: Message, now_ms: int) -> bool:
        """Take an answer; return whether another broker must be found that coordinates."""
        ...

    def on_failure(self, request: Message, error: ClientError, now_ms: int) -> None:
        """Take note that a request brought no answer."""
        ...

    def assigned(self, assignments: Mapping[str, MemberAssignment], counts: Mapping[str, int]) -> None:
        """Take what the assignor gave each member, and how many partitions it went by (classic protocol only)."""
        ...

    def call_done(self, call: Call, now_ms: int) -> None:
        """Take note that a call was done."""
        ...

    def on_commit_refused(self, metadata: GroupMetadata, code: int, now_ms: int) -> None:
        """Take note that the coordinator refused a commit by these with an error about the membership."""
        ...

    def topics_changed(self, now_ms: int) -> None:
        """Take note that the client's image of the cluster is new."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Have the group rebalance."""
        ...

    def leave(self, reason: str, *, is_for_good: bool) -> Message | None:
        """Leave the group: what to send, if anything; the member has no partitions and no place any more.

        Args:
            reason: For the broker's log.
            is_for_good: Whether a static member gives up its place too.
        """
        ...


def by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    """Return partitions by topic, ascending."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found
