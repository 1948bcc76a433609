"""Pure core: the records of the metadata log, and how they stand in a record's value.

The notation is the wire's; types and fields are this project's own. A record's value begins with a frame::

    frame version (1 byte: 1) | type (1 byte, below 128) | version of the type (1 byte) | fields

Keys are null. A record states a whole fact ("the partition is so"), never a difference, so that replaying one twice
does no harm. Types and versions are only ever added; `docs/reference/metadata-records.md` lists all of them. Which
version is written, the finalized level of `metadata.version` says, so that every broker of a cluster can read it.

*Source:* the form of Kafka's `MetadataRecordSerde`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from ..errors import CorruptionError, StorageError
from ..wire import fields as f
from ..wire.codec import decode, encode_bytes
from ..wire.errors import DecodeError
from ..wire.message import Message
from .features import METADATA_VERSION_ELR

if TYPE_CHECKING:
    from ..types import Buffer

FORMAT_VERSION: Final = 1
"""The newest format of the metadata log that this version reads, and the one it writes."""

FRAME_VERSION: Final = 1


class FormatRecord(Message, key=1, versions="0", flexible="0+"):
    """The first record of the log and of every snapshot: the format of all others, and whose log it is."""

    format_version: int = f.int16()
    cluster_id: str = f.string()


class RegisteredListener(Message):
    """An item of `BrokerRecord.listeners`."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()
    security_protocol: int = f.int16()


class SupportedFeature(Message):
    """An item of `BrokerRecord.features`."""

    name: str = f.string()
    level_min: int = f.int16()
    level_max: int = f.int16()


class BrokerRecord(Message, key=2, versions="0", flexible="0+"):
    """A broker is registered like this; replaces what was known of it. The last two are tagged: of every level."""

    broker_id: int = f.int32()
    broker_epoch: int = f.int64()
    incarnation_id: UUID = f.uuid()
    listeners: list[RegisteredListener] = f.array(RegisteredListener)
    rack: str | None = f.string(nullable="0+", default=None)
    log_dirs: list[UUID] = f.uuids()
    is_fenced: bool = f.boolean(default=True)
    in_controlled_shutdown: bool = f.boolean()
    features: list[SupportedFeature] = f.array(SupportedFeature, "0+", tag=0)
    cordoned_log_dirs: list[UUID] = f.uuids("0+", tag=1)


class RemoveBrokerRecord(Message, key=3, versions="0", flexible="0+"):
    """A broker is unregistered."""

    broker_id: int = f.int32()


class TopicRecord(Message, key=4, versions="0", flexible="0+"):
    """There is a topic of this name and id, held by this storage and election for its life; its partitions follow."""

    name: str = f.string()
    topic_id: UUID = f.uuid()
    storage: str = f.string()
    election: str = f.string()


class PartitionRecord(Message, key=5, versions="0-1", flexible="0+"):
    """A partition is like this; replaces what was known of it. A new one has the next free index; three are tagged."""

    topic_id: UUID = f.uuid()
    partition: int = f.int32()
    leader: int = f.int32(default=-1)
    leader_epoch: int = f.int32()
    partition_epoch: int = f.int32()
    replicas: list[int] = f.int32s()
    isr: list[int] = f.int32s()
    adding_replicas: list[int] = f.int32s()
    removing_replicas: list[int] = f.int32s()
    directories: list[UUID] = f.uuids()
    eligible_leader_replicas: list[int] = f.int32s("1+")
    last_known_elr: list[int] = f.int32s("1+")
    voters: list[int] = f.int32s("0+", tag=0)
    former_voters: list[int] = f.int32s("0+", tag=1)
    voters_epoch: int = f.int32("0+", tag=2)


class RemoveTopicRecord(Message, key=6, versions="0", flexible="0+"):
    """A topic is deleted, with its partitions and its configs."""

    topic_id: UUID = f.uuid()


class ConfigRecord(Message, key=7, versions="0", flexible="0+"):
    """A resource's config key has this value, or with a null value is no longer set."""

    resource_type: int = f.int8()
    resource_name: str = f.string()
    name: str = f.string()
    value: str | None = f.string(nullable="0+", default=None)


class FeatureRecord(Message, key=8, versions="0", flexible="0+"):
    """A feature is finalized at this level; 0 switches it off."""

    name: str = f.string()
    level: int = f.int16()


class ProducerIdsRecord(Message, key=9, versions="0", flexible="0+"):
    """A broker was given the producer ids below `next_producer_id`; the next block begins there."""

    broker_id: int = f.int32()
    broker_epoch: int = f.int64()
    next_producer_id: int = f.int64()


