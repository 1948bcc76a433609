"""All that a plugin may import of the kernel.

What others may build on, and what stays from one minor version to the next:

| module of `odradek` | who imports it |
| --- | --- |
| `kernel.api` | plugins |
| `kernel.wire.messages` | plugins that speak Kafka's protocol themselves |
| `storage_base` | plugins that bring a storage |
| `client`, `client.partitioners` | programs: producers, consumers, admin clients |
| `testing.running_broker`, `.running_cluster`, `.pytest_plugin` | tests of programs: brokers, fixtures |
| `testing.contracts`, `.batches`, `.faults`, `.shard_harness`, `.one_shard_runtime` | tests of plugins |
| `spark_plugin`, `spark_plugin.lag` | jobs of Spark |

Everything else may move.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pluggy

from .classes import define, frozen
from .config.keys import ConfigKey, Importance, Part, Scope, UpdateMode
from .config.meta_properties import META_PROPERTIES, MetaProperties, decode_meta_properties, encode_meta_properties
from .config.values import AtLeast, Between, ConfigType, Durations, InvalidValueError, NotEmpty, OneOf
from .contracts.api_handler import (
    AS_TASK,
    PENDING,
    Answer,
    ApiHandler,
    AsyncApiHandler,
    ConnectionInfo,
    LazyHandler,
    RequestContext,
)
from .contracts.append_stage import AppendStage, AppendStageFactory, Diverted
from .contracts.assignor import (
    NO_GENERATION,
    Assignor,
    GroupMember,
    MemberAssignment,
    Partitions,
    SubscribedTopic,
    checked_assignment,
)
from .contracts.cleanup import (
    FOR_EVER,
    NOTHING_TO_CLEAN,
    CleanupPlan,
    CleanupPolicy,
    CleanupSettings,
    Compaction,
    Deletion,
    Expiry,
    LogState,
    RecordDue,
    RecordSelection,
    SelectionFactory,
    WeighingSelection,
)
from .contracts.coordinator import (
    NO_PRODUCER,
    PARKED,
    ClusterView,
    Coordinator,
    CoordinatorResult,
    CoordinatorRuntime,
    CoordinatorShard,
    CoordinatorSteps,
    CoordinatorTimers,
    MetadataChange,
    ProducerIdentity,
    TimerKey,
    TopicKeys,
    TopicView,
    Waiter,
)
from .contracts.coordinator_keys import coordinator_partition
from .contracts.delay_queue import DelayQueue, DelayQueueFactory, WaitingRecord
from .contracts.disk_work import DiskWork, LogMove, do_now
from .contracts.election import (
    Election,
    ElectionContext,
    ElectionFactory,
    ElectionInput,
    ElectionReason,
    FetchEnded,
    IsrChange,
    IsrChangeEnded,
    KnownBroker,
    LeadershipGivenUp,
    MetadataChanged,
    PartitionState,
    PeerMessage,
    PeerRefused,
    Ready,
    Role,
    VotersChanged,
)
from .contracts.log_values import EpochEnd, FileSlice, FoundLog, LogDirInfo, RecordsData, SegmentInfo
from .contracts.observing import (
    BrokerFigures,
    FetchSessionFigures,
    LatencyFigures,
    LogFigures,
    NetworkFigures,
    ReplicaFigures,
    RequestFigures,
    TopicCounters,
    TopicFigures,
    WaitingFigures,
)
from .contracts.pieces import ListPieces, are_many
from .contracts.retry_policy import RetryPolicy, RetryPolicyFactory
from .contracts.rewriting import RewritePlace, SegmentRewrite, SegmentSource, SegmentWriter
from .contracts.services import BrokerHandle, ConfigView, Metric, Service
from .contracts.storage import EMPTY_READ, NO_LIMIT, KnownEnd, LogConfig, LogRead, PartitionLog, StorageEngine
from .contracts.storage_context import StorageContext, StorageFactory
from .contracts.tiering import RecordsAreRemoteError, Tier, TieredLog, TierSettings, TierStart
from .contracts.transactions import Admission, MarkerWriter, TransactionMarker, Transactions
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
from .machine.clock import Clock
from .machine.files import (
    CREATE,
    IOV_MAX,
    NO_ROOM,
    READ,
    READ_WRITE,
    DiskError,
    FileHandle,
    FileLock,
    Files,
    FileStat,
    OpenSlice,
    OsFiles,
    disk_error,
    read_file,
    replace_file,
    sync_file,
    write_all,
)
from .machine.ids import IdSource
from .machine.machine import Machine
from .machine.network import Network, StreamListeners
from .machine.processes import Processes
from .machine.progress import ProgressLine, fills_a_file, part_text
from .machine.threads import Lock, Threads, Workers
from .machine.turnstile import Slices, run_at_once, take_turn
from .purgatory.gathering import Gathered
from .records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    CorruptRecordsError,
    is_crc_valid,
    iterate_batches,
    read_header,
)
from .records.builder import BatchBuilder
from .records.compression import CompressionType
from .records.control import (
    KRaftControlRecord,
    KRaftVersion,
    KRaftVersionRange,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
    TriedVoters,
    VoterEndpoint,
)
from .records.header_due import HeaderDue
from .records.key_table import KeyTable, Winner
from .records.reader import read_batch
from .records.record import Record
from .records.record_view import NEVER_DUE, RecordView
from .types import (
    INTERNAL_TOPICS,
    NO_EPOCH,
    NO_OFFSET,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    ZERO_ID,
    Buffer,
    LogOffsets,
    TopicIdPartition,
    TopicPartition,
    id_text,
    parse_id,
)
from .wire import fields
from .wire.codec import decode, encode_bytes
from .wire.errors import DecodeError
from .wire.message import Message

if TYPE_CHECKING:
    from .contracts.remote_store import (
        ObjectExistsError,
        ObjectInfo,
        ObjectMissingError,
        ObjectStore,
        RemoteStoreError,
        StoreRefusedError,
        StoreUnavailableError,
    )
    from .contracts.restoring import RestoredPartition, RestoredSidecar, RestoredTopic, TopicRestorer
    from .regex import PORTION_STEPS, Pattern, PatternError, compile_pattern

hookimpl = pluggy.HookimplMarker("odradek")
"""Marks a plugin's function as the implementation of the hook of its name."""

