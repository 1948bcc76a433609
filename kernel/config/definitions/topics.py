"""Pure core: the keys of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import AtLeast, Between, BetweenOr, ListOf, OneOf, ThrottledReplicas
from .synonyms import topic_synonyms
from .vocabulary import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LIST, LONG, MAX_LONG, MEDIUM, NOT_NEGATIVE, POSITIVE, STRING

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("segment.bytes", INT, 1_073_741_824, AtLeast(1_048_576), MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("segment.ms", LONG, 604_800_000, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("segment.jitter.ms", LONG, 0, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("segment.index.bytes", INT, 10_485_760, AtLeast(4), MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("flush.messages", LONG, MAX_LONG, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("flush.ms", LONG, MAX_LONG, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("retention.bytes", LONG, -1, None, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("retention.ms", LONG, 604_800_000, AtLeast(-1), MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("max.message.bytes", INT, 1_048_588, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("index.interval.bytes", INT, 4096, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("delete.retention.ms", LONG, 86_400_000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("min.compaction.lag.ms", LONG, 0, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("max.compaction.lag.ms", LONG, MAX_LONG, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("file.delete.delay.ms", LONG, 60000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("min.cleanable.dirty.ratio", DOUBLE, 0.5, Between(0, 1), MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("cleanup.policy", LIST, ("delete",), ListOf(("compact", "delete")), MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("unclean.leader.election.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.CLUSTER),
    ("min.insync.replicas", INT, 1, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.REQUESTS),
    (
        "compression.type",
        STRING,
        "producer",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        MEDIUM,
        CLUSTER_WIDE,
        Part.LOG,
    ),
    ("compression.gzip.level", INT, -1, BetweenOr(1, 9, -1), MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("compression.lz4.level", INT, 9, Between(1, 17), MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("compression.zstd.level", INT, 3, Between(-131_072, 22), MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("preallocate", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.LOG),
    (
        "message.timestamp.type",
        STRING,
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        MEDIUM,
        CLUSTER_WIDE,
        Part.LOG,
    ),
    ("message.timestamp.before.max.ms", LONG, MAX_LONG, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("message.timestamp.after.max.ms", LONG, 3_600_000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("leader.replication.throttled.replicas", LIST, (), ThrottledReplicas(), MEDIUM, CLUSTER_WIDE, Part.CLUSTER),
    ("follower.replication.throttled.replicas", LIST, (), ThrottledReplicas(), MEDIUM, CLUSTER_WIDE, Part.CLUSTER),
    ("remote.storage.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("local.retention.ms", LONG, -2, AtLeast(-2), MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("local.retention.bytes", LONG, -2, AtLeast(-2), MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.copy.disable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.delete.on.disable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("internal.segment.bytes", INT, None, None, MEDIUM, CLUSTER_WIDE, Part.LOG),
)

_DOCS: Final = """
segment.bytes


segment.ms


segment.jitter.ms


segment.index.bytes


flush.messages


flush.ms


retention.bytes


retention.ms


max.message.bytes


index.interval.bytes


delete.retention.ms


min.compaction.lag.ms


max.compaction.lag.ms


file.delete.delay.ms


min.cleanable.dirty.ratio


cleanup.policy


unclean.leader.election.enable


min.insync.replicas


compression.type


compression.gzip.level


compression.lz4.level


compression.zstd.level


preallocate


message.timestamp.type


message.timestamp.before.max.ms


message.timestamp.after.max.ms


leader.replication.throttled.replicas


follower.replication.throttled.replicas


remote.storage.enable


local.retention.ms


local.retention.bytes


remote.log.copy.disable


remote.log.delete.on.disable


internal.segment.bytes

"""

_INTERNAL: Final = frozenset(
    {
        "internal.segment.bytes",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.TOPIC, synonyms=topic_synonyms, internal=_INTERNAL)
