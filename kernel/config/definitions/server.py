"""Pure core: the keys of the broker as a whole, compression and fetch limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import AtLeast, Between, BetweenOr, OneOf
from .vocabulary import (
    ANY_LIST,
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NOT_NEGATIVE,
    POSITIVE,
    READ_ONLY,
    STRING,
)

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("broker.id", INT, -1, None, HIGH, READ_ONLY, Part.METADATA),
    ("message.max.bytes", INT, 1_048_588, NOT_NEGATIVE, HIGH, CLUSTER_WIDE, Part.LOG),
    ("num.io.threads", INT, 8, POSITIVE, HIGH, CLUSTER_WIDE, Part.THREADS),
    ("num.replica.alter.log.dirs.threads", INT, None, None, HIGH, READ_ONLY, Part.THREADS),
    ("background.threads", INT, 10, POSITIVE, HIGH, CLUSTER_WIDE, Part.THREADS),
    ("request.timeout.ms", INT, 30000, None, HIGH, READ_ONLY, Part.CLUSTER),
    ("socket.connection.setup.timeout.ms", LONG, 10000, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("socket.connection.setup.timeout.max.ms", LONG, 30000, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("config.providers", LIST, (), ANY_LIST, LOW, CLUSTER_WIDE, Part.JVM),
    ("authorizer.class.name", STRING, "", None, LOW, READ_ONLY, Part.SECURITY),
    ("early.start.listeners", LIST, None, ANY_LIST, HIGH, READ_ONLY, Part.SECURITY),
    ("broker.rack", STRING, None, None, MEDIUM, READ_ONLY, Part.METADATA),
    ("controlled.shutdown.enable", BOOLEAN, True, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("delete.topic.enable", BOOLEAN, True, None, HIGH, READ_ONLY, Part.TOPICS),
    (
        "compression.type",
        STRING,
        "producer",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        HIGH,
        CLUSTER_WIDE,
        Part.LOG,
    ),
    ("compression.gzip.level", INT, -1, BetweenOr(1, 9, -1), MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("compression.lz4.level", INT, 9, Between(1, 17), MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("compression.zstd.level", INT, 3, Between(-131_072, 22), MEDIUM, CLUSTER_WIDE, Part.LOG),
    ("max.incremental.fetch.session.cache.slots", INT, 1000, NOT_NEGATIVE, MEDIUM, READ_ONLY, Part.REQUESTS),
    ("fetch.max.bytes", INT, 57_671_680, AtLeast(1024), MEDIUM, READ_ONLY, Part.REQUESTS),
    ("max.request.partition.size.limit", INT, 2000, POSITIVE, MEDIUM, READ_ONLY, Part.REQUESTS),
    ("unstable.api.versions.enable", BOOLEAN, False, None, HIGH, READ_ONLY, Part.INTERNAL),
    ("unstable.feature.versions.enable", BOOLEAN, False, None, HIGH, READ_ONLY, Part.INTERNAL),
)

_DOCS: Final = """
broker.id


message.max.bytes


num.io.threads


num.replica.alter.log.dirs.threads


background.threads


request.timeout.ms


socket.connection.setup.timeout.ms


socket.connection.setup.timeout.max.ms


config.providers


authorizer.class.name


early.start.listeners


broker.rack


controlled.shutdown.enable


delete.topic.enable


compression.type


compression.gzip.level


compression.lz4.level


compression.zstd.level


max.incremental.fetch.session.cache.slots


fetch.max.bytes


max.request.partition.size.limit


unstable.api.versions.enable


unstable.feature.versions.enable

"""

_INTERNAL: Final = frozenset(
    {
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    }
)

_REFUSED: Final = {
    "config.providers": "its Java classes cannot run here, and ${...} in values would be taken literally",
}

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL, refused=_REFUSED)
