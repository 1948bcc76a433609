"""Pure core: the keys of the log cleaner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import Between
from .vocabulary import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LONG, MAX_LONG, MEDIUM, NOT_NEGATIVE, POSITIVE, READ_ONLY

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("log.cleaner.threads", INT, 1, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.cleaner.io.max.bytes.per.second", DOUBLE, 1.7976931348623157e308, None, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.cleaner.dedupe.buffer.size", LONG, 134_217_728, None, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.cleaner.io.buffer.size", INT, 524_288, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, None, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.cleaner.backoff.ms", LONG, 15000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, Between(0, 1), MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.cleaner.enable", BOOLEAN, True, None, MEDIUM, READ_ONLY, Part.CLEANUP),
    ("log.cleaner.delete.retention.ms", LONG, 86_400_000, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.cleaner.min.compaction.lag.ms", LONG, 0, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
    ("log.cleaner.max.compaction.lag.ms", LONG, MAX_LONG, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.CLEANUP),
)

_DOCS: Final = """
log.cleaner.threads


log.cleaner.io.max.bytes.per.second


log.cleaner.dedupe.buffer.size


log.cleaner.io.buffer.size


log.cleaner.io.buffer.load.factor


log.cleaner.backoff.ms


log.cleaner.min.cleanable.ratio


log.cleaner.enable


log.cleaner.delete.retention.ms


log.cleaner.min.compaction.lag.ms


log.cleaner.max.compaction.lag.ms

"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)
