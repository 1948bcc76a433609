"""Pure core: what members of a classic group tell each other through the group coordinator."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "ConsumerProtocolAssignment",
    "ConsumerProtocolSubscription",
]


class TopicPartition(Message):
    """An item of `ConsumerProtocolAssignment.assigned_partitions`."""

    topic: str = f.string()
    partitions: list[int] = f.int32s()


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """ConsumerProtocolAssignment, to be coded by itself."""

    assigned_partitions: list[TopicPartition] = f.array(TopicPartition)
    user_data: bytes | None = f.binary(nullable="0+", default=None)


class ConsumerProtocolSubscriptionTopicPartition(Message):
    """An item of `ConsumerProtocolSubscription.owned_partitions`."""

    topic: str = f.string()
    partitions: list[int] = f.int32s()


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """ConsumerProtocolSubscription, to be coded by itself."""

    topics: list[str] = f.strings()
    user_data: bytes | None = f.binary(nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = f.array(
        ConsumerProtocolSubscriptionTopicPartition, "1+", ignorable=True
    )
    generation_id: int = f.int32("2+", default=-1, ignorable=True)
    rack_id: str | None = f.string("3+", nullable="3+", default=None, ignorable=True)