class SnapshotEndRecord(Message, key=10, versions="0", flexible="0+"):
    """The last record of a snapshot: with it, and only with it, the snapshot is whole."""

    records_count: int = f.int64()
    last_offset: int = f.int64()
    last_epoch: int = f.int32()
    written_ms: int = f.int64()


class NoOpRecord(Message, key=11, versions="0", flexible="0+"):
    """Nothing: written where only the position in the log matters."""


class ControllerRecord(Message, key=12, versions="0", flexible="0+"):
    """A controller is registered like this; replaces what was known of it. One controller of its own writes none."""

    controller_id: int = f.int32()
    incarnation_id: UUID = f.uuid()
    listeners: list[RegisteredListener] = f.array(RegisteredListener)
    features: list[SupportedFeature] = f.array(SupportedFeature)


MetadataRecord: TypeAlias = (
    FormatRecord
    | BrokerRecord
    | RemoveBrokerRecord
    | TopicRecord
    | PartitionRecord
    | RemoveTopicRecord
    | ConfigRecord
    | FeatureRecord
    | ProducerIdsRecord
    | SnapshotEndRecord
    | NoOpRecord
    | ControllerRecord
)

RECORD_TYPES: Final[dict[int, type[MetadataRecord]]] = {
    cls.__api_key__: cls
    for cls in (
        FormatRecord,
        BrokerRecord,
        RemoveBrokerRecord,
        TopicRecord,
        PartitionRecord,
        RemoveTopicRecord,
        ConfigRecord,
        FeatureRecord,
        ProducerIdsRecord,
        SnapshotEndRecord,
        NoOpRecord,
        ControllerRecord,
    )
}
"""Type number to class; numbers are never given twice."""

assert max(RECORD_TYPES) < 128, "a type is one byte, of which the highest bit is left for longer numbers"


WRITTEN_VERSIONS: Final[dict[type[MetadataRecord], tuple[tuple[int, int], ...]]] = {
    PartitionRecord: ((METADATA_VERSION_ELR, 1),),
}
"""From which level of `metadata.version` on which version of a type is written; version 0 before the first, and of
types that are not here."""


def written_version(record_type: type[MetadataRecord], metadata_version: int) -> int:
    """Return the version of a type that is written while `metadata.version` is finalized at this level, 0 for none."""
    versions = WRITTEN_VERSIONS.get(record_type, ())
    return max((version for level, version in versions if level <= metadata_version), default=0)


NEWEST_WRITTEN_LEVEL: Final = max(level for versions in WRITTEN_VERSIONS.values() for level, _version in versions)
"""From this level of `metadata.version` on, every type is written in its newest version."""


class UnknownRecordError(StorageError):
    """A metadata record is of a type or version that this version of the broker does not know."""


def is_newer(value: Buffer, metadata_version: int) -> bool:
    """Return whether a record's value is of a version that is not written at a level: an older build cannot read it."""
    record_type = RECORD_TYPES.get(value[1]) if len(value) >= 3 else None
    return record_type is not None and value[2] > written_version(record_type, metadata_version)


def encode_record(record: MetadataRecord, metadata_version: int) -> bytes:
    """Return the record's value, in the version that the finalized level of `metadata.version` allows.

    Raises:
        EncodeError: It says what that version has no place for.
    """
    version = written_version(type(record), metadata_version)
    return bytes((FRAME_VERSION, record.__api_key__, version)) + encode_bytes(record, version)


def decode_record(value: Buffer) -> MetadataRecord:
    """Return the record that `encode_record` wrote.

    Raises:
        UnknownRecordError: It is of a type or version that this version of the broker does not know.
        CorruptionError: The bytes are no such record.
    """
    if len(value) < 3:
        raise CorruptionError(f"a metadata record of {len(value)} bytes is too short")
    frame, number, version = value[0], value[1], value[2]
    record_type = RECORD_TYPES.get(number)
    if frame != FRAME_VERSION or record_type is None or version not in record_type.__versions__:
        raise UnknownRecordError(
            f"metadata record of frame {frame}, type {number}, version {version} is unknown: it was written by a newer "
            "version of odradek (start that one; before an older one is started, lower metadata.version with it, which "
            "writes the metadata in the older version) or by Apache Kafka, whose __cluster_metadata is not read (move "
            "that directory away, then run `odradek topics adopt`)"
        )
    try:
        return decode(record_type, memoryview(value), version, position=3, exact=True)
    except DecodeError as error:
        raise CorruptionError(f"metadata record {record_type.__name__}: {error}") from error
