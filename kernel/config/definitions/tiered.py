"""Pure core: the keys of tiered storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..keys import Part, Scope, build
from ..values import AtLeast, Between, NotEmpty
from .vocabulary import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LONG,
    LOW,
    MAX_LONG,
    MEDIUM,
    NOT_NEGATIVE,
    POSITIVE,
    READ_ONLY,
    STRING,
)

if TYPE_CHECKING:
    from ..keys import ConfigKey, Row

_ROWS: Final[tuple[Row, ...]] = (
    ("remote.log.storage.system.enable", BOOLEAN, False, None, MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", NotEmpty(), MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", NotEmpty(), MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.storage.manager.class.name", STRING, None, NotEmpty(), MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.storage.manager.class.path", STRING, None, None, MEDIUM, READ_ONLY, Part.TIERED),
    (
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        NotEmpty(),
        MEDIUM,
        READ_ONLY,
        Part.TIERED,
    ),
    ("remote.log.metadata.manager.class.path", STRING, None, None, MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.metadata.manager.listener.name", STRING, None, NotEmpty(), MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.metadata.custom.metadata.max.bytes", INT, 128, NOT_NEGATIVE, LOW, READ_ONLY, Part.TIERED),
    ("remote.log.index.file.cache.total.size.bytes", LONG, 1_073_741_824, POSITIVE, LOW, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.index.file.cache.ttl.ms", LONG, 900_000, AtLeast(-1), LOW, READ_ONLY, Part.INTERNAL),
    ("remote.log.manager.thread.pool.size", INT, 2, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.manager.copier.thread.pool.size", INT, 10, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.manager.expiration.thread.pool.size", INT, 10, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.manager.follower.thread.pool.size", INT, 2, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.manager.task.interval.ms", LONG, 30000, POSITIVE, LOW, READ_ONLY, Part.TIERED),
    ("remote.log.manager.task.retry.backoff.ms", LONG, 500, POSITIVE, LOW, READ_ONLY, Part.INTERNAL),
    ("remote.log.manager.task.retry.backoff.max.ms", LONG, 30000, POSITIVE, LOW, READ_ONLY, Part.INTERNAL),
    ("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, Between(0, 0.5), LOW, READ_ONLY, Part.INTERNAL),
    ("remote.log.reader.threads", INT, 10, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.reader.max.pending.tasks", INT, 100, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED),
    ("log.local.retention.ms", LONG, -2, AtLeast(-2), MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("log.local.retention.bytes", LONG, -2, AtLeast(-2), MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.manager.copy.max.bytes.per.second", LONG, MAX_LONG, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.manager.copy.quota.window.num", INT, 11, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.manager.copy.quota.window.size.seconds", INT, 1, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.manager.fetch.max.bytes.per.second", LONG, MAX_LONG, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.manager.fetch.quota.window.num", INT, 11, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED),
    ("remote.fetch.max.wait.ms", INT, 500, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.list.offsets.request.timeout.ms", LONG, 30000, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
)

_DOCS: Final = """
remote.log.storage.system.enable


remote.log.storage.manager.impl.prefix


remote.log.metadata.manager.impl.prefix


remote.log.storage.manager.class.name


remote.log.storage.manager.class.path


remote.log.metadata.manager.class.name


remote.log.metadata.manager.class.path


remote.log.metadata.manager.listener.name


remote.log.metadata.custom.metadata.max.bytes


remote.log.index.file.cache.total.size.bytes


remote.log.index.file.cache.ttl.ms


remote.log.manager.thread.pool.size


remote.log.manager.copier.thread.pool.size


remote.log.manager.expiration.thread.pool.size


remote.log.manager.follower.thread.pool.size


remote.log.manager.task.interval.ms


remote.log.manager.task.retry.backoff.ms


remote.log.manager.task.retry.backoff.max.ms


remote.log.manager.task.retry.jitter


remote.log.reader.threads


remote.log.reader.max.pending.tasks


log.local.retention.ms


log.local.retention.bytes


remote.log.manager.copy.max.bytes.per.second


remote.log.manager.copy.quota.window.num


remote.log.manager.copy.quota.window.size.seconds


remote.log.manager.fetch.max.bytes.per.second


remote.log.manager.fetch.quota.window.num


remote.log.manager.fetch.quota.window.size.seconds


remote.fetch.max.wait.ms


remote.list.offsets.request.timeout.ms

"""

_INTERNAL: Final = frozenset(
    {
        "remote.log.index.file.cache.ttl.ms",
        "remote.log.manager.task.retry.backoff.ms",
        "remote.log.manager.task.retry.backoff.max.ms",
        "remote.log.manager.task.retry.jitter",
    }
)

KEYS: Final[tuple[ConfigKey, ...]] = build(_ROWS, _DOCS, scope=Scope.BROKER, internal=_INTERNAL)