_HOMES: Final = {
    "ObjectExistsError": "contracts.remote_store",
    "ObjectInfo": "contracts.remote_store",
    "ObjectMissingError": "contracts.remote_store",
    "ObjectStore": "contracts.remote_store",
    "PORTION_STEPS": "regex",
    "Pattern": "regex",
    "PatternError": "regex",
    "RemoteStoreError": "contracts.remote_store",
    "RestoredPartition": "contracts.restoring",
    "RestoredSidecar": "contracts.restoring",
    "RestoredTopic": "contracts.restoring",
    "StoreRefusedError": "contracts.remote_store",
    "StoreUnavailableError": "contracts.remote_store",
    "TopicRestorer": "contracts.restoring",
    "compile_pattern": "regex",
}
"""What most brokers have no use for is imported when it is asked for."""

__all__ = [
    "AS_TASK",
    "CREATE",
    "EMPTY_READ",
    "FOR_EVER",
    "HEADER_SIZE",
    "INTERNAL_TOPICS",
    "IOV_MAX",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAGIC_POSITION",
    "META_PROPERTIES",
    "NEVER_DUE",
    "NOTHING_TO_CLEAN",
    "NO_EPOCH",
    "NO_GENERATION",
    "NO_LIMIT",
    "NO_OFFSET",
    "NO_PRODUCER",
    "NO_PRODUCER_ID",
    "NO_ROOM",
    "NO_TIMESTAMP",
    "PARKED",
    "PENDING",
    "PORTION_STEPS",
    "READ",
    "READ_WRITE",
    "ZERO_ID",
    "Admission",
    "Answer",
    "ApiHandler",
    "AppendStage",
    "AppendStageFactory",
    "Assignor",
    "AsyncApiHandler",
    "AtLeast",
    "BatchBuilder",
    "BatchHeader",
    "Between",
    "BrokerFigures",
    "BrokerHandle",
    "Buffer",
    "CleanupPlan",
    "CleanupPolicy",
    "CleanupSettings",
    "Clock",
    "ClusterView",
    "Compaction",
    "CompressionType",
    "ConfigError",
    "ConfigKey",
    "ConfigType",
    "ConfigView",
    "ConnectionInfo",
    "Coordinator",
    "CoordinatorResult",
    "CoordinatorRuntime",
    "CoordinatorShard",
    "CoordinatorSteps",
    "CoordinatorTimers",
    "CorruptRecordsError",
    "CorruptionError",
    "DecodeError",
    "DelayQueue",
    "DelayQueueFactory",
    "Deletion",
    "DiskError",
    "DiskWork",
    "Diverted",
    "Durations",
    "Election",
    "ElectionContext",
    "ElectionFactory",
    "ElectionInput",
    "ElectionReason",
    "EpochEnd",
    "ErrorCode",
    "Expiry",
    "FetchEnded",
    "FetchSessionFigures",
    "FileHandle",
    "FileLock",
    "FileSlice",
    "FileStat",
    "Files",
    "FoundLog",
    "Gathered",
    "GroupMember",
    "HeaderDue",
    "IdSource",
    "Importance",
    "InvalidValueError",
    "IsrChange",
    "IsrChangeEnded",
    "KRaftControlRecord",
    "KRaftVersion",
    "KRaftVersionRange",
    "KRaftVoter",
    "KRaftVoters",
    "KafkaError",
    "KeyTable",
    "KnownBroker",
    "KnownEnd",
    "LatencyFigures",
    "LazyHandler",
    "LeaderChange",
    "LeadershipGivenUp",
    "ListPieces",
    "Lock",
    "LogConfig",
    "LogDirInfo",
    "LogFigures",
    "LogMove",
    "LogOffsets",
    "LogRead",
    "LogState",
    "Machine",
    "MalformedRequestError",
    "MarkerWriter",
    "MemberAssignment",
    "Message",
    "MetaProperties",
    "MetadataChange",
    "MetadataChanged",
    "Metric",
    "Network",
    "NetworkFigures",
    "NotEmpty",
    "ObjectExistsError",
    "ObjectInfo",
    "ObjectMissingError",
    "ObjectStore",
    "OdradekError",
    "OneOf",
    "OpenSlice",
    "OsFiles",
    "Part",
    "PartitionLog",
    "PartitionState",
    "Partitions",
    "Pattern",
    "PatternError",
    "PeerMessage",
    "PeerRefused",
    "PluginError",
    "Processes",
    "ProducerIdentity",
    "ProgressLine",
    "QuorumVoter",
    "Ready",
    "Record",
    "RecordDue",
    "RecordSelection",
    "RecordView",
    "RecordsAreRemoteError",
    "RecordsData",
    "RemoteStoreError",
    "ReplicaFigures",
    "RequestContext",
    "RequestFigures",
    "RestoredPartition",
    "RestoredSidecar",
    "RestoredTopic",
    "RetryPolicy",
    "RetryPolicyFactory",
    "RewritePlace",
    "Role",
    "Scope",
    "SegmentInfo",
    "SegmentRewrite",
    "SegmentSource",
    "SegmentWriter",
    "SelectionFactory",
    "Service",
    "Slices",
    "StorageContext",
    "StorageEngine",
    "StorageError",
    "StorageFactory",
    "StoreRefusedError",
    "StoreUnavailableError",
    "StreamListeners",
    "SubscribedTopic",
    "Threads",
    "Tier",
    "TierSettings",
    "TierStart",
    "TieredLog",
    "TimerKey",
    "TopicCounters",
    "TopicFigures",
    "TopicIdPartition",
    "TopicKeys",
    "TopicPartition",
    "TopicRestorer",
    "TopicView",
    "TransactionMarker",
    "Transactions",
    "TriedVoters",
    "UpdateMode",
    "VoterEndpoint",
    "VotersChanged",
    "Waiter",
    "WaitingFigures",
    "WaitingRecord",
    "WeighingSelection",
    "Winner",
    "Workers",
    "are_many",
    "checked_assignment",
    "compile_pattern",
    "coordinator_partition",
    "decode",
    "decode_meta_properties",
    "define",
    "disk_error",
    "do_now",
    "encode_bytes",
    "encode_meta_properties",
    "fields",
    "fills_a_file",
    "frozen",
    "hookimpl",
    "id_text",
    "is_crc_valid",
    "iterate_batches",
    "parse_id",
    "part_text",
    "read_batch",
    "read_file",
    "read_header",
    "replace_file",
    "run_at_once",
    "sync_file",
    "take_turn",
    "write_all",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{home}", __package__), name)
    return found
