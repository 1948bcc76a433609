"""Pure core: the keys of replication and of leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import OneOf
from .vocabulary import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LONG, MEDIUM, NOT_NEGATIVE, POSITIVE, READ_ONLY, STRING

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("controller.socket.timeout.ms", INT, 30000, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("default.replication.factor", INT, 1, None, MEDIUM, READ_ONLY, Part.TOPICS),
    ("replica.lag.time.max.ms", LONG, 30000, None, HIGH, READ_ONLY, Part.REPLICATION),
    ("replica.socket.timeout.ms", INT, 30000, None, HIGH, READ_ONLY, Part.REPLICATION),
    ("replica.socket.receive.buffer.bytes", INT, 65536, None, HIGH, READ_ONLY, Part.CLUSTER),
    ("replica.fetch.max.bytes", INT, 1_048_576, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.REPLICATION),
    ("replica.fetch.wait.max.ms", INT, 500, None, HIGH, READ_ONLY, Part.REPLICATION),
    ("replica.fetch.backoff.ms", INT, 1000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.REPLICATION),
    ("replica.fetch.min.bytes", INT, 1, None, HIGH, READ_ONLY, Part.REPLICATION),
    ("replica.fetch.response.max.bytes", INT, 10_485_760, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.REPLICATION),
    ("num.replica.fetchers", INT, 1, POSITIVE, HIGH, CLUSTER_WIDE, Part.REPLICATION),
    ("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, None, HIGH, READ_ONLY, Part.LOG),
    ("fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM, READ_ONLY, Part.PURGATORY),
    ("producer.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM, READ_ONLY, Part.PURGATORY),
    ("delete.records.purgatory.purge.interval.requests", INT, 1, None, MEDIUM, READ_ONLY, Part.PURGATORY),
    ("auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH, READ_ONLY, Part.METADATA),
    ("leader.imbalance.check.interval.seconds", LONG, 300, POSITIVE, HIGH, READ_ONLY, Part.METADATA),
    ("unclean.leader.election.interval.ms", LONG, 300_000, POSITIVE, MEDIUM, READ_ONLY, Part.INTERNAL),
    ("unclean.leader.election.enable", BOOLEAN, False, None, HIGH, CLUSTER_WIDE, Part.METADATA),
    (
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        MEDIUM,
        READ_ONLY,
        Part.MEMBERSHIP,
    ),
    ("inter.broker.listener.name", STRING, None, None, MEDIUM, READ_ONLY, Part.MEMBERSHIP),
    ("replica.selector.class", STRING, None, None, MEDIUM, READ_ONLY, Part.REQUESTS),
    ("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.REPLICATION),
)

_DOCS: Final = """
controller.socket.timeout.ms
    How long a call to the controller may take.

default.replication.factor
    Replicas of each partition of a topic that is created without saying how many.

replica.lag.time.max.ms
    How long a follower may be behind before it leaves the in-sync replicas.

replica.socket.timeout.ms
    How long a follower waits for its leader's answer.

replica.socket.receive.buffer.bytes
    The system's receive buffer of a follower's connection.

replica.fetch.max.bytes
    How many bytes a follower asks for of each partition.

replica.fetch.wait.max.ms
    How long a leader may hold a follower's fetch back for more data.

replica.fetch.backoff.ms
    How long a follower waits after a failed fetch.

replica.fetch.min.bytes
    How many bytes a leader should have before it answers a follower.

replica.fetch.response.max.bytes
    How many bytes a follower asks for in one fetch.

num.replica.fetchers
    Over how many connections a broker fetches from each leader.

replica.high.watermark.checkpoint.interval.ms
    How often high watermarks are written to the checkpoint file.

fetch.purgatory.purge.interval.requests
    After how many requests finished fetches are cleared out of the waiting room.

producer.purgatory.purge.interval.requests
    After how many requests finished produces are cleared out of the waiting room.

delete.records.purgatory.purge.interval.requests
    After how many requests finished record deletions are cleared out of the waiting room.

auto.leader.rebalance.enable
    Whether leadership goes back to preferred replicas by itself.

leader.imbalance.check.interval.seconds
    How often the controller, or where replicas vote each leader, looks whether leadership should go back to preferred
    replicas.

unclean.leader.election.interval.ms
    How often Kafka's controller looks for partitions that could be elected uncleanly.

unclean.leader.election.enable
    Whether a replica that is not in sync may lead when no other is left: records may be lost then.

security.inter.broker.protocol
    How connections between brokers are secured, where no listener is named for them.

inter.broker.listener.name
    The listener that brokers use among themselves.

replica.selector.class
    The Java class that sends a consumer to a near replica.

follower.fetch.last.tiered.offset.enable
    Whether a new follower of a tiered topic copies only what is not in the store yet, and not all that its leader still
    has on its disk.
"""

_INTERNAL: Final = frozenset(
    {
        "unclean.leader.election.interval.ms",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL)
