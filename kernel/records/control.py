"""Pure core: control records: transaction markers, and what KRaft writes into its log and snapshots.

A control batch has attribute bit 5 set, and keys that say what the values are:

    key:   version int16 (0) | type int16
    value: its own version int16 | fields

| type | name | value | written by |
| --- | --- | --- | --- |
| 0, 1 | abort, commit | coordinator epoch int32 | the transaction coordinator, by way of each partition's leader |
| 2 | leader change | leader, voters, who granted votes | a new leader of a quorum |
| 3, 4 | snapshot header, footer | timestamp; nothing | a snapshot's first and last batch |
| 5, 6 | KRaft version, voters | the quorum's version and members | the quorum's leader |

Types that a newer Kafka invents are skipped by readers, not refused.

*Source:* KIP-98 (markers), KIP-595 (leader change), KIP-630 (snapshots), KIP-853 (voters).
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from .. import wire
from ..classes import frozen
from ..types import NO_EPOCH, NO_PRODUCER_ID
from ..wire import fields as f
from .batch import CorruptRecordsError
from .builder import BatchBuilder
from .reader import read_batch

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

    from ..types import Buffer
    from .batch import BatchHeader

_KEY: Final = struct.Struct(">hh")
_VERSION: Final = struct.Struct(">h")
_MARKER: Final = struct.Struct(">hi")
_KEY_VERSION: Final = 0
_MARKER_VERSION: Final = 0


class ControlRecordType(IntEnum):
    """What a control record's key says."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@frozen
class EndTransactionMarker:
    """The end of a producer's transaction in this partition.

    Attributes:
        type: ABORT or COMMIT.
        coordinator_epoch: Epoch of the coordinator that decided; a marker with an older one is refused.
    """

    type: ControlRecordType
    coordinator_epoch: int


@frozen
class UnknownControlRecord:
    """A control record of a type that this version does not know: to be skipped.

    Attributes:
        type_id: The number in its key.
        value: Its value.
    """

    type_id: int
    value: bytes | None


class QuorumVoter(wire.Message):
    """An item of `LeaderChange.voters` and `LeaderChange.granting_voters`."""

    voter_id: int = f.int32()
    voter_directory_id: uuid.UUID = f.uuid("1+")


class LeaderChange(wire.Message, versions="0-1", flexible="0+"):
    """The first record of a quorum leader's epoch; version 1 tells directories (KIP-853)."""

    type: ClassVar = ControlRecordType.LEADER_CHANGE

    version: int = f.int16()
    leader_id: int = f.int32()
    voters: list[QuorumVoter] = f.array(QuorumVoter)
    granting_voters: list[QuorumVoter] = f.array(QuorumVoter)


class SnapshotHeader(wire.Message, versions="0", flexible="0+"):
    """The first record of a snapshot."""

    type: ClassVar = ControlRecordType.SNAPSHOT_HEADER

    version: int = f.int16()
    last_contained_log_timestamp: int = f.int64()


class SnapshotFooter(wire.Message, versions="0", flexible="0+"):
    """The last record of a snapshot: without it, the snapshot is not whole."""

    type: ClassVar = ControlRecordType.SNAPSHOT_FOOTER

    version: int = f.int16()


class KRaftVersion(wire.Message, versions="0", flexible="0+"):
    """The protocol version of the quorum: 0 static voters, 1 voters in the log."""

    type: ClassVar = ControlRecordType.KRAFT_VERSION

    version: int = f.int16()
    k_raft_version: int = f.int16()


class VoterEndpoint(wire.Message):
    """An item of `KRaftVoter.endpoints`: where a voter's listener of that name is."""

    name: str = f.string()
    host: str = f.string()
    port: int = f.uint16()


class KRaftVersionRange(wire.Message):
    """The quorum versions that a voter can speak."""

    min_supported_version: int = f.int16()
    max_supported_version: int = f.int16()


class KRaftVoter(wire.Message):
    """An item of `KRaftVoters.voters`."""

    voter_id: int = f.int32()
    voter_directory_id: uuid.UUID = f.uuid()
    endpoints: list[VoterEndpoint] = f.array(VoterEndpoint)
    k_raft_version_feature: KRaftVersionRange = f.struct(KRaftVersionRange)


class KRaftVoters(wire.Message, versions="0", flexible="0+"):
    """The members of the quorum from this record on."""

    type: ClassVar = ControlRecordType.KRAFT_VOTERS

    version: int = f.int16()
    voters: list[KRaftVoter] = f.array(KRaftVoter)


