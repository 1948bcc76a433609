"""Pure core: keys that Kafka's own table lacks: throttles, set on a running broker and listed only then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import CLUSTER_WIDE, LONG, MAX_LONG, MEDIUM, NOT_NEGATIVE

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_PARTS: Final = {
    "leader.replication.throttled.rate": Part.REPLICATION,
    "follower.replication.throttled.rate": Part.REPLICATION,
    "replica.alter.log.dirs.io.max.bytes.per.second": Part.LOG,
}
_ROWS: Final[tuple[Row, ...]] = tuple(
    (name, LONG, MAX_LONG, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, part) for name, part in _PARTS.items()
)

_DOCS: Final = """
leader.replication.throttled.rate
    How many bytes a second this broker gives to followers of the replicas that
    `leader.replication.throttled.replicas` names.

follower.replication.throttled.rate
    How many bytes a second this broker fetches for replicas that `follower.replication.throttled.replicas` names.

replica.alter.log.dirs.io.max.bytes.per.second
    How many bytes a second may be copied when replicas move from one log directory to another.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=frozenset(_PARTS))

NAMES: Final = frozenset(_PARTS)
"""They have no default to fall back to: while one is not set, it is not there."""
