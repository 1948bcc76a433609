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
    ("initial.broker.registration.timeout.ms", INT, 60000, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("broker.heartbeat.interval.ms", INT, 2000, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("broker.session.timeout.ms", INT, 9000, None, MEDIUM, READ_ONLY, Part.CLUSTER),
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


node.id


initial.broker.registration.timeout.ms


broker.heartbeat.interval.ms


broker.session.timeout.ms


controller.listener.names


sasl.mechanism.controller.protocol


controller.performance.sample.period.ms


controller.performance.always.log.threshold.ms


server.max.startup.time.ms


metadata.log.max.record.bytes.between.snapshots


metadata.log.max.snapshot.interval.ms


metadata.log.dir


metadata.log.segment.bytes


metadata.log.segment.ms


metadata.max.retention.bytes


metadata.max.retention.ms


metadata.max.idle.interval.ms


internal.metadata.log.segment.bytes


internal.metadata.max.batch.size.in.bytes


internal.metadata.delete.delay.millis

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

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL)
