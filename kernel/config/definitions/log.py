"""Pure core: the keys of partition logs: directories, segments, flushing, retention, timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import AtLeast, ListOf, OneOf
from .synonyms import broker_synonyms
from .vocabulary import (
    ANY_LIST,
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MAX_LONG,
    MEDIUM,
    NOT_NEGATIVE,
    PER_BROKER,
    POSITIVE,
    READ_ONLY,
    SOME_LIST,
    STRING,
)

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("num.partitions", INT, 1, POSITIVE, MEDIUM, READ_ONLY, Part.TOPICS),
    ("log.dir", LIST, None, SOME_LIST, HIGH, READ_ONLY, Part.LOG),
    ("log.dirs", LIST, None, SOME_LIST, HIGH, READ_ONLY, Part.LOG),
    ("cordoned.log.dirs", LIST, (), ANY_LIST, MEDIUM, PER_BROKER, Part.LOG),
    ("log.segment.bytes", INT, 1_073_741_824, AtLeast(1_048_576), HIGH, CLUSTER_WIDE, Part.LOG),
    ("log.roll.ms", LONG, None, None, HIGH, CLUSTER_WIDE, Part.LOG),
    ("log.roll.hours", INT, 168, POSITIVE, HIGH, READ_ONLY, Part.LOG),
    ("log.roll.jitter.ms", LONG, None, None, HIGH, CLUSTER_WIDE, Part.LOG),
    ("log.roll.jitter.hours", INT, 0, NOT_NEGATIVE, HIGH, READ_ONLY, Part.LOG),
    ("log.retention.ms", LONG, None, None, HIGH, CLUSTER_WIDE, Part.CLEANUP),
    ("log.retention.minutes", INT, None, None, HIGH, READ_ONLY, Part.CLEANUP),
    ("log.retention.hours", INT, 168, None, HIGH, READ_ONLY, Part.CLEANUP),
    ("log.retention.bytes", LONG, -1, None, HIGH, CLUSTER_WIDE, Part.CLEANUP),
    ("log.retention.check.interval.ms", LONG, 300_000, POSITIVE, MEDIUM, READ_ONLY, Part.CLEANUP),
    ("log.cleanup.policy", LIST, ("delete",), ListOf(("compact", "delete")), MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.index.size.max.bytes", INT, 10_485_760, AtLeast(4), MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("log.index.interval.bytes", INT, 4096, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("log.flush.interval.messages", LONG, MAX_LONG, POSITIVE, HIGH, CLUSTER_WIDE, Part.LOG),
    ("log.segment.delete.delay.ms", LONG, 60000, NOT_NEGATIVE, HIGH, CLUSTER_WIDE, Part.LOG),
    ("log.flush.scheduler.interval.ms", LONG, MAX_LONG, None, HIGH, READ_ONLY, Part.LOG),
    ("log.flush.interval.ms", LONG, None, None, HIGH, CLUSTER_WIDE, Part.LOG),
    ("log.flush.offset.checkpoint.interval.ms", INT, 60000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.LOG),
    ("log.flush.start.offset.checkpoint.interval.ms", INT, 60000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.LOG),
    ("log.preallocate", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("num.recovery.threads.per.data.dir", INT, 2, POSITIVE, HIGH, CLUSTER_WIDE, Part.THREADS),
    ("auto.create.topics.enable", BOOLEAN, True, None, HIGH, READ_ONLY, Part.TOPICS),
    ("min.insync.replicas", INT, 1, POSITIVE, HIGH, CLUSTER_WIDE, Part.REQUESTS),
    (
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        MEDIUM,
        CLUSTER_WIDE,
        Part.LOG,
    ),
    ("log.message.timestamp.before.max.ms", LONG, MAX_LONG, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("log.message.timestamp.after.max.ms", LONG, 3_600_000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("create.topic.policy.class.name", CLASS, None, None, LOW, READ_ONLY, Part.TOPICS),
    ("alter.config.policy.class.name", CLASS, None, None, LOW, READ_ONLY, Part.TOPICS),
    ("log.dir.failure.timeout.ms", LONG, 30000, POSITIVE, LOW, READ_ONLY, Part.CLUSTER),
    ("log.initial.task.delay.ms", LONG, 30000, NOT_NEGATIVE, LOW, READ_ONLY, Part.INTERNAL),
)

_DOCS: Final = """
num.partitions


log.dir


log.dirs


cordoned.log.dirs


log.segment.bytes


log.roll.ms


log.roll.hours


log.roll.jitter.ms


log.roll.jitter.hours


log.retention.ms


log.retention.minutes


log.retention.hours


log.retention.bytes


log.retention.check.interval.ms


log.cleanup.policy


log.index.size.max.bytes


log.index.interval.bytes


log.flush.interval.messages


log.segment.delete.delay.ms


log.flush.scheduler.interval.ms


log.flush.interval.ms


log.flush.offset.checkpoint.interval.ms


log.flush.start.offset.checkpoint.interval.ms


log.preallocate


num.recovery.threads.per.data.dir


auto.create.topics.enable


min.insync.replicas


log.message.timestamp.type


log.message.timestamp.before.max.ms


log.message.timestamp.after.max.ms


create.topic.policy.class.name


alter.config.policy.class.name


log.dir.failure.timeout.ms


log.initial.task.delay.ms

"""

_INTERNAL: Final = frozenset(
    {
        "log.initial.task.delay.ms",
    }
)

_REFUSED: Final = {
    "create.topic.policy.class.name": "a Java policy cannot run here, and topics would be created unchecked",
    "alter.config.policy.class.name": "a Java policy cannot run here, and configurations would be altered unchecked",
}

KEYS: Final[tuple[ConfigKey, ...]] = build(
    _ROWS, _DOCS, scope=Scope.BROKER, synonyms=broker_synonyms, internal=_INTERNAL, refused=_REFUSED
)
