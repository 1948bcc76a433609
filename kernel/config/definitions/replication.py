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
    ("replica.lag.time.max.ms", LONG, 30000, None, HIGH, READ_ONLY, Part.CLUSTER),
    ("replica.socket.timeout.ms", INT, 30000, None, HIGH, READ_ONLY, Part.CLUSTER),
    ("replica.socket.receive.buffer.bytes", INT, 65536, None, HIGH, READ_ONLY, Part.CLUSTER),
    ("replica.fetch.max.bytes", INT, 1_048_576, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("replica.fetch.wait.max.ms", INT, 500, None, HIGH, READ_ONLY, Part.CLUSTER),
    ("replica.fetch.backoff.ms", INT, 1000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("replica.fetch.min.bytes", INT, 1, None, HIGH, READ_ONLY, Part.CLUSTER),
    ("replica.fetch.response.max.bytes", INT, 10_485_760, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("num.replica.fetchers", INT, 1, POSITIVE, HIGH, CLUSTER_WIDE, Part.CLUSTER),
    ("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, None, HIGH, READ_ONLY, Part.LOG),
    ("fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM, READ_ONLY, Part.PURGATORY),
    ("producer.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM, READ_ONLY, Part.PURGATORY),
    ("delete.records.purgatory.purge.interval.requests", INT, 1, None, MEDIUM, READ_ONLY, Part.PURGATORY),
    ("auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH, READ_ONLY, Part.CLUSTER),
    ("leader.imbalance.check.interval.seconds", LONG, 300, POSITIVE, HIGH, READ_ONLY, Part.CLUSTER),
    ("unclean.leader.election.interval.ms", LONG, 300_000, POSITIVE, MEDIUM, READ_ONLY, Part.INTERNAL),
    ("unclean.leader.election.enable", BOOLEAN, False, None, HIGH, CLUSTER_WIDE, Part.CLUSTER),
    (
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        MEDIUM,
        READ_ONLY,
        Part.CLUSTER,
    ),
    ("inter.broker.listener.name", STRING, None, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("replica.selector.class", STRING, None, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, Part.TIERED),
)

_DOCS: Final = """
controller.socket.timeout.ms


default.replication.factor


replica.lag.time.max.ms


replica.socket.timeout.ms


replica.socket.receive.buffer.bytes


replica.fetch.max.bytes


replica.fetch.wait.max.ms


replica.fetch.backoff.ms


replica.fetch.min.bytes


replica.fetch.response.max.bytes


num.replica.fetchers


replica.high.watermark.checkpoint.interval.ms


fetch.purgatory.purge.interval.requests


producer.purgatory.purge.interval.requests


delete.records.purgatory.purge.interval.requests


auto.leader.rebalance.enable


leader.imbalance.check.interval.seconds


unclean.leader.election.interval.ms


unclean.leader.election.enable


security.inter.broker.protocol


inter.broker.listener.name


replica.selector.class


follower.fetch.last.tiered.offset.enable

"""

_INTERNAL: Final = frozenset(
    {
        "unclean.leader.election.interval.ms",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL)
