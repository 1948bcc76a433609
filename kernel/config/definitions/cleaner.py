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
    Threads that compact logs.

log.cleaner.io.max.bytes.per.second
    How fast compaction may read and write.

log.cleaner.dedupe.buffer.size
    Memory for the map of keys that compaction builds.

log.cleaner.io.buffer.size
    Memory for reading and writing during compaction.

log.cleaner.io.buffer.load.factor
    How full the map of keys may get: fuller compacts more at once, with more collisions.

log.cleaner.backoff.ms
    How long compaction sleeps when there is nothing to do.

log.cleaner.min.cleanable.ratio
    Which share of a compacted log must be dirty before it is compacted.

log.cleaner.enable
    Whether compaction runs at all.

log.cleaner.delete.retention.ms
    How long a compacted topic keeps tombstones, so that slow readers see them.

log.cleaner.min.compaction.lag.ms
    How long a record is safe from compaction.

log.cleaner.max.compaction.lag.ms
    After how long a record must be compacted, however little is dirty.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)