class TriedVoters(KRaftVoters, versions="0", flexible="0+"):
    """No record of any log: asks an election whether it could name these voters, so that nobody is named."""


KRaftControlRecord: TypeAlias = LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | KRaftVoters
ControlRecord: TypeAlias = EndTransactionMarker | KRaftControlRecord | UnknownControlRecord

_KRAFT_RECORDS: Final[dict[int, tuple[type[KRaftControlRecord], int]]] = {
    ControlRecordType.LEADER_CHANGE: (LeaderChange, 1),
    ControlRecordType.SNAPSHOT_HEADER: (SnapshotHeader, 0),
    ControlRecordType.SNAPSHOT_FOOTER: (SnapshotFooter, 0),
    ControlRecordType.KRAFT_VERSION: (KRaftVersion, 0),
    ControlRecordType.KRAFT_VOTERS: (KRaftVoters, 0),
}
"""Type to class and newest version; a newer one is read as that, as Kafka does: fields are only ever added."""


def encode_control_record(record: EndTransactionMarker | KRaftControlRecord) -> tuple[bytes, bytes]:
    """Return the key and the value of a control record."""
    key = _KEY.pack(_KEY_VERSION, record.type)
    if isinstance(record, EndTransactionMarker):
        return key, _MARKER.pack(_MARKER_VERSION, record.coordinator_epoch)
    return key, wire.encode_bytes(record, record.version)


def decode_control_record(key: bytes | None, value: bytes | None) -> ControlRecord:
    """Return what the key and the value of a record in a control batch say.

    Raises:
        CorruptRecordsError: they are too short, or the value is none of its type.
    """
    if key is None or len(key) < _KEY.size:
        raise CorruptRecordsError(f"control record with key {key!r}")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptRecordsError(f"control record's key has version {version}")
    if type_id in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        if value is None or len(value) < _MARKER.size:
            raise CorruptRecordsError(f"transaction marker with value {value!r}")
        version, coordinator_epoch = _MARKER.unpack_from(value)
        if version < 0:
            raise CorruptRecordsError(f"transaction marker has version {version}")
        return EndTransactionMarker(ControlRecordType(type_id), coordinator_epoch)
    if type_id not in _KRAFT_RECORDS:
        return UnknownControlRecord(type_id, value)
    message, version_max = _KRAFT_RECORDS[type_id]
    if value is None or len(value) < _VERSION.size:
        raise CorruptRecordsError(f"control record of type {type_id} with value {value!r}")
    (version,) = _VERSION.unpack_from(value)
    try:
        return wire.decode(message, value, min(version, version_max))
    except wire.DecodeError as exc:
        raise CorruptRecordsError(f"control record of type {type_id}: {exc}") from exc


def read_control_records(buffer: Buffer, header: BatchHeader, position: int = 0) -> list[ControlRecord]:
    """Return what the control batch at `position`, of which `header` was read, says; KRaft's may say several things.

    Raises:
        CorruptRecordsError: it is malformed.
    """
    assert header.is_control, "data is no control record"
    return [decode_control_record(record.key, record.value) for record in read_batch(buffer, position, header)]


def read_control_record(buffer: Buffer, header: BatchHeader, position: int = 0) -> ControlRecord:
    """Return the first thing that the control batch at `position` says; a transaction marker stands alone.

    Raises:
        CorruptRecordsError: it is malformed or has no record.
    """
    records = read_control_records(buffer, header, position)
    if not records:
        raise CorruptRecordsError("control batch without a record", position=position)
    return records[0]


def build_control_batch(
    records: Iterable[EndTransactionMarker | KRaftControlRecord],
    *,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
) -> bytearray:
    """Return a control batch; with a producer id it is a transaction's end, and so transactional.

    Args:
        records: What it says; one marker, or any number of KRaft's.
        timestamp: Milliseconds since the Unix epoch.
        base_offset: Offset of the first record.
        partition_leader_epoch: -1 where the leader will assign it.
        producer_id: Whose transaction ends.
        producer_epoch: That producer's epoch.
    """
    builder = BatchBuilder(
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=producer_id != NO_PRODUCER_ID,
        is_control=True,
    )
    for record in records:
        key, value = encode_control_record(record)
        builder.append(key, value, timestamp=timestamp)
    return builder.build()
