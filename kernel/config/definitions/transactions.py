"""Pure core: the keys of transactions and producer ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LOW, POSITIVE, READ_ONLY, SHORT

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("transaction.state.log.min.isr", INT, 2, POSITIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
    ("transaction.state.log.load.buffer.size", INT, 5_242_880, POSITIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
    ("transaction.state.log.replication.factor", SHORT, 3, POSITIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
    ("transaction.state.log.num.partitions", INT, 50, POSITIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
    ("transaction.state.log.segment.bytes", INT, 104_857_600, POSITIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
    ("transaction.partition.verification.enable", BOOLEAN, True, None, LOW, CLUSTER_WIDE, Part.TRANSACTIONS),
    ("producer.id.expiration.ms", INT, 86_400_000, POSITIVE, LOW, CLUSTER_WIDE, Part.PRODUCERS),
    ("producer.id.expiration.check.interval.ms", INT, 600_000, POSITIVE, LOW, READ_ONLY, Part.PRODUCERS),
    ("transactional.id.expiration.ms", INT, 604_800_000, POSITIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
    ("transaction.max.timeout.ms", INT, 900_000, POSITIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
    (
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10000,
        POSITIVE,
        LOW,
        READ_ONLY,
        Part.TRANSACTIONS,
    ),
    (
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        POSITIVE,
        LOW,
        READ_ONLY,
        Part.TRANSACTIONS,
    ),
    ("transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW, READ_ONLY, Part.TRANSACTIONS),
)

_DOCS: Final = """
transaction.state.log.min.isr


transaction.state.log.load.buffer.size


transaction.state.log.replication.factor


transaction.state.log.num.partitions


transaction.state.log.segment.bytes


transaction.partition.verification.enable


producer.id.expiration.ms


producer.id.expiration.check.interval.ms


transactional.id.expiration.ms


transaction.max.timeout.ms


transaction.abort.timed.out.transaction.cleanup.interval.ms


transaction.remove.expired.transaction.cleanup.interval.ms


transaction.two.phase.commit.enable

"""

_INTERNAL: Final = frozenset(
    {
        "producer.id.expiration.check.interval.ms",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL)
