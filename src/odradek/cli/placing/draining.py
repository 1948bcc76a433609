"""Pure core: how a broker comes to lead nothing: another replica that is in sync is preferred, and it comes last."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.client.cluster import PartitionInfo, TopicInfo


@attrs.frozen
class LeadersPlan:
    """What makes a broker lead nothing.

    Attributes:
        changes: The orders of replicas that change; nothing is copied.
        elected: Of which partitions the preferred leader is to be elected.
        left: Those that nobody else can lead: no other replica is in sync, or there is none.
    """

    changes: dict[TopicPartition, tuple[int, ...]]
    elected: tuple[TopicPartition, ...]
    left: tuple[TopicPartition, ...]


def without_leaders(topics: Iterable[TopicInfo], broker_id: int, live: frozenset[int]) -> LeadersPlan:
    """Return how a broker comes to lead nothing, and is preferred nowhere; the others get about as many leaders each.

    Args:
        topics: All of them.
        broker_id: The broker.
        live: The brokers that are there.
    """
    partitions = [
        (TopicPartition(topic.name, number), info)
        for topic in topics
        for number, info in sorted(topic.partitions.items())
    ]
    counts = Counter(info.replicas[0] for _each, info in partitions if info.replicas)
    changes: dict[TopicPartition, tuple[int, ...]] = {}
    elected: list[TopicPartition] = []
    left: list[TopicPartition] = []
    for partition, info in sorted(partitions):
        is_preferred = info.replicas[:1] == (broker_id,)
        if not is_preferred and info.leader_id != broker_id:
            continue
        able = _able(info, broker_id, live)
        if not able:
            left.append(partition)
            continue
        chosen = min(able, key=lambda each: (counts[each], info.replicas.index(each)))
        others = [each for each in info.replicas if each not in {chosen, broker_id}]
        order = (chosen, *others, broker_id)
        if order != info.replicas:
            changes[partition] = order
        counts.subtract(info.replicas[:1])
        counts[chosen] += 1
        if info.leader_id == broker_id:
            elected.append(partition)
    return LeadersPlan(changes, tuple(elected), tuple(left))


def _able(info: PartitionInfo, broker_id: int, live: frozenset[int]) -> list[int]:
    """Return who else could lead a partition."""
    return [each for each in info.replicas if each != broker_id and each in info.isr and each in live]
