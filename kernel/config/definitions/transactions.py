"""Pure core: the keys of transactions and producer ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LOW, NOT_NEGATIVE, POSITIVE, READ_ONLY, SHORT

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
    ("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, NOT_NEGATIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
    ("add.partitions.to.txn.retry.backoff.ms", INT, 20, POSITIVE, HIGH, READ_ONLY, Part.TRANSACTIONS),
)

_DOCS: Final = """
transaction.state.log.min.isr
    In-sync replicas that the transaction state topic demands when it is created; never more than it has replicas.

transaction.state.log.load.buffer.size
    How many bytes are read at a time when a transaction coordinator loads its partition.

transaction.state.log.replication.factor
    Replicas of the transaction state topic when it is created; never more than there are live brokers.

transaction.state.log.num.partitions
    Partitions of the transaction state topic; not to be changed once it exists.

transaction.state.log.segment.bytes
    Segment size of the transaction state topic.

transaction.partition.verification.enable
    Whether a leader asks the coordinator if a partition is part of the transaction before it appends.

producer.id.expiration.ms
    How long a partition remembers an idempotent producer that sends nothing.

producer.id.expiration.check.interval.ms
    How often expired producers are looked for.

transactional.id.expiration.ms
    How long an unused transactional id is remembered.

transaction.max.timeout.ms
    The longest transaction timeout that a producer may ask for.

transaction.abort.timed.out.transaction.cleanup.interval.ms
    How often transactions that ran out of time are looked for and aborted.

transaction.remove.expired.transaction.cleanup.interval.ms
    How often expired transactional ids are looked for.

transaction.two.phase.commit.enable
    Whether producers may take part in two-phase commit, where transactions never run out of time.

add.partitions.to.txn.retry.backoff.max.ms
    How long the server itself keeps trying to add a partition to a transaction.

add.partitions.to.txn.retry.backoff.ms
    The pause between tries to add a partition to a transaction.
"""

_INTERNAL: Final = frozenset(
    {
        "producer.id.expiration.check.interval.ms",
    }
)

_REFUSED: Final = {"transaction.two.phase.commit.enable": "two-phase commit (KIP-939) is not built"}

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL, refused=_REFUSED)
