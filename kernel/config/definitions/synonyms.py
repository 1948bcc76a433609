"""Pure core: which keys of the broker stand in for a key that is not set.

A topic's `retention.ms` falls back to the broker's `log.retention.ms`, then `log.retention.minutes`, then
`log.retention.hours`: the nearest that is set wins, and its unit is converted.

*Source:* Kafka 4.3 `ServerTopicConfigSynonyms`, `GroupConfig`, `DynamicBrokerConfig.brokerConfigSynonyms`.
"""

from __future__ import annotations

from typing import Final

from ..keys import ConfigKey

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000

MILLISECONDS: Final = {
    "log.roll.hours": _HOUR_MS,
    "log.roll.jitter.hours": _HOUR_MS,
    "log.retention.hours": _HOUR_MS,
    "log.retention.minutes": _MINUTE_MS,
}
"""How many milliseconds one of a key's units is, where it is not one."""

_CHAINS: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)
"""Keys of the broker that mean the same, nearest first."""

SAME_MEANING: Final = (("node.id", "broker.id"), ("log.dirs", "log.dir"), *_CHAINS[:3])
"""Keys of the broker by which operators say one thing: what a nearer source says by any of them counts.

`log.flush.scheduler.interval.ms` is left out: it stands in for `log.flush.interval.ms`, and says something of its own.
"""

_BROKER: Final = {
    "log.roll.ms": _CHAINS[0],
    "log.roll.hours": _CHAINS[0],
    "log.roll.jitter.ms": _CHAINS[1],
    "log.roll.jitter.hours": _CHAINS[1],
    "log.retention.ms": _CHAINS[2],
    "log.retention.minutes": _CHAINS[2],
    "log.retention.hours": _CHAINS[2],
    "log.flush.interval.ms": _CHAINS[3],
}

_TOPIC: Final = {
    "segment.bytes": ("log.segment.bytes",),
    "segment.ms": _CHAINS[0],
    "segment.jitter.ms": _CHAINS[1],
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": _CHAINS[3],
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": _CHAINS[2],
    "max.message.bytes": ("message.max.bytes",),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "cleanup.policy": ("log.cleanup.policy",),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
    "min.insync.replicas": ("min.insync.replicas",),
    "compression.type": ("compression.type",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.zstd.level": ("compression.zstd.level",),
    "preallocate": ("log.preallocate",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "local.retention.ms": ("log.local.retention.ms",),
    "local.retention.bytes": ("log.local.retention.bytes",),
}

_GROUP_ALONE: Final = frozenset({"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"})


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Return the keys that mean the same as a key of the broker, itself among them, nearest first."""
    return _BROKER.get(name, (name,))


def topic_synonyms(name: str) -> tuple[str, ...]:
    """Return the broker's keys that stand in for a key of a topic, nearest first; may be none."""
    return _TOPIC.get(name, ())


def group_synonyms(name: str) -> tuple[str, ...]:
    """Return the broker's key that stands in for a key of a group; may be none."""
    return () if name in _GROUP_ALONE else (f"group.{name}",)


def in_milliseconds(key: ConfigKey, value: int) -> int:
    """Convert a value of a key that may count hours or minutes.

    Returns:
        Milliseconds; a negative value, "for ever", stays -1.
    """
    return -1 if value < 0 else value * MILLISECONDS.get(key.name, 1)
