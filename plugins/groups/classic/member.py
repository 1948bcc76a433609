"""Pure core: a member of a classic group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from odradek.kernel.api import DecodeError, decode
from odradek.kernel.wire.messages.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    partitions_by_topic,
)

if TYPE_CHECKING:
    from odradek.kernel.api import Waiter

READ_AHEAD_MAX: Final = 4
"""Of so many protocols a subscription is read when its member joins; clients have one or two."""
_SUBSCRIPTION_VERSION: Final = 0
"""Every version of a subscription begins like this one, and the topics are in it."""
_VERSION_SIZE: Final = 2


class MemberProtocol(NamedTuple):
    """One way of assigning that a member knows, and what it says for it: to the coordinator, any bytes."""

    name: str
    metadata: bytes


@attrs.define(eq=False)
class ClassicMember:
    """A member: who it is, what it can do, and which of its requests is waiting.

    Attributes:
        member_id: Its id.
        instance_id: The `group.instance.id` of a static member, else None.
        client_id: What its client calls itself.
        client_host: Where it comes from, as Kafka shows it.
        rebalance_timeout_ms: How long it may take to join again.
        session_timeout_ms: How long it may be silent.
        protocols: What it can do, best first.
        assignment: Its share, as the leader sent it.
        is_new: Whether it has never been answered. It does not know its id, so it cannot heartbeat; its session counts
            even while its JoinGroup waits, because nobody would notice that it is gone.
        join_waiter: Whoever waits for the answer to its JoinGroup.
        sync_waiter: Whoever waits for the answer to its SyncGroup.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Sequence[MemberProtocol]
    assignment: bytes = b""
    is_new: bool = False
    join_waiter: Waiter | None = attrs.field(default=None, repr=False)
    sync_waiter: Waiter | None = attrs.field(default=None, repr=False)
    _topics: dict[str, frozenset[str] | None] = attrs.field(factory=dict, init=False, repr=False)

    @property
    def is_static(self) -> bool:
        """Whether it keeps its place while it restarts (KIP-345)."""
        return self.instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        """Whether it has joined the generation that is being formed."""
        return self.join_waiter is not None

    @property
    def may_be_silent(self) -> bool:
        """Whether a request of it waits, so that no heartbeat is due."""
        return not self.is_new and (self.join_waiter is not None or self.sync_waiter is not None)

    def metadata(self, protocol: str) -> bytes:
        """Return what it says for a protocol that it knows.

        Raises:
            KeyError: It does not know the protocol.
        """
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(protocol)

    def take_protocols(self, protocols: Sequence[MemberProtocol]) -> None:
        """Take what it can do from now on."""
        self.protocols = protocols
        self._topics = {}

    def read_topics(self) -> None:
        """Read its subscriptions now: when a generation begins, those of all members are asked for in one go."""
        for name, _ in islice(self.protocols, READ_AHEAD_MAX):
            self.topics(name)

    def topics(self, protocol: str) -> frozenset[str] | None:
        """Return the topics that it reads by a protocol that it knows, None where it says so in no way known here.

        Raises:
            KeyError: It does not know the protocol.
        """
        if protocol not in self._topics:
            self._topics[protocol] = _topics_of(self.metadata(protocol))
        return self._topics[protocol]

    def owes_partitions(self, protocol: str) -> bool:
        """Return whether it was told to give up partitions that it owned when it joined, and has not joined since.

        Whoever gives up partitions one by one joins again when it has (KIP-429): only then does somebody else get them.

        Raises:
            KeyError: It does not know the protocol.
        """
        try:
            owned = partitions_by_topic(decode_subscription(self.metadata(protocol)))
            given = partitions_by_topic(decode_assignment(self.assignment))
        except DecodeError:
            return False  # it speaks otherwise, or was left out: how it gives up what, nobody knows here
        return any(not set(partitions) <= set(given.get(topic, ())) for topic, partitions in owned.items())

    def vote(self, candidates: Collection[str]) -> str:
        """Return the protocol that it likes best of those that every member knows; there is one."""
        return next(name for name, _ in self.protocols if name in candidates)


def _topics_of(subscription: bytes) -> frozenset[str] | None:
    try:
        version = _SUBSCRIPTION_VERSION
        read = decode(ConsumerProtocolSubscription, memoryview(subscription), version, position=_VERSION_SIZE)
    except DecodeError:
        return None
    return frozenset(read.topics)
