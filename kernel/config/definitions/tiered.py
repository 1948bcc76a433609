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
    (
        "remote.log.storage.manager.impl.prefix",
        STRING,
        "rsm.config.",
        NotEmpty(),
        MEDIUM,
        READ_ONLY,
        Part.TIERED_CLASSES,
    ),
    (
        "remote.log.metadata.manager.impl.prefix",
        STRING,
        "rlmm.config.",
        NotEmpty(),
        MEDIUM,
        READ_ONLY,
        Part.TIERED_CLASSES,
    ),
    ("remote.log.storage.manager.class.name", STRING, None, NotEmpty(), MEDIUM, READ_ONLY, Part.TIERED_CLASSES),
    ("remote.log.storage.manager.class.path", STRING, None, None, MEDIUM, READ_ONLY, Part.TIERED_CLASSES),
    (
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        NotEmpty(),
        MEDIUM,
        READ_ONLY,
        Part.TIERED_CLASSES,
    ),
    ("remote.log.metadata.manager.class.path", STRING, None, None, MEDIUM, READ_ONLY, Part.TIERED_CLASSES),
    ("remote.log.metadata.manager.listener.name", STRING, None, NotEmpty(), MEDIUM, READ_ONLY, Part.TIERED_CLASSES),
    ("remote.log.metadata.custom.metadata.max.bytes", INT, 128, NOT_NEGATIVE, LOW, READ_ONLY, Part.TIERED_CLASSES),
    ("remote.log.index.file.cache.total.size.bytes", LONG, 1_073_741_824, POSITIVE, LOW, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.index.file.cache.ttl.ms", LONG, 900_000, AtLeast(-1), LOW, READ_ONLY, Part.INTERNAL),
    ("remote.log.manager.thread.pool.size", INT, 2, POSITIVE, MEDIUM, READ_ONLY, Part.THREADS),
    ("remote.log.manager.copier.thread.pool.size", INT, 10, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.manager.expiration.thread.pool.size", INT, 10, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.THREADS),
    ("remote.log.manager.follower.thread.pool.size", INT, 2, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.THREADS),
    ("remote.log.manager.task.interval.ms", LONG, 30000, POSITIVE, LOW, READ_ONLY, Part.TIERED),
    ("remote.log.manager.task.retry.backoff.ms", LONG, 500, POSITIVE, LOW, READ_ONLY, Part.TIERED),
    ("remote.log.manager.task.retry.backoff.max.ms", LONG, 30000, POSITIVE, LOW, READ_ONLY, Part.TIERED),
    ("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, Between(0, 0.5), LOW, READ_ONLY, Part.TIERED),
    ("remote.log.reader.threads", INT, 10, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.reader.max.pending.tasks", INT, 100, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED),
    ("log.local.retention.ms", LONG, -2, AtLeast(-2), MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("log.local.retention.bytes", LONG, -2, AtLeast(-2), MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.manager.copy.max.bytes.per.second", LONG, MAX_LONG, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.log.manager.copy.quota.window.num", INT, 11, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED_WINDOWS),
    ("remote.log.manager.copy.quota.window.size.seconds", INT, 1, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED_WINDOWS),
    ("remote.log.manager.fetch.max.bytes.per.second", LONG, MAX_LONG, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.QUOTAS),
    ("remote.log.manager.fetch.quota.window.num", INT, 11, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED_WINDOWS),
    ("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, POSITIVE, MEDIUM, READ_ONLY, Part.TIERED_WINDOWS),
    ("remote.fetch.max.wait.ms", INT, 500, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
    ("remote.list.offsets.request.timeout.ms", LONG, 30000, POSITIVE, MEDIUM, CLUSTER_WIDE, Part.TIERED),
)

_DOCS: Final = """
remote.log.storage.system.enable
    Turns tiered storage on for the whole broker; topics then choose it with `remote.storage.enable`.

remote.log.storage.manager.impl.prefix
    Settings that begin with this are handed to the remote storage plugin, without it.

remote.log.metadata.manager.impl.prefix
    Settings that begin with this are handed to the keeper of remote log metadata, without it.

remote.log.storage.manager.class.name
    The Java class that stores segments remotely.

remote.log.storage.manager.class.path
    Where the Java class that stores segments remotely is loaded from.

remote.log.metadata.manager.class.name
    The Java class that remembers which segments are remote.

remote.log.metadata.manager.class.path
    Where the Java class that remembers which segments are remote is loaded from.

remote.log.metadata.manager.listener.name
    The listener through which remote log metadata is read and written inside the cluster.

remote.log.metadata.custom.metadata.max.bytes
    How many bytes a remote storage may remember of its own for each segment.

remote.log.index.file.cache.total.size.bytes
    How much disk the local copies of remote indexes may take.

remote.log.index.file.cache.ttl.ms
    How long a local copy of a remote index is kept after its last use.

remote.log.manager.thread.pool.size
    Threads that schedule the work of tiered storage.

remote.log.manager.copier.thread.pool.size
    Threads that copy segments to the remote storage.

remote.log.manager.expiration.thread.pool.size
    Threads that delete expired remote segments.

remote.log.manager.follower.thread.pool.size
    Threads that follow what leaders have copied.

remote.log.manager.task.interval.ms
    How often each partition is looked at for segments to copy or to delete.

remote.log.manager.task.retry.backoff.ms
    The first pause after a failed remote operation.

remote.log.manager.task.retry.backoff.max.ms
    The longest pause after failed remote operations.

remote.log.manager.task.retry.jitter
    The random share of a retry's pause.

remote.log.reader.threads
    Threads that read remote segments for fetches.

remote.log.reader.max.pending.tasks
    How many remote reads may wait for a thread; beyond it, fetches of remote data fail.

log.local.retention.ms
    How long segments that are stored remotely stay on the local disk too; -2 follows `log.retention.ms`.

log.local.retention.bytes
    How many bytes of a partition stay on the local disk once stored remotely; -2 follows `log.retention.bytes`.

remote.log.manager.copy.max.bytes.per.second
    How fast segments are copied to the remote storage, for the whole broker.

remote.log.manager.copy.quota.window.num
    How many windows the copy rate is averaged over.

remote.log.manager.copy.quota.window.size.seconds
    How long one window of the copy rate is.

remote.log.manager.fetch.max.bytes.per.second
    How fast remote segments are read, for the whole broker.

remote.log.manager.fetch.quota.window.num
    How many windows the remote read rate is averaged over.

remote.log.manager.fetch.quota.window.size.seconds
    How long one window of the remote read rate is.

remote.fetch.max.wait.ms
    How long a fetch waits for remote data before it answers without.

remote.list.offsets.request.timeout.ms
    How long ListOffsets waits for remote indexes.
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
