"""Pure core: the keys of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import AtLeast, OneOf
from .synonyms import group_synonyms
from .vocabulary import AUTO_OFFSET_RESET, BOOLEAN, CLUSTER_WIDE, INT, MEDIUM, NOT_NEGATIVE, POSITIVE, STRING

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("consumer.session.timeout.ms", INT, 45000, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.GROUPS),
    ("consumer.heartbeat.interval.ms", INT, 5000, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.GROUPS),
    ("consumer.assignment.interval.ms", INT, 1000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.GROUPS),
    ("share.session.timeout.ms", INT, 45000, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.SHARE_GROUPS),
    ("share.heartbeat.interval.ms", INT, 5000, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.SHARE_GROUPS),
    ("share.record.lock.duration.ms", INT, 30000, AtLeast(1000), MEDIUM, CLUSTER_WIDE, Part.SHARE_GROUPS),
    ("share.delivery.count.limit", INT, 5, AtLeast(2), MEDIUM, CLUSTER_WIDE, Part.SHARE_GROUPS),
    ("share.partition.max.record.locks", INT, 2000, AtLeast(100), MEDIUM, CLUSTER_WIDE, Part.SHARE_GROUPS),
    ("share.auto.offset.reset", STRING, "latest", AUTO_OFFSET_RESET, MEDIUM, CLUSTER_WIDE, Part.SHARE_GROUPS),
    (
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        OneOf(("read_committed", "read_uncommitted")),
        MEDIUM,
        CLUSTER_WIDE,
        Part.SHARE_GROUPS,
    ),
    ("share.renew.acknowledge.enable", BOOLEAN, True, None, MEDIUM, CLUSTER_WIDE, Part.SHARE_GROUPS),
    ("share.assignment.interval.ms", INT, 1000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.SHARE_GROUPS),
    ("streams.session.timeout.ms", INT, 45000, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.STREAMS_GROUPS),
    ("streams.heartbeat.interval.ms", INT, 5000, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.STREAMS_GROUPS),
    ("streams.num.standby.replicas", INT, 0, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.STREAMS_GROUPS),
    ("streams.initial.rebalance.delay.ms", INT, 3000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.STREAMS_GROUPS),
    ("streams.assignment.interval.ms", INT, 1000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.STREAMS_GROUPS),
)

_DOCS: Final = """
consumer.session.timeout.ms
    How long a member of this consumer group may be silent before it is out.

consumer.heartbeat.interval.ms
    How often a member of this consumer group shows that it lives.

consumer.assignment.interval.ms
    How long this consumer group waits between two assignments.

share.session.timeout.ms
    How long a member of this share group may be silent before it is out.

share.heartbeat.interval.ms
    How often a member of this share group shows that it lives.

share.record.lock.duration.ms
    How long a consumer of this share group holds a record before others get it.

share.delivery.count.limit
    How often a record is delivered to this share group before it is given up.

share.partition.max.record.locks
    How many records of a partition this share group may have out at once.

share.auto.offset.reset
    Where this share group begins on a partition that is new to it: `earliest`, `latest` or `by_duration:<ISO
    8601>`.

share.isolation.level
    Whether this share group sees records of transactions that are open or aborted.

share.renew.acknowledge.enable
    Whether consumers of this share group may prolong their hold on a record.

share.assignment.interval.ms
    How long this share group waits between two assignments.

streams.session.timeout.ms
    How long a member of this streams group may be silent before it is out.

streams.heartbeat.interval.ms
    How often a member of this streams group shows that it lives.

streams.num.standby.replicas
    How many standby copies each task of this streams group gets.

streams.initial.rebalance.delay.ms
    How long this streams group, when new, waits for more members before it assigns.

streams.assignment.interval.ms
    How long this streams group waits between two assignments.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.GROUP, synonyms=group_synonyms)
