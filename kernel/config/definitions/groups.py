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
    ("group.coordinator.threads", INT, 4, POSITIVE, HIGH, READ_ONLY, Part.THREADS),
    ("group.coordinator.background.threads", INT, 2, POSITIVE, HIGH, READ_ONLY, Part.THREADS),
    ("group.coordinator.append.linger.ms", INT, -1, AtLeast(-1), MEDIUM, READ_ONLY, Part.WRITES),
    ("offsets.commit.timeout.ms", INT, 5000, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.load.buffer.size", INT, 5_242_880, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.topic.replication.factor", SHORT, 3, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.topic.num.partitions", INT, 50, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.topic.segment.bytes", INT, 104_857_600, POSITIVE, HIGH, READ_ONLY, Part.GROUPS),
    ("offsets.topic.compression.codec", INT, 0, None, HIGH, READ_ONLY, Part.GROUPS),
    ("group.coordinator.cached.buffer.max.bytes", INT, 1_048_588, AtLeast(524_288), MEDIUM, CLUSTER_WIDE, Part.WRITES),
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
    ("group.consumer.regex.refresh.interval.ms", INT, 600_000, AtLeast(10000), MEDIUM, READ_ONLY, Part.GROUPS),
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
    The group protocols that are offered.

group.coordinator.threads
    Threads of the group coordinator in a JVM broker.

group.coordinator.background.threads
    Threads that compute assignments in a JVM broker.

group.coordinator.append.linger.ms
    How long the coordinator gathers writes into one append; -1 adapts to the load.

offsets.commit.timeout.ms
    How long an offset commit waits for the replicas of the offsets topic.

offsets.load.buffer.size
    How many bytes are read at a time when a coordinator loads its partition.

offsets.topic.replication.factor
    Replicas of the offsets topic when it is created; never more than there are live brokers.

offsets.topic.num.partitions
    Partitions of the offsets topic; not to be changed once it exists.

offsets.topic.segment.bytes
    Segment size of the offsets topic; small ones load and compact faster.

offsets.topic.compression.codec
    How the offsets topic is compressed, by Kafka's number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.

group.coordinator.cached.buffer.max.bytes
    The largest append buffer that the coordinator keeps for the next time.

offset.metadata.max.bytes
    How long the text may be that a client commits with an offset.

offsets.retention.minutes
    How long committed offsets stay after the group is empty.

offsets.retention.check.interval.ms
    How often expired offsets are looked for.

group.min.session.timeout.ms
    The shortest session timeout a member of a classic group may ask for.

group.max.session.timeout.ms
    The longest session timeout a member of a classic group may ask for.

group.initial.rebalance.delay.ms
    How long a new classic group waits for more members before it assigns.

group.max.size
    How many members a classic group may have.

group.consumer.session.timeout.ms
    How long a member of a consumer group may be silent before it is out, where the group sets nothing itself.

group.consumer.min.session.timeout.ms
    The smallest `consumer.session.timeout.ms` that a group may set; what one has set beyond it counts as this.

group.consumer.max.session.timeout.ms
    The largest `consumer.session.timeout.ms` that a group may set; what one has set beyond it counts as this.

group.consumer.heartbeat.interval.ms
    How often a member of a consumer group shows that it lives, where the group sets nothing itself.

group.consumer.min.heartbeat.interval.ms
    The smallest `consumer.heartbeat.interval.ms` that a group may set; what one has set beyond it counts as this.

group.consumer.max.heartbeat.interval.ms
    The largest `consumer.heartbeat.interval.ms` that a group may set; what one has set beyond it counts as this.

group.consumer.max.size
    How many members a consumer group may have.

group.consumer.assignors
    The assignors that consumer groups may use on the server; the first is the default.

group.consumer.migration.policy
    Whether groups may move between the classic and the consumer protocol while they live, and in which direction.

group.consumer.assignment.interval.ms
    How long a consumer group waits between two assignments, where the group sets nothing itself.

group.consumer.min.assignment.interval.ms
    The smallest `consumer.assignment.interval.ms` that a group may set; what one has set beyond it counts as this.

group.consumer.max.assignment.interval.ms
    The largest `consumer.assignment.interval.ms` that a group may set; what one has set beyond it counts as this.

group.consumer.regex.refresh.interval.ms
    How often subscriptions by pattern are matched anew.

group.share.session.timeout.ms
    How long a member of a share group may be silent before it is out, where the group sets nothing itself.

group.share.min.session.timeout.ms
    The smallest `share.session.timeout.ms` that a group may set.

group.share.max.session.timeout.ms
    The largest `share.session.timeout.ms` that a group may set.

group.share.heartbeat.interval.ms
    How often a member of a share group shows that it lives, where the group sets nothing itself.

group.share.min.heartbeat.interval.ms
    The smallest `share.heartbeat.interval.ms` that a group may set.

group.share.max.heartbeat.interval.ms
    The largest `share.heartbeat.interval.ms` that a group may set.

group.share.max.size
    How many members a share group may have.

group.share.assignors
    The assignors that share groups may use.

group.share.assignment.interval.ms
    How long a share group waits between two assignments, where the group sets nothing itself.

group.share.min.assignment.interval.ms
    The smallest `share.assignment.interval.ms` that a group may set.

group.share.max.assignment.interval.ms
    The largest `share.assignment.interval.ms` that a group may set.

group.share.initialize.retry.interval.ms
    How long until a failed start of share partition state is tried again.

group.streams.session.timeout.ms
    How long a member of a streams group may be silent before it is out, where the group sets nothing itself.

group.streams.min.session.timeout.ms
    The smallest `streams.session.timeout.ms` that a group may set.

group.streams.max.session.timeout.ms
    The largest `streams.session.timeout.ms` that a group may set.

group.streams.heartbeat.interval.ms
    How often a member of a streams group shows that it lives, where the group sets nothing itself.

group.streams.min.heartbeat.interval.ms
    The smallest `streams.heartbeat.interval.ms` that a group may set.

group.streams.max.heartbeat.interval.ms
    The largest `streams.heartbeat.interval.ms` that a group may set.

group.streams.max.size
    How many members a streams group may have.

group.streams.num.standby.replicas
    How many standby copies each task of a streams group gets.

group.streams.max.standby.replicas
    The most standby copies a streams group may ask for.

group.streams.initial.rebalance.delay.ms
    How long a new streams group waits for more members before it assigns.

group.streams.assignment.interval.ms
    How long a streams group waits between two assignments, where the group sets nothing itself.

group.streams.min.assignment.interval.ms
    The smallest `streams.assignment.interval.ms` that a group may set.

group.streams.max.assignment.interval.ms
    The largest `streams.assignment.interval.ms` that a group may set.
"""

_INTERNAL: Final = frozenset(
    {
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL)
