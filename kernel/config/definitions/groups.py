"""Pure core: the keys of the group coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import AtLeast, Between, ListOf, OneOfAnyCase
from .vocabulary import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MAX_INT,
    MEDIUM,
    NOT_NEGATIVE,
    POSITIVE,
    READ_ONLY,
    SHORT,
    SOME_LIST,
    STRING,
)

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    (
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        ListOf(("consumer", "classic", "share", "streams"), may_be_empty=False),
        MEDIUM,
        READ_ONLY,
        Part.GROUPS,
    ),
    ("group.coordinator.threads", INT, 4, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("group.coordinator.background.threads", INT, 2, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("group.coordinator.append.linger.ms", INT, -1, AtLeast(-1), MEDIUM, READ_ONLY, Part.GROUPS),
    ("offsets.commit.timeout.ms", INT, 5000, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.load.buffer.size", INT, 5_242_880, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.topic.replication.factor", SHORT, 3, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.topic.num.partitions", INT, 50, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.topic.segment.bytes", INT, 104_857_600, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.topic.compression.codec", INT, 0, None, HIGH, READ_ONLY, Part.GROUPS),
    ("group.coordinator.cached.buffer.max.bytes", INT, 1_048_588, AtLeast(524_288), MEDIUM, CLUSTER_WIDE, Part.GROUPS),
    ("offset.metadata.max.bytes", INT, 4096, None, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.retention.minutes", INT, 10080, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.retention.check.interval.ms", LONG, 600_000, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("group.min.session.timeout.ms", INT, 6000, None, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.max.session.timeout.ms", INT, 1_800_000, None, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.initial.rebalance.delay.ms", INT, 3000, None, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.max.size", INT, MAX_INT, POSITIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.session.timeout.ms", INT, 45000, POSITIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.min.session.timeout.ms", INT, 45000, POSITIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.max.session.timeout.ms", INT, 60000, POSITIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.heartbeat.interval.ms", INT, 5000, POSITIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.min.heartbeat.interval.ms", INT, 5000, POSITIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.max.heartbeat.interval.ms", INT, 15000, POSITIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.max.size", INT, MAX_INT, POSITIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.assignors", LIST, ("uniform", "range"), SOME_LIST, MEDIUM, READ_ONLY, Part.GROUPS),
    (
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        OneOfAnyCase(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")),
        MEDIUM,
        READ_ONLY,
        Part.GROUPS,
    ),
    ("group.consumer.assignment.interval.ms", INT, 1000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.GROUPS),
    ("group.consumer.min.assignment.interval.ms", INT, 0, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.max.assignment.interval.ms", INT, 15000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.GROUPS),
    ("group.consumer.regex.refresh.interval.ms", INT, 600_000, AtLeast(10000), MEDIUM, READ_ONLY, Part.INTERNAL),
    ("group.share.session.timeout.ms", INT, 45000, POSITIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.min.session.timeout.ms", INT, 45000, POSITIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.max.session.timeout.ms", INT, 60000, POSITIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.heartbeat.interval.ms", INT, 5000, POSITIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.min.heartbeat.interval.ms", INT, 5000, POSITIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.max.heartbeat.interval.ms", INT, 15000, POSITIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.max.size", INT, 200, Between(1, 1000), MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.assignors", LIST, ("simple",), SOME_LIST, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.assignment.interval.ms", INT, 1000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.SHARE_GROUPS),
    ("group.share.min.assignment.interval.ms", INT, 0, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.max.assignment.interval.ms", INT, 15000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.SHARE_GROUPS),
    ("group.share.initialize.retry.interval.ms", INT, 30000, POSITIVE, LOW, READ_ONLY, Part.INTERNAL),
    ("group.streams.session.timeout.ms", INT, 45000, POSITIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.min.session.timeout.ms", INT, 45000, POSITIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.max.session.timeout.ms", INT, 60000, POSITIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.heartbeat.interval.ms", INT, 5000, POSITIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.min.heartbeat.interval.ms", INT, 5000, POSITIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.max.heartbeat.interval.ms", INT, 15000, POSITIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.max.size", INT, MAX_INT, POSITIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.num.standby.replicas", INT, 0, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.max.standby.replicas", INT, 2, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.initial.rebalance.delay.ms", INT, 3000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.assignment.interval.ms", INT, 1000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.STREAMS_GROUPS),
    ("group.streams.min.assignment.interval.ms", INT, 0, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
    ("group.streams.max.assignment.interval.ms", INT, 15000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.STREAMS_GROUPS),
)

_DOCS: Final = """
group.coordinator.rebalance.protocols


group.coordinator.threads


group.coordinator.background.threads


group.coordinator.append.linger.ms


offsets.commit.timeout.ms


offsets.load.buffer.size


offsets.topic.replication.factor


offsets.topic.num.partitions


offsets.topic.segment.bytes


offsets.topic.compression.codec


group.coordinator.cached.buffer.max.bytes


offset.metadata.max.bytes


offsets.retention.minutes


offsets.retention.check.interval.ms


group.min.session.timeout.ms


group.max.session.timeout.ms


group.initial.rebalance.delay.ms


group.max.size


group.consumer.session.timeout.ms


group.consumer.min.session.timeout.ms


group.consumer.max.session.timeout.ms


group.consumer.heartbeat.interval.ms


group.consumer.min.heartbeat.interval.ms


group.consumer.max.heartbeat.interval.ms


group.consumer.max.size


group.consumer.assignors


group.consumer.migration.policy


group.consumer.assignment.interval.ms


group.consumer.min.assignment.interval.ms


group.consumer.max.assignment.interval.ms


group.consumer.regex.refresh.interval.ms


group.share.session.timeout.ms


group.share.min.session.timeout.ms


group.share.max.session.timeout.ms


group.share.heartbeat.interval.ms


group.share.min.heartbeat.interval.ms


group.share.max.heartbeat.interval.ms


group.share.max.size


group.share.assignors


group.share.assignment.interval.ms


group.share.min.assignment.interval.ms


group.share.max.assignment.interval.ms


group.share.initialize.retry.interval.ms


group.streams.session.timeout.ms


group.streams.min.session.timeout.ms


group.streams.max.session.timeout.ms


group.streams.heartbeat.interval.ms


group.streams.min.heartbeat.interval.ms


group.streams.max.heartbeat.interval.ms


group.streams.max.size


group.streams.num.standby.replicas


group.streams.max.standby.replicas


group.streams.initial.rebalance.delay.ms


group.streams.assignment.interval.ms


group.streams.min.assignment.interval.ms


group.streams.max.assignment.interval.ms

"""

_INTERNAL: Final = frozenset(
    {
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL)
