"""Pure core: the keys of authentication in general."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import INT, LONG, MEDIUM, READ_ONLY

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("connections.max.reauth.ms", LONG, 0, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("sasl.server.max.receive.size", INT, 524_288, None, MEDIUM, READ_ONLY, Part.SECURITY),
)

_DOCS: Final = """
connections.max.reauth.ms
    After how long a SASL connection must authenticate again; 0 never.

sasl.server.max.receive.size
    The largest message that is taken during a SASL exchange.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)
