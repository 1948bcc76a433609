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
    ("log.flush.start.offset.checkpoint.interval.ms", INT, 60000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.CHECKPOINTS),
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
    ("log.dir.failure.timeout.ms", LONG, 30000, POSITIVE, LOW, READ_ONLY, Part.MEMBERSHIP),
    ("log.initial.task.delay.ms", LONG, 30000, NOT_NEGATIVE, LOW, READ_ONLY, Part.CLEANUP),
)

_DOCS: Final = """
num.partitions
    Partitions of a topic that is created without saying how many.

log.dir
    The directory of partition logs, where `log.dirs` is not set; otherwise the user's data directory, `odradek` in
    it.

log.dirs
    The directories of partition logs; a new partition goes to the one that holds the fewest.

cordoned.log.dirs
    Directories that get no new partitions; `*` means all.

log.segment.bytes
    The size at which a segment is closed and a new one begun.

log.roll.ms
    The age at which a segment is closed; beats `log.roll.hours` where both are set.

log.roll.hours
    The age in hours at which a segment is closed.

log.roll.jitter.ms
    How much earlier, at random, a segment may be closed, so that not all close at once; beats
    `log.roll.jitter.hours`.

log.roll.jitter.hours
    As `log.roll.jitter.ms`, in hours.

log.retention.ms
    How long closed segments are kept; -1 forever. Beats `log.retention.minutes` and `log.retention.hours`.

log.retention.minutes
    As `log.retention.ms`, in minutes; beats `log.retention.hours`.

log.retention.hours
    As `log.retention.ms`, in hours.

log.retention.bytes
    How many bytes of a partition are kept; -1 sets no limit.

log.retention.check.interval.ms
    How often segments that may go are looked for.

log.cleanup.policy
    What of a log goes where a topic does not choose; see `cleanup.policy`.

log.index.size.max.bytes
    The size that an index file is laid out with; a full index closes the segment.

log.index.interval.bytes
    After how many bytes of batches an index entry is written: smaller finds faster and takes more space.

log.flush.interval.messages
    After how many records a partition is forced to disk; 1 makes every acknowledged record survive a power loss.

log.segment.delete.delay.ms
    How long a removed file stays on disk under another name, so that readers can finish.

log.flush.scheduler.interval.ms
    How often partitions are looked at for a flush by time; four times a second where it is not set.

log.flush.interval.ms
    How long records may stay unforced; otherwise `log.flush.scheduler.interval.ms`.

log.flush.offset.checkpoint.interval.ms
    How often snapshots of producers are kept, from which a start goes on; recovery points are written with the high
    watermarks.

log.flush.start.offset.checkpoint.interval.ms
    How often log start offsets are written.

log.preallocate
    Whether a segment's file is laid out at its full size when it is begun.

num.recovery.threads.per.data.dir
    Threads that open and recover the logs of one directory, in a JVM broker.

auto.create.topics.enable
    Whether a topic that a client asks for or produces to is created.

min.insync.replicas
    How many replicas must have a batch before `acks=all` is answered. A cluster with eligible leader replicas has one
    value for all brokers, kept in its metadata from the first start on; change that one, as with `kafka-configs`.

log.message.timestamp.type
    Whether a record keeps the producer's time (`CreateTime`) or gets the broker's (`LogAppendTime`).

log.message.timestamp.before.max.ms
    How far a record's timestamp may lie behind the broker's clock.

log.message.timestamp.after.max.ms
    How far a record's timestamp may lie ahead of the broker's clock.

create.topic.policy.class.name
    The Java class that judges new topics.

alter.config.policy.class.name
    The Java class that judges altered configurations.

log.dir.failure.timeout.ms
    How long a broker that cannot tell the controller of a failed directory goes on.

log.initial.task.delay.ms
    How long after the start segments that may go are looked for first; where it is not set, never later than
    `log.retention.check.interval.ms`.
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
