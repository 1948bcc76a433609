"""Pure core: how far partitions have come that move to other brokers."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.client.admin_values import Reassignment
    from odradek.client.cluster import PartitionInfo, TopicInfo
    from odradek.kernel.types import TopicPartition

    from .layout import PlacedPartition


class State(Enum):
    """What became of a partition that was to move."""

    DONE = "done"
    MOVING = "moving"
    OTHERWISE = "otherwise"
    """It has other replicas than it was to have, and nothing moves: cancelled, moved again, or not begun."""
    GONE = "gone"


@attrs.frozen
class Move:
    """One partition.

    Attributes:
        partition: Which.
        wanted: The replicas that it shall have.
        replicas: Those that it has, those that it leaves among them; none where it is gone.
        state: What became of it.
        copied_bytes: So much the new replicas have, while it moves.
        total_bytes: So much they are to have.
    """

    partition: TopicPartition
    wanted: tuple[int, ...]
    replicas: tuple[int, ...]
    state: State
    copied_bytes: int = 0
    total_bytes: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return it for scripts."""
        told = {"topic": self.partition.topic, "partition": self.partition.partition, "state": self.state.value}
        told |= {"wanted": self.wanted, "replicas": self.replicas}
        if self.state is State.MOVING:
            told |= {"copied_bytes": self.copied_bytes, "total_bytes": self.total_bytes}
        return told


def moves_of(
    wanted: Mapping[TopicPartition, tuple[int, ...]],
    topics: Mapping[str, TopicInfo],
    ongoing: Mapping[TopicPartition, Reassignment],
    sizes: Mapping[int, Mapping[TopicPartition, int]],
) -> list[Move]:
    """Return how far partitions have come.

    Args:
        wanted: The replicas that they shall have.
        topics: What is so, by name.
        ongoing: What is moving.
        sizes: How large replicas are, by broker.
    """
    return [
        _move_of(partition, replicas, topics.get(partition.topic), ongoing.get(partition), sizes)
        for partition, replicas in sorted(wanted.items())
    ]


def _move_of(
    partition: TopicPartition,
    wanted: tuple[int, ...],
    topic: TopicInfo | None,
    reassignment: Reassignment | None,
    sizes: Mapping[int, Mapping[TopicPartition, int]],
) -> Move:
    info = topic.partitions.get(partition.partition) if topic is not None else None
    if info is None:
        return Move(partition, wanted, (), State.GONE)
    if reassignment is None:
        state = State.DONE if info.replicas == wanted else State.OTHERWISE
        return Move(partition, wanted, info.replicas, state)
    whole = _size_of(partition, info, reassignment, sizes)
    coming = reassignment.coming  # nothing more is copied to whom an earlier plan was adding
    copied = sum(min(sizes.get(each, {}).get(partition, 0), whole) for each in coming)
    total = whole * len(coming)
    return Move(partition, wanted, reassignment.replicas, State.MOVING, copied, total)


def _size_of(
    partition: TopicPartition,
    info: PartitionInfo,
    reassignment: Reassignment,
    sizes: Mapping[int, Mapping[TopicPartition, int]],
) -> int:
    """Return how large a partition is: as its leader has it, else as the largest of those that had it before."""
    leader = sizes.get(info.leader_id, {}).get(partition)
    if leader is not None:
        return leader
    before = (each for each in reassignment.replicas if each not in reassignment.adding_replicas)
    return max((sizes.get(each, {}).get(partition, 0) for each in before), default=0)


@attrs.frozen
class Cost:
    """What a plan moves.

    Attributes:
        partitions_count: Whose replicas, or their order, change.
        replicas_count: That are copied to another broker.
        size_bytes: Of those.
    """

    partitions_count: int
    replicas_count: int
    size_bytes: int


def cost_of(partitions: Iterable[PlacedPartition], plan: Mapping[TopicPartition, tuple[int, ...]]) -> Cost:
    """Return what a plan moves."""
    gains = [
        (len({*plan[each.partition]} - {*each.replicas}), each.size_bytes)
        for each in partitions
        if each.partition in plan
    ]
    return Cost(len(gains), sum(count for count, _size in gains), sum(count * size for count, size in gains))
