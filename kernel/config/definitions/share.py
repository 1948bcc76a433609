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


group.share.max.delivery.count.limit


group.share.min.delivery.count.limit


group.share.record.lock.duration.ms


group.share.min.record.lock.duration.ms


group.share.max.record.lock.duration.ms


group.share.partition.max.record.locks


group.share.max.partition.max.record.locks


group.share.min.partition.max.record.locks


share.fetch.purgatory.purge.interval.requests


group.share.max.share.sessions


group.share.persister.class.name


share.coordinator.state.topic.num.partitions


share.coordinator.state.topic.replication.factor


share.coordinator.state.topic.min.isr


share.coordinator.state.topic.segment.bytes


share.coordinator.threads


share.coordinator.snapshot.update.records.per.snapshot


share.coordinator.load.buffer.size


share.coordinator.state.topic.compression.codec


share.coordinator.append.linger.ms


share.coordinator.write.timeout.ms


share.coordinator.state.topic.prune.interval.ms


share.coordinator.cold.partition.snapshot.interval.ms


share.coordinator.cached.buffer.max.bytes

"""

_INTERNAL: Final = frozenset(
    {
        "group.share.persister.class.name",
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL)
