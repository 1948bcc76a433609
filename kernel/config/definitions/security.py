"""Pure core: the keys of authentication in general."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import INT, LONG, MEDIUM, PASSWORD, READ_ONLY

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

_OF_AUTHORIZER: Final[tuple[Row, ...]] = (
    ("super.users", PASSWORD, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
    ("allow.everyone.if.no.acl.found", PASSWORD, None, None, MEDIUM, READ_ONLY, Part.SECURITY),
)
"""Kafka's own table lacks them, so that it takes them for secrets and lists them only where they are set."""

_DOCS_OF_AUTHORIZER: Final = """
super.users
    Who is allowed everything by Kafka's own authorizer.

allow.everyone.if.no.acl.found
    Whether Kafka's own authorizer lets everybody use what no ACL names.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)

AUTHORIZER_KEYS: Final[tuple[ConfigKey, ...]] = build(
    _OF_AUTHORIZER, _DOCS_OF_AUTHORIZER, scope=Scope.BROKER, internal=frozenset(row[0] for row in _OF_AUTHORIZER)
)
