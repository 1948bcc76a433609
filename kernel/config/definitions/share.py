"""Pure core: the keys of share groups and their coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import AtLeast, Between
from .vocabulary import CLUSTER_WIDE, HIGH, INT, LOW, MEDIUM, POSITIVE, READ_ONLY, SHORT, STRING

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("group.share.delivery.count.limit", INT, 5, Between(2, 10), MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.max.delivery.count.limit", INT, 10, Between(5, 25), MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.min.delivery.count.limit", INT, 2, Between(2, 5), MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.record.lock.duration.ms", INT, 30000, Between(1000, 3_600_000), MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.min.record.lock.duration.ms", INT, 15000, Between(1000, 30000), MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    (
        "group.share.max.record.lock.duration.ms",
        INT,
        60000,
        Between(30000, 3_600_000),
        MEDIUM,
        READ_ONLY,
        Part.SHARE_GROUPS,
    ),
    ("group.share.partition.max.record.locks", INT, 2000, Between(100, 10000), MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    (
        "group.share.max.partition.max.record.locks",
        INT,
        4000,
        Between(2000, 10000),
        MEDIUM,
        READ_ONLY,
        Part.SHARE_GROUPS,
    ),
    ("group.share.min.partition.max.record.locks", INT, 100, Between(100, 2000), MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("share.fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM, READ_ONLY, Part.PURGATORY),
    ("group.share.max.share.sessions", INT, 2000, POSITIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    (
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        None,
        MEDIUM,
        READ_ONLY,
        Part.INTERNAL,
    ),
    ("share.coordinator.state.topic.num.partitions", INT, 50, POSITIVE, HIGH, READ_ONLY, Part.SHARE_GROUPS),
    ("share.coordinator.state.topic.replication.factor", SHORT, 3, POSITIVE, HIGH, READ_ONLY, Part.SHARE_GROUPS),
    ("share.coordinator.state.topic.min.isr", SHORT, 2, POSITIVE, HIGH, READ_ONLY, Part.SHARE_GROUPS),
    ("share.coordinator.state.topic.segment.bytes", INT, 104_857_600, POSITIVE, HIGH, READ_ONLY, Part.SHARE_GROUPS),
    ("share.coordinator.threads", INT, 1, POSITIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    (
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        500,
        Between(0, 500),
        MEDIUM,
        READ_ONLY,
        Part.SHARE_GROUPS,
    ),
    ("share.coordinator.load.buffer.size", INT, 5_242_880, POSITIVE, HIGH, READ_ONLY, Part.SHARE_GROUPS),
    ("share.coordinator.state.topic.compression.codec", INT, 0, None, HIGH, READ_ONLY, Part.SHARE_GROUPS),
    ("share.coordinator.append.linger.ms", INT, -1, AtLeast(-1), MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("share.coordinator.write.timeout.ms", INT, 5000, POSITIVE, HIGH, READ_ONLY, Part.SHARE_GROUPS),
    ("share.coordinator.state.topic.prune.interval.ms", INT, 300_000, POSITIVE, LOW, READ_ONLY, Part.INTERNAL),
    ("share.coordinator.cold.partition.snapshot.interval.ms", INT, 300_000, POSITIVE, LOW, READ_ONLY, Part.INTERNAL),
    (
        "share.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        AtLeast(524_288),
        MEDIUM,
        CLUSTER_WIDE,
        Part.SHARE_GROUPS,
    ),
)

_DOCS: Final = """
group.share.delivery.count.limit
    How often a record of a share group is delivered before it is given up, where the group sets nothing itself.

group.share.max.delivery.count.limit
    The largest `share.delivery.count.limit` that a group may set.

group.share.min.delivery.count.limit
    The smallest `share.delivery.count.limit` that a group may set.

group.share.record.lock.duration.ms
    How long a consumer of a share group holds a record before others get it, where the group sets nothing itself.

group.share.min.record.lock.duration.ms
    The smallest `share.record.lock.duration.ms` that a group may set.

group.share.max.record.lock.duration.ms
    The largest `share.record.lock.duration.ms` that a group may set.

group.share.partition.max.record.locks
    How many records of a partition a share group may have out at once, where the group sets nothing itself.

group.share.max.partition.max.record.locks
    The largest `share.partition.max.record.locks` that a group may set.

group.share.min.partition.max.record.locks
    The smallest `share.partition.max.record.locks` that a group may set.

share.fetch.purgatory.purge.interval.requests
    After how many requests finished share fetches are cleared out of the waiting room.

group.share.max.share.sessions
    How many share sessions a broker remembers.

group.share.persister.class.name
    The Java class that keeps the state of share partitions.

share.coordinator.state.topic.num.partitions
    Partitions of the topic that keeps the state of share groups.

share.coordinator.state.topic.replication.factor
    Replicas of the topic that keeps the state of share groups.

share.coordinator.state.topic.min.isr
    In-sync replicas that the share state topic demands.

share.coordinator.state.topic.segment.bytes
    Segment size of the share state topic.

share.coordinator.threads
    Threads of the share coordinator in a JVM broker.

share.coordinator.snapshot.update.records.per.snapshot
    How many updates are written between two snapshots of a share partition.

share.coordinator.load.buffer.size
    How many bytes are read at a time when a share coordinator loads its partition.

share.coordinator.state.topic.compression.codec
    How the share state topic is compressed, by Kafka's number.

share.coordinator.append.linger.ms
    How long the share coordinator gathers writes into one append; -1 adapts to the load.

share.coordinator.write.timeout.ms
    How long a write of share state waits for the replicas.

share.coordinator.state.topic.prune.interval.ms
    How often old records of the share state topic are deleted.

share.coordinator.cold.partition.snapshot.interval.ms
    How often idle share partitions are snapshotted.

share.coordinator.cached.buffer.max.bytes
    The largest append buffer that the share coordinator keeps for the next time.
"""

_INTERNAL: Final = frozenset(
    {
        "group.share.persister.class.name",
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL)
