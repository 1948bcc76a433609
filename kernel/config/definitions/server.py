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
    ("request.timeout.ms", INT, 30000, None, HIGH, READ_ONLY, Part.TRANSACTIONS),
    ("socket.connection.setup.timeout.ms", LONG, 10000, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("socket.connection.setup.timeout.max.ms", LONG, 30000, None, MEDIUM, READ_ONLY, Part.CLUSTER),
    ("config.providers", LIST, (), ANY_LIST, LOW, CLUSTER_WIDE, Part.JVM),
    ("authorizer.class.name", STRING, "", None, LOW, READ_ONLY, Part.SECURITY),
    ("early.start.listeners", LIST, None, ANY_LIST, HIGH, READ_ONLY, Part.SECURITY),
    ("broker.rack", STRING, None, None, MEDIUM, READ_ONLY, Part.METADATA),
    ("controlled.shutdown.enable", BOOLEAN, True, None, MEDIUM, READ_ONLY, Part.MEMBERSHIP),
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
    The old name of `node.id`; each stands for the other, and both together must agree.

message.max.bytes
    The largest record batch that a topic takes, compressed as it came; topics may choose their own with
    `max.message.bytes`.

num.io.threads
    Threads that handle requests in a JVM broker.

num.replica.alter.log.dirs.threads
    Threads that move replicas between log directories in a JVM broker.

background.threads
    Threads for background work in a JVM broker.

request.timeout.ms
    How long this broker waits for the answer of another one.

socket.connection.setup.timeout.ms
    How long a connection to another broker may take to come up, at the first try.

socket.connection.setup.timeout.max.ms
    How long a connection to another broker may take at most: the time doubles with every failure.

config.providers
    Java classes that replace `${...}` in values by secrets from elsewhere.

authorizer.class.name
    The authorizer that decides who may do what; empty allows everything.

early.start.listeners
    Listeners that open before the authorizer is ready.

broker.rack
    The rack or zone this broker is in; shown in Metadata, so that clients can prefer near replicas.

controlled.shutdown.enable
    Whether a stopping broker first hands its leaderships to others.

delete.topic.enable
    Whether DeleteTopics deletes; otherwise it is refused with TOPIC_DELETION_DISABLED.

compression.type
    How batches are compressed on disk for topics that do not choose; `producer` keeps them as they came.

compression.gzip.level
    The level when the broker compresses with gzip; -1 is zlib's own default.

compression.lz4.level
    The level when the broker compresses with LZ4.

compression.zstd.level
    The level when the broker compresses with Zstandard.

max.incremental.fetch.session.cache.slots
    How many incremental fetch sessions are remembered; clients beyond it send whole fetches.

fetch.max.bytes
    The most record bytes in one answer to Fetch; a single batch that is larger goes out all the same.

max.request.partition.size.limit
    The most partitions in one answer to DescribeTopicPartitions; the rest comes by cursor.

unstable.api.versions.enable
    Lets Kafka's developers offer API versions that are not final.

unstable.feature.versions.enable
    Lets Kafka's developers offer feature versions that are not final.
"""

_INTERNAL: Final = frozenset(
    {
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    }
)

_REFUSED: Final = {
    "authorizer.class.name": "ACLs are not built yet, and everybody would be allowed everything",
    "config.providers": "its Java classes cannot run here, and ${...} in values would be taken literally",
}

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL, refused=_REFUSED)
