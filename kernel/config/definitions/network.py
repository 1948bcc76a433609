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
    Where the broker listens: `NAME://host:port`, separated by commas. An empty host listens on every address, port
    0 takes a free one.

advertised.listeners
    What clients are told to connect to, by listener; otherwise the addresses of `listeners`.

listener.security.protocol.map
    Which security protocol each listener's name stands for: `NAME:PROTOCOL`, separated by commas.

socket.send.buffer.bytes
    The system's send buffer of each connection. Where it is not set, and with -1, the system chooses; the default
    shown is Kafka's.

socket.receive.buffer.bytes
    The system's receive buffer of each connection. Where it is not set, and with -1, the system chooses; the default
    shown is Kafka's.

socket.request.max.bytes
    The largest request that is taken; a connection that announces a larger one is closed.

socket.listen.backlog.size
    How many connections may wait to be accepted; the system may allow fewer.

max.connections.per.ip
    How many connections one address may have; to the controller's listeners as many again.

max.connections.per.ip.overrides
    Other limits for some addresses: `address:count`, separated by commas.

max.connections
    How many connections the broker keeps at all; beyond it clients wait. Where brokers have a listener of their own
    (`inter.broker.listener.name`), they come in beyond it, and for each the client of another listener that has been
    silent longest is closed. Connections to a controller's listener do not count, and none waits.

max.connection.creation.rate
    How many new connections a second are taken.

connections.max.idle.ms
    How long a connection may be silent before it is closed.

connection.failed.authentication.delay.ms
    How long a failed authentication waits for its answer, against guessing.

queued.max.requests
    How many requests wait for a handler thread in a JVM broker.

queued.max.request.bytes
    How many bytes of requests may be in memory before reading pauses; -1 leaves it to
    `odradek.network.memory.bytes`.

num.network.threads
    Threads that read and write sockets in a JVM broker.
"""

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER)
