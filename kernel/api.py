"""All that a plugin may import of the kernel.

Names are stable from one minor version to the next; everything else in `odradek.kernel` may move.
"""

from __future__ import annotations

import pluggy

from .clock import Clock
from .contracts.api_handler import PENDING, ApiHandler, AsyncApiHandler, ConnectionInfo, RequestContext
from .contracts.append_stage import AppendStage, AppendStageFactory
from .contracts.coordinator import CoordinatorResult, CoordinatorShard
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
from .contracts.services import BrokerHandle, Metric, Service
from .contracts.storage import (
    EMPTY_READ,
    NO_LIMIT,
    EpochEnd,
    FileSlice,
    FoundLog,
    LogConfig,
    LogDirInfo,
    LogRead,
    PartitionLog,
    RecordsData,
    SegmentInfo,
    StorageContext,
    StorageEngine,
    StorageFactory,
)
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
from .ids import ZERO_ID, IdSource, id_text, parse_id
from .types import Buffer, TopicIdPartition, TopicPartition

hookimpl = pluggy.HookimplMarker("odradek")
"""Marks a plugin's function as the implementation of the hook of its name."""

__all__ = [
    "EMPTY_READ",
    "NO_LIMIT",
    "PENDING",
    "ZERO_ID",
    "ApiHandler",
    "AppendStage",
    "AppendStageFactory",
    "AsyncApiHandler",
    "BrokerHandle",
    "Buffer",
    "Clock",
    "ConfigError",
    "ConnectionInfo",
    "CoordinatorResult",
    "CoordinatorShard",
    "CorruptionError",
    "Election",
    "ElectionContext",
    "ElectionFactory",
    "ElectionInput",
    "ElectionReason",
    "EpochEnd",
    "ErrorCode",
    "FileSlice",
    "FoundLog",
    "IdSource",
    "IsrChange",
    "KafkaError",
    "LogConfig",
    "LogDirInfo",
    "LogRead",
    "MalformedRequestError",
    "MetadataChanged",
    "Metric",
    "OdradekError",
    "PartitionLog",
    "PartitionState",
    "PeerMessage",
    "PluginError",
    "Ready",
    "RecordsData",
    "RequestContext",
    "Role",
    "SegmentInfo",
    "Service",
    "StorageContext",
    "StorageEngine",
    "StorageError",
    "StorageFactory",
    "TopicIdPartition",
    "TopicPartition",
    "hookimpl",
    "id_text",
    "parse_id",
]
