"""Pure core: the records of `__consumer_offsets`, Kafka's byte for byte.

Key and value each begin with two bytes: the key's are the record's type, the value's the version of its fields.

======  ==============================================  ============================
types   about                                           written by
======  ==============================================  ============================
0, 1    a committed offset; 0 is read but not written   `offsets.py`
2       a classic group                                 `classic/`
3 - 8   a group of the consumer protocol                `consumer/`
16      a regular expression of such a group            `consumer/`
======  ==============================================  ============================

Types of share groups and streams groups (9 - 15, 17 and above) are not known: records of theirs are passed over.

*Source:* Kafka's GroupCoordinatorRecordSerde and the schemas of its records.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.api import CorruptionError, DecodeError, Message, decode, encode_bytes
from odradek.kernel.wire.messages.data_consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from odradek.kernel.wire.messages.data_group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

from . import offset_records
from .offset_records import NO_EXPIRY

if TYPE_CHECKING:
    from odradek.kernel.api import Buffer

_INT16: Final = struct.Struct(">h")
_KEY_VERSION: Final = 0


class GroupRecord(NamedTuple):
    """A record of the offsets topic.

    Attributes:
        key: What it is about: one of the key classes of `RECORD_TYPES`.
        value: What it says: an instance of the value class that belongs to it, or None for a tombstone.
    """

    key: Message
    value: Message | None


class RecordType(NamedTuple):
    """The classes of one type of record, and in which version its values are written."""

    key: type[Message]
    value: type[Message]
    version: int


RECORD_TYPES: Final = {
    row.key.__api_key__: row
    for row in (
        RecordType(OffsetCommitKey, OffsetCommitValue, 4),
        RecordType(GroupMetadataKey, GroupMetadataValue, 3),
        RecordType(ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, 0),
        RecordType(ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue, 0),
        RecordType(ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, 0),
        RecordType(ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue, 0),
        RecordType(ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, 0),
        RecordType(ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, 0),
        RecordType(ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue, 0),
    )
}
"""Type number to classes."""

_LEGACY_OFFSET_COMMIT: Final = 0
_READ_TYPES: Final = {**RECORD_TYPES, _LEGACY_OFFSET_COMMIT: RECORD_TYPES[1]}
"""Type 0 is laid out as type 1 is, and means the same."""

_VERSION_WITH_EXPIRY: Final = 1
"""The only version of `OffsetCommitValue` that has room for an expiry of its own."""


def offset_tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    """Return the tombstone of a committed offset."""
    return GroupRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def encode_record(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Return a record's key and value as Kafka 4.3 writes them."""
    key, value = record
    if type(key) is OffsetCommitKey and (value is None or type(value) is OffsetCommitValue):
        usual_key = offset_records.encode_key(key)
        usual_value = None if value is None else offset_records.encode_value(value)
        if usual_key is not None and (usual_value is not None or value is None):
            return usual_key, usual_value
    return _encode_any(key, value)


def _encode_any(record_key: Message, value: Message | None) -> tuple[bytes, bytes | None]:
    number = record_key.__api_key__
    key = _INT16.pack(number) + encode_bytes(record_key, _KEY_VERSION)
    if value is None:
        return key, None
    version = RECORD_TYPES[number].version
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp != NO_EXPIRY:
        version = _VERSION_WITH_EXPIRY
    return key, _INT16.pack(version) + encode_bytes(value, version)


def decode_record(key: Buffer, value: Buffer | None) -> GroupRecord | None:
    """Return the record of a key and value, None for a type that is not known.

    Raises:
        CorruptionError: The bytes are no such record, or the value is of a version that is not known.
    """
    usual = offset_records.decode_offset(key, value)
    if usual is not None:
        return GroupRecord(*usual)
    return _decode_any(key, value)


def _decode_any(key: Buffer, value: Buffer | None) -> GroupRecord | None:
    if len(key) < _INT16.size:
        raise CorruptionError(f"a key of {len(key)} bytes is too short for a record of the offsets topic")
    record_type = _READ_TYPES.get(_INT16.unpack_from(key)[0])
    if record_type is None:
        return None
    try:
        return GroupRecord(
            decode(record_type.key, memoryview(key), _KEY_VERSION, position=_INT16.size),
            None if value is None else _decode_value(record_type.value, memoryview(value)),
        )
    except DecodeError as error:
        raise CorruptionError(f"record {record_type.value.__name__}: {error}") from error


def _decode_value(value_class: type[Message], value: memoryview) -> Message:
    if len(value) < _INT16.size:
        raise DecodeError(f"a value of {len(value)} bytes is too short")
    return decode(value_class, value, _INT16.unpack_from(value)[0], position=_INT16.size)
