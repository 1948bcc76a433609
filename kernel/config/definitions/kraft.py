"""Pure core: the keys of roles, registration and the metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import AtLeast, ListOf
from .vocabulary import (
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MAX_LONG,
    MEDIUM,
    NOT_NEGATIVE,
    POSITIVE,
    READ_ONLY,
    SOME_LIST,
    STRING,
)

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    (
        "process.roles",
        LIST,
        ("broker", "controller"),
        ListOf(("broker", "controller"), may_be_empty=False),
        HIGH,
        READ_ONLY,
        Part.METADATA,
    ),
    ("node.id", INT, 1, NOT_NEGATIVE, HIGH, READ_ONLY, Part.METADATA),
    ("initial.broker.registration.timeout.ms", INT, 60000, None, MEDIUM, READ_ONLY, Part.MEMBERSHIP),
    ("broker.heartbeat.interval.ms", INT, 2000, None, MEDIUM, READ_ONLY, Part.MEMBERSHIP),
    ("broker.session.timeout.ms", INT, 9000, None, MEDIUM, READ_ONLY, Part.MEMBERSHIP),
    ("controller.listener.names", LIST, (), SOME_LIST, HIGH, READ_ONLY, Part.METADATA),
    ("sasl.mechanism.controller.protocol", STRING, "GSSAPI", None, HIGH, READ_ONLY, Part.SECURITY),
    ("controller.performance.sample.period.ms", LONG, 60000, AtLeast(100), MEDIUM, READ_ONLY, Part.INTERNAL),
    ("controller.performance.always.log.threshold.ms", LONG, 2000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.INTERNAL),
    ("server.max.startup.time.ms", LONG, MAX_LONG, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.INTERNAL),
    ("metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, POSITIVE, HIGH, READ_ONLY, Part.METADATA),
    ("metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, NOT_NEGATIVE, HIGH, READ_ONLY, Part.METADATA),
    ("metadata.log.dir", STRING, None, None, HIGH, READ_ONLY, Part.METADATA),
    ("metadata.log.segment.bytes", INT, 1_073_741_824, AtLeast(8_388_608), HIGH, READ_ONLY, Part.METADATA),
    ("metadata.log.segment.ms", LONG, 604_800_000, None, HIGH, READ_ONLY, Part.METADATA),
    ("metadata.max.retention.bytes", LONG, 104_857_600, None, HIGH, READ_ONLY, Part.METADATA),
    ("metadata.max.retention.ms", LONG, 604_800_000, None, HIGH, READ_ONLY, Part.METADATA),
    ("metadata.max.idle.interval.ms", INT, 500, NOT_NEGATIVE, LOW, READ_ONLY, Part.CLUSTER),
    ("internal.metadata.log.segment.bytes", INT, None, None, LOW, READ_ONLY, Part.INTERNAL),
    ("internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, None, LOW, READ_ONLY, Part.INTERNAL),
    ("internal.metadata.delete.delay.millis", LONG, 60000, None, LOW, READ_ONLY, Part.INTERNAL),
)

_DOCS: Final = """
process.roles
    What this process is: `broker`, `controller` or both. Without voters a broker is its own controller.

node.id
    This broker's number in the cluster.

initial.broker.registration.timeout.ms
    How long a starting broker tries to register with the controller before it gives up.

broker.heartbeat.interval.ms
    How often a broker tells the controller that it lives.

broker.session.timeout.ms
    How long the controller waits for a heartbeat of a broker before it fences the broker.

controller.listener.names
    The names among `listeners` that serve the controller; they take no clients.

sasl.mechanism.controller.protocol
    The SASL mechanism between brokers and controllers.

controller.performance.sample.period.ms
    How often Kafka's controller reports its performance.

controller.performance.always.log.threshold.ms
    From which duration on Kafka's controller reports an event as slow.

server.max.startup.time.ms
    How long Kafka's start may take.

metadata.log.max.record.bytes.between.snapshots
    How many bytes of metadata records are written before a new snapshot is taken.

metadata.log.max.snapshot.interval.ms
    How long until a snapshot is taken though few records came; 0 never does for this reason.

metadata.log.dir
    The directory of the metadata log; otherwise the first of `log.dirs`.

metadata.log.segment.bytes
    The size at which a segment of the metadata log is closed.

metadata.log.segment.ms
    The age at which a segment of the metadata log is closed.

metadata.max.retention.bytes
    How many bytes of metadata log and snapshots are kept; older ones go.

metadata.max.retention.ms
    How long metadata log segments and snapshots are kept.

metadata.max.idle.interval.ms
    How often an idle controller writes an empty record, so that observers see it live; 0 never.

internal.metadata.log.segment.bytes
    The size of a metadata log segment in Kafka's own tests.

internal.metadata.max.batch.size.in.bytes
    The size of a metadata batch in Kafka's own tests.

internal.metadata.delete.delay.millis
    The delay before metadata files go in Kafka's own tests.
"""

_INTERNAL: Final = frozenset(
    {
        "controller.performance.sample.period.ms",
        "controller.performance.always.log.threshold.ms",
        "server.max.startup.time.ms",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "internal.metadata.delete.delay.millis",
    }
)

_REFUSED: Final = {
    "metadata.max.retention.bytes": "old metadata snapshots are not deleted by size yet",
    "metadata.max.retention.ms": "old metadata snapshots are not deleted by age yet",
}

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL, refused=_REFUSED)
