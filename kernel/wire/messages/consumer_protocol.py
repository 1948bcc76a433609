"""Pure core: the consumer protocol's bytes: what members of a classic group put into JoinGroup and SyncGroup.

The broker hands these bytes on unread (KIP-62); members, the assignor of the leader, tools that describe groups and the
group coordinator that moves a group to the newer protocol (KIP-848) read them. They are a frame::

    version (int16) | ConsumerProtocolSubscription or ConsumerProtocolAssignment in that version

A version above the highest known one is read as the highest known one: later versions only add fields at the end.

*Source:* Kafka's ConsumerProtocol class; KIP-54, KIP-429 (owned partitions), KIP-792 (generation), KIP-881 (rack).

.. versionadded:: 0.1
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, TypeVar

from ..codec import decode, encode_bytes
from ..errors import DecodeError
from .data_consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
    TopicPartition,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...types import Buffer

__all__ = [
    "PROTOCOL_TYPE",
    "VERSION_MAX",
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "new_assignment",
    "new_subscription",
    "partitions_by_topic",
]

PROTOCOL_TYPE: Final = "consumer"
"""The `protocol_type` of the groups whose members speak this."""

VERSION_MAX: Final = 3
"""The highest version of both messages, and the one that members write."""

_VERSION = struct.Struct(">h")

Framed = TypeVar("Framed", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = VERSION_MAX) -> bytes:
    """Return the metadata of a JoinGroup protocol; what the version cannot carry is left out.

    Raises:
        EncodeError: There is no such version.
    """
    return _VERSION.pack(version) + encode_bytes(subscription, version)


def decode_subscription(data: Buffer) -> ConsumerProtocolSubscription:
    """Return what a member subscribes to.

    Raises:
        DecodeError: The bytes are no subscription.
    """
    return _decode(ConsumerProtocolSubscription, data)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = VERSION_MAX) -> bytes:
    """Return the assignment of a SyncGroup request.

    Raises:
        EncodeError: There is no such version.
    """
    return _VERSION.pack(version) + encode_bytes(assignment, version)


def decode_assignment(data: Buffer) -> ConsumerProtocolAssignment:
    """Return what a member was given.

    Raises:
        DecodeError: The bytes are no assignment; so are the empty bytes that a coordinator keeps for a member whom the
            leader left out.
    """
    return _decode(ConsumerProtocolAssignment, data)


def new_subscription(
    topics: Iterable[str],
    *,
    owned: Mapping[str, Sequence[int]],
    generation_id: int = -1,
    rack_id: str | None = None,
    user_data: bytes | None = None,
) -> ConsumerProtocolSubscription:
    """Return a subscription in the order that Kafka's members write: topics and partitions ascending.

    Args:
        topics: What the member subscribes to.
        owned: What it owns, partitions by topic.
        generation_id: The generation in which it owns that, -1 for none.
        rack_id: Its `client.rack`.
        user_data: What its assignor adds.
    """
    return ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=[
            ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=sorted(partitions))
            for topic, partitions in sorted(owned.items())
            if partitions
        ],
        generation_id=generation_id,
        rack_id=rack_id,
    )


def new_assignment(
    partitions: Mapping[str, Sequence[int]], *, user_data: bytes | None = None
) -> ConsumerProtocolAssignment:
    """Return an assignment; topics of which nothing is given are left out.

    Args:
        partitions: By topic.
        user_data: What the leader's assignor tells this member's.
    """
    return ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=topic, partitions=list(given)) for topic, given in partitions.items() if given
        ],
        user_data=user_data,
    )


def partitions_by_topic(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment) -> dict[str, list[int]]:
    """Return the owned or the assigned partitions by topic; a topic that stands there twice is joined."""
    items: Sequence[TopicPartition | ConsumerProtocolSubscriptionTopicPartition]
    if isinstance(message, ConsumerProtocolSubscription):
        items = message.owned_partitions
    else:
        items = message.assigned_partitions
    joined: dict[str, list[int]] = {}
    for item in items:
        joined.setdefault(item.topic, []).extend(item.partitions)
    return joined


def _decode(cls: type[Framed], data: Buffer) -> Framed:
    if len(data) < _VERSION.size:
        raise DecodeError(f"{cls.__name__}: {len(data)} bytes, too short for a version")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise DecodeError(f"{cls.__name__}: version {version}")
    return decode(cls, data, min(version, VERSION_MAX), position=_VERSION.size)
