"""All that a plugin may import of the kernel.

Names are stable from one minor version to the next; everything else in `odradek.kernel` may move.
"""

from __future__ import annotations

import pluggy

from .clock import Clock
from .config.keys import ConfigKey, Importance, Part, Scope, UpdateMode
from .config.values import AtLeast, Between, ConfigType, NotEmpty, OneOf
from .contracts.api_handler import PENDING, ApiHandler, AsyncApiHandler, ConnectionInfo, RequestContext
from .contracts.append_stage import AppendStage, AppendStageFactory
from .contracts.coordinator import CoordinatorResult, CoordinatorShard
from .contracts.disk_work import DiskWork, do_now
from .contracts.election import (
    Election,
    ElectionContext,
    ElectionFactory,
    ElectionInput,
    ElectionReason,
    IsrChange,
    MetadataChanged,
    PartitionState,
    PeerMessage,
    Ready,
    Role,
)
from .contracts.log_values import EpochEnd, FileSlice, RecordsData, SegmentInfo
from .contracts.services import BrokerHandle, Metric, Service
from .contracts.storage import (
    EMPTY_READ,
    NO_LIMIT,
    FoundLog,
    LogConfig,
    LogDirInfo,
    LogMove,
    LogRead,
    PartitionLog,
    StorageContext,
    StorageEngine,
    StorageFactory,
)
from .epochs import EpochCache
from .errors import (
    ConfigError,
    CorruptionError,
    ErrorCode,
    KafkaError,
    MalformedRequestError,
    OdradekError,
    PluginError,
    StorageError,
)
from .files import (
    CREATE,
    IOV_MAX,
    READ,
    READ_WRITE,
    DiskError,
    FileHandle,
    FileLock,
    Files,
    FileStat,
    OsFiles,
    disk_error,
    read_file,
    replace_file,
    sync_file,
    write_all,
)
from .ids import ZERO_ID, IdSource, id_text, parse_id
from .records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    CorruptRecordsError,
    is_crc_valid,
    iterate_batches,
    read_header,
)
from .records.reader import read_batch
from .types import Buffer, TopicIdPartition, TopicPartition

hookimpl = pluggy.HookimplMarker("odradek")
"""Marks a plugin's function as the implementation of the hook of its name."""

__all__ = [
    "CREATE",
    "EMPTY_READ",
    "HEADER_SIZE",
    "IOV_MAX",
    "LOG_OVERHEAD",
    "MAGIC",
    "NO_LIMIT",
    "PENDING",
    "READ",
    "READ_WRITE",
    "ZERO_ID",
    "ApiHandler",
    "AppendStage",
    "AppendStageFactory",
    "AsyncApiHandler",
    "AtLeast",
    "BatchHeader",
    "Between",
    "BrokerHandle",
    "Buffer",
    "Clock",
    "ConfigError",
    "ConfigKey",
    "ConfigType",
    "ConnectionInfo",
    "CoordinatorResult",
    "CoordinatorShard",
    "CorruptRecordsError",
    "CorruptionError",
    "DiskError",
    "DiskWork",
    "Election",
    "ElectionContext",
    "ElectionFactory",
    "ElectionInput",
    "ElectionReason",
    "EpochCache",
    "EpochEnd",
    "ErrorCode",
    "FileHandle",
    "FileLock",
    "FileSlice",
    "FileStat",
    "Files",
    "FoundLog",
    "IdSource",
    "Importance",
    "IsrChange",
    "KafkaError",
    "LogConfig",
    "LogDirInfo",
    "LogMove",
    "LogRead",
    "MalformedRequestError",
    "MetadataChanged",
    "Metric",
    "NotEmpty",
    "OdradekError",
    "OneOf",
    "OsFiles",
    "Part",
    "PartitionLog",
    "PartitionState",
    "PeerMessage",
    "PluginError",
    "Ready",
    "RecordsData",
    "RequestContext",
    "Role",
    "Scope",
    "SegmentInfo",
    "Service",
    "StorageContext",
    "StorageEngine",
    "StorageError",
    "StorageFactory",
    "TopicIdPartition",
    "TopicPartition",
    "UpdateMode",
    "disk_error",
    "do_now",
    "hookimpl",
    "id_text",
    "is_crc_valid",
    "iterate_batches",
    "parse_id",
    "read_batch",
    "read_file",
    "read_header",
    "replace_file",
    "sync_file",
    "write_all",
]
