"""Shell: how fast replicas are copied: Kafka's throttles, set before a reassignment and taken away after it.

The rates are brokers' (`leader.replication.throttled.rate`, `follower.replication.throttled.rate`), and apply to the
replicas that a topic names (`*.replication.throttled.replicas`, PARTITION:BROKER): those that are there feed, those
that are added are fed, and replicas that were in sync before are not slowed down.

*Source:* KIP-73; what `kafka-reassign-partitions --throttle` sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from odradek.cli import say
from odradek.client import ConfigOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.client import Admin
    from odradek.client.cluster import TopicInfo
    from odradek.kernel.types import TopicPartition

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"
_Place: TypeAlias = "tuple[ResourceType, str, tuple[str, ...]]"
"""What has configs, its name, and keys of it."""


@attrs.frozen
class Throttled:
    """What a throttle is set on.

    Attributes:
        brokers: Whose rates.
        leaders: By topic, the replicas that feed others, as the key has them.
        followers: Those that are fed.
    """

    brokers: frozenset[int]
    leaders: Mapping[str, tuple[str, ...]]
    followers: Mapping[str, tuple[str, ...]]


def throttled_by(wanted: Mapping[TopicPartition, tuple[int, ...]], topics: Mapping[str, TopicInfo]) -> Throttled:
    """Return what a reassignment needs to have throttled: nothing of partitions that get no new replica."""
    brokers: set[int] = set()
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for partition, replicas in sorted(wanted.items()):
        here = topics[partition.topic].partitions[partition.partition].replicas
        adding = [each for each in replicas if each not in here]
        if adding:
            brokers.update(here, adding)
            leaders.setdefault(partition.topic, []).extend(f"{partition.partition}:{each}" for each in here)
            followers.setdefault(partition.topic, []).extend(f"{partition.partition}:{each}" for each in adding)
    return Throttled(
        frozenset(brokers),
        {topic: tuple(texts) for topic, texts in leaders.items()},
        {topic: tuple(texts) for topic, texts in followers.items()},
    )


async def set_throttle(admin: Admin, throttled: Throttled, rate_bytes: int) -> None:
    """Throttle replicas, in bytes a second of each broker; those of topics that are throttled already stay so.

    Brokers that are not there are left out: they feed nobody.
    """
    for topic, names in throttled.leaders.items():
        added = {LEADERS: names, FOLLOWERS: throttled.followers[topic]}
        changes = {key: (ConfigOperation.APPEND, ",".join(texts)) for key, texts in added.items()}
        await admin.alter_configs(ResourceType.TOPIC, topic, changes)
    for broker_id in sorted(throttled.brokers & await _brokers_there(admin)):
        await admin.alter_configs(ResourceType.BROKER, str(broker_id), dict.fromkeys(RATES, str(rate_bytes)))


async def _brokers_there(admin: Admin) -> set[int]:
    """Return who is there now: what the client has seen may be as old as the moves."""
    return {node.node_id for node in (await admin.describe_cluster()).nodes}


async def release_throttle(admin: Admin, partitions: Iterable[TopicPartition]) -> bool:
    """Take throttles away that partitions no longer need; return whether none are left of those that there were.

    While others move, which may be under it, the brokers' rates stay, and what ends them is told: what moves may have
    been begun without a throttle, or by another tool, and then nobody looks for rates when it ends. Topics throttle
    these partitions no longer.
    """
    there = {topic.name for topic in await admin.list_topics(with_internal=True)}
    ongoing = await admin.list_partition_reassignments()
    wanted = {each for each in partitions if each.topic in there}
    if not ongoing:
        return await clear_throttle(admin, {each.topic for each in wanted})
    numbers: dict[str, set[str]] = {}
    for each in wanted - {*ongoing}:
        numbers.setdefault(each.topic, set()).add(str(each.partition))
    for topic, ended in sorted(numbers.items()):
        known = await admin.describe_configs(ResourceType.TOPIC, topic, keys=(LEADERS, FOLLOWERS))
        changes = {}
        for key, entry in known.items():
            texts = [text for text in (entry.value or "").split(",") if text.partition(":")[0] in ended]
            if texts:
                changes[key] = (ConfigOperation.SUBTRACT, ",".join(texts))
        if changes:
            await admin.alter_configs(ResourceType.TOPIC, topic, changes)
    if await _set_on(admin, await _rates(admin)):
        say("brokers stay throttled, as others move: `odradek reassign verify --all` ends that when nothing moves")
    return False


async def clear_throttle(admin: Admin, topics: Iterable[str]) -> bool:
    """Take throttles away from all brokers that are there and from topics; return whether there were any."""
    places = await _rates(admin)
    places += [(ResourceType.TOPIC, topic, (LEADERS, FOLLOWERS)) for topic in sorted({*topics})]
    found = await _set_on(admin, places)
    for resource_type, name, own in found:
        await admin.alter_configs(resource_type, name, dict.fromkeys(own))
    return bool(found)


async def _rates(admin: Admin) -> list[_Place]:
    """Return where the rates of all brokers that are there may be set."""
    return [(ResourceType.BROKER, str(broker_id), RATES) for broker_id in sorted(await _brokers_there(admin))]


async def _set_on(admin: Admin, places: Iterable[_Place]) -> list[_Place]:
    """Return of places those that have any of their keys set, with these."""
    found = []
    for resource_type, name, keys in places:
        known = await admin.describe_configs(resource_type, name, keys=keys)
        own = tuple(key for key, entry in known.items() if not entry.is_default and entry.value)
        if own:
            found.append((resource_type, name, own))
    return found
