"""Pure core: the keys of a client metrics subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import Between
from .vocabulary import ANY_LIST, CLUSTER_WIDE, INT, LIST, MEDIUM

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

# fmt: off
_ROWS: Final[tuple[Row, ...]] = (
    ("metrics", LIST, (), ANY_LIST, MEDIUM, CLUSTER_WIDE, Part.TELEMETRY),
    ("interval.ms", INT, 300_000, Between(100, 3_600_000), MEDIUM, CLUSTER_WIDE, Part.TELEMETRY),
    ("match", LIST, (), ANY_LIST, MEDIUM, CLUSTER_WIDE, Part.TELEMETRY),
)
# fmt: on

_DOCS: Final = """
metrics
    Prefixes of the names of metrics that clients are asked to push; `*` asks for all, nothing asks for none.

interval.ms
    How often a client pushes its metrics, in milliseconds.

match
    Which clients are asked: selectors such as `client_id=.*` or `client_software_name=librdkafka`; nothing asks all.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.CLIENT_METRICS)
