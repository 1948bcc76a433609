"""Pure core: the keys of brokers that take a free id: Kafka had them until 3.9, and asks for `node.id` since.

*Source:* Kafka 3.9 `ServerConfigs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import BOOLEAN, INT, MEDIUM, NOT_NEGATIVE, READ_ONLY

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

GENERATES: Final = "broker.id.generation.enable"
RESERVED_MAX: Final = "reserved.broker.max.id"

_ROWS: Final[tuple[Row, ...]] = (
    (GENERATES, BOOLEAN, True, None, MEDIUM, READ_ONLY, Part.MEMBERSHIP),
    (RESERVED_MAX, INT, 1000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.MEMBERSHIP),
)

_DOCS: Final = """
broker.id.generation.enable
    Whether a broker that is no controller, and has no `node.id`, takes an id that is free; its directories keep it.

reserved.broker.max.id
    The largest id that brokers do not take by themselves: up to it ids are given out by hand, with `node.id`.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(
    _ROWS, _DOCS, scope=Scope.BROKER, internal=frozenset({GENERATES, RESERVED_MAX})
)
