"""Pure core: the keys of listeners, sockets and connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from .vocabulary import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MAX_INT,
    MEDIUM,
    NOT_NEGATIVE,
    PER_BROKER,
    POSITIVE,
    READ_ONLY,
    SOME_LIST,
    STRING,
)

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("listeners", LIST, ("PLAINTEXT://127.0.0.1:9092",), SOME_LIST, HIGH, PER_BROKER, Part.NETWORK),
    ("advertised.listeners", LIST, None, SOME_LIST, HIGH, READ_ONLY, Part.NETWORK),
    (
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        None,
        LOW,
        PER_BROKER,
        Part.NETWORK,
    ),
    ("socket.send.buffer.bytes", INT, 102_400, None, HIGH, READ_ONLY, Part.NETWORK),
    ("socket.receive.buffer.bytes", INT, 102_400, None, HIGH, READ_ONLY, Part.NETWORK),
    ("socket.request.max.bytes", INT, 104_857_600, POSITIVE, HIGH, READ_ONLY, Part.NETWORK),
    ("socket.listen.backlog.size", INT, 50, POSITIVE, MEDIUM, READ_ONLY, Part.NETWORK),
    ("max.connections.per.ip", INT, MAX_INT, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.NETWORK),
    ("max.connections.per.ip.overrides", STRING, "", None, MEDIUM, CLUSTER_WIDE, Part.NETWORK),
    ("max.connections", INT, MAX_INT, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.NETWORK),
    ("max.connection.creation.rate", INT, MAX_INT, NOT_NEGATIVE, MEDIUM, CLUSTER_WIDE, Part.QUOTAS),
    ("connections.max.idle.ms", LONG, 600_000, None, MEDIUM, READ_ONLY, Part.NETWORK),
    ("connection.failed.authentication.delay.ms", INT, 100, NOT_NEGATIVE, LOW, READ_ONLY, Part.SECURITY),
    ("queued.max.requests", INT, 500, POSITIVE, HIGH, READ_ONLY, Part.THREADS),
    ("queued.max.request.bytes", LONG, -1, None, MEDIUM, READ_ONLY, Part.NETWORK),
    ("num.network.threads", INT, 3, POSITIVE, HIGH, CLUSTER_WIDE, Part.THREADS),
)

_DOCS: Final = """
listeners


advertised.listeners


listener.security.protocol.map


socket.send.buffer.bytes


socket.receive.buffer.bytes


socket.request.max.bytes


socket.listen.backlog.size


max.connections.per.ip


max.connections.per.ip.overrides


max.connections


max.connection.creation.rate


connections.max.idle.ms


connection.failed.authentication.delay.ms


queued.max.requests


queued.max.request.bytes


num.network.threads

"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)
