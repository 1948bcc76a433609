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


consumer.heartbeat.interval.ms


consumer.assignment.interval.ms


share.session.timeout.ms


share.heartbeat.interval.ms


share.record.lock.duration.ms


share.delivery.count.limit


share.partition.max.record.locks


share.auto.offset.reset


share.isolation.level


share.renew.acknowledge.enable


share.assignment.interval.ms


streams.session.timeout.ms


streams.heartbeat.interval.ms


streams.num.standby.replicas


streams.initial.rebalance.delay.ms


streams.assignment.interval.ms

"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.GROUP, synonyms=group_synonyms)
