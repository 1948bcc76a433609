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
    ("unclean.leader.election.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.METADATA),
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
    ("leader.replication.throttled.replicas", LIST, (), ThrottledReplicas(), MEDIUM, CLUSTER_WIDE, Part.REPLICATION),
    ("follower.replication.throttled.replicas", LIST, (), ThrottledReplicas(), MEDIUM, CLUSTER_WIDE, Part.REPLICATION),
    ("remote.storage.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("local.retention.ms", LONG, -2, AtLeast(-2), MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("local.retention.bytes", LONG, -2, AtLeast(-2), MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.copy.disable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.delete.on.disable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("internal.segment.bytes", INT, None, None, MEDIUM, CLUSTER_WIDE, Part.LOG),
)

_DOCS: Final = """
segment.bytes
    The size at which a segment is closed and a new one begun.

segment.ms
    The age at which a segment is closed, so that retention and compaction can get at it.

segment.jitter.ms
    How much earlier, at random, a segment may be closed, so that not all close at once.

segment.index.bytes
    The size that an index file is laid out with; a full index closes the segment.

flush.messages
    After how many records the log is forced to disk; 1 makes every acknowledged record survive a power loss.

flush.ms
    How long records may stay unforced.

retention.bytes
    How many bytes of each partition are kept when the policy deletes; -1 sets no limit.

retention.ms
    How long closed segments are kept when the policy deletes; -1 forever.

max.message.bytes
    The largest record batch that the topic takes, compressed as it came.

index.interval.bytes
    After how many bytes of batches an index entry is written: smaller finds faster and takes more space.

delete.retention.ms
    How long tombstones are kept when the policy compacts, so that slow readers see them.

min.compaction.lag.ms
    How long a record is safe from compaction.

max.compaction.lag.ms
    After how long a record must be compacted, however little is dirty.

file.delete.delay.ms
    How long a removed file stays on disk under another name, so that readers can finish.

min.cleanable.dirty.ratio
    Which share of the log must be dirty before it is compacted.

cleanup.policy
    What of a log goes: whole old segments (`delete`), all but one record of each key (`compact`), records whose own
    time has come (`ttl`: header `odradek.expires.at`, epoch milliseconds), several of these, or nothing. A name is
    accepted as long as an active plugin offers it.

unclean.leader.election.enable
    Whether a replica that is not in sync may lead when no other is left: records may be lost then.

min.insync.replicas
    How many replicas must have a batch before `acks=all` is answered.

compression.type
    How batches are compressed on disk; `producer` keeps them as they came.

compression.gzip.level
    The level when the broker compresses with gzip; -1 is zlib's own default.

compression.lz4.level
    The level when the broker compresses with LZ4.

compression.zstd.level
    The level when the broker compresses with Zstandard.

preallocate
    Whether a segment's file is laid out at its full size when it is begun.

message.timestamp.type
    Whether a record keeps the producer's time (`CreateTime`) or gets the broker's (`LogAppendTime`).

message.timestamp.before.max.ms
    How far a record's timestamp may lie behind the broker's clock.

message.timestamp.after.max.ms
    How far a record's timestamp may lie ahead of the broker's clock.

leader.replication.throttled.replicas
    Replicas whose leader is throttled: `partition:broker`, separated by commas, or `*` for all.

follower.replication.throttled.replicas
    Replicas whose follower is throttled: `partition:broker`, separated by commas, or `*` for all.

remote.storage.enable
    Whether the topic's closed segments move to tiered storage.

local.retention.ms
    How long segments that are stored remotely stay on the local disk too; -2 follows `retention.ms`.

local.retention.bytes
    How many bytes of a partition stay on the local disk once stored remotely; -2 follows `retention.bytes`.

remote.log.copy.disable
    Stops copying to tiered storage; what is there can still be read.

remote.log.delete.on.disable
    Whether remote segments are deleted when tiered storage is turned off for the topic.

internal.segment.bytes
    The size of a segment without the lower bound of `segment.bytes`; for tests.
"""

_INTERNAL: Final = frozenset(
    {
        "internal.segment.bytes",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.TOPIC, synonyms=topic_synonyms, internal=_INTERNAL)
