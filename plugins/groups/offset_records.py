"""Pure core: the usual record of the offsets topic, a committed offset, to bytes and back without the general codec.

Nearly all records are of this kind and version, and a coordinator that starts reads every one of them. What is in any
way unusual (another version, a long metadata, an expiry of its own, damage) is left to the general codec: these
functions return None.

::

    key      type (1) | group: length, text | topic: length, text | partition
    value    version (4) | offset | leader epoch | metadata: length + 1, text | commit time | tags: none, or topic id
"""

from __future__ import annotations

import struct
import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ZERO_ID
from odradek.kernel.wire.messages.data_group_records import OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from odradek.kernel.api import Buffer

KEY_TYPE: Final = 1
VALUE_VERSION: Final = 4
METADATA_MAX: Final = 126
"""So many bytes of metadata have a length of one byte."""
NO_EXPIRY: Final = -1
"""`OffsetCommitValue.expire_timestamp` of an offset that expires with its group."""
KEPT: Final = "odradek.keep"
"""The metadata of an offset that does not expire: the only way to say so of one that a transaction commits."""

_TWO_INT16: Final = struct.Struct(">hh")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">hqiB")
_TAIL: Final = struct.Struct(">qB")
_TAIL_WITH_ID: Final = struct.Struct(">q3s16s")
_ID_TAG: Final = b"\x01\x00\x10"
"""One tagged field: number 0, of 16 bytes."""
_NO_ID: Final = ZERO_ID.bytes
_two_int16, _int16, _int32 = _TWO_INT16.unpack_from, _INT16.unpack_from, _INT32.unpack_from
_head, _tail, _tail_with_id = _HEAD.unpack_from, _TAIL.unpack_from, _TAIL_WITH_ID.unpack_from


@lru_cache(maxsize=1024)
def _topic_id(data: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=data)


def decode_offset(key: Buffer, value: Buffer | None) -> tuple[OffsetCommitKey, OffsetCommitValue | None] | None:
    """Return key and value of a usual record; None if either has to be read by the general codec."""
    if type(key) is not bytes:
        key = bytes(key)
    try:
        kind, size = _two_int16(key)
        topic_at = 6 + size
        (topic_size,) = _int16(key, topic_at - 2)
        end = topic_at + topic_size
        if kind != KEY_TYPE or size < 0 or topic_size < 0 or end + 4 != len(key):
            return None
        known_key = OffsetCommitKey(
            group=key[4 : topic_at - 2].decode(),
            topic=key[topic_at:end].decode(),
            partition=_int32(key, end)[0],
        )
        known_value = None if value is None else _decode_value(value if type(value) is bytes else bytes(value))
    except (struct.error, UnicodeDecodeError):
        return None
    return None if known_value is None and value is not None else (known_key, known_value)


def _decode_value(value: bytes) -> OffsetCommitValue | None:
    """Return what a record says; None if it is unusual.

    Raises:
        struct.error, UnicodeDecodeError: It is unusual, too.
    """
    version, offset, leader_epoch, size = _head(value)
    end = _HEAD.size + size - 1
    if version != VALUE_VERSION or not 1 <= size <= METADATA_MAX + 1:
        return None
    rest = len(value) - end
    if rest == _TAIL_WITH_ID.size:
        commit_timestamp, tag, topic_id = _tail_with_id(value, end)
        is_usual = tag == _ID_TAG
    elif rest == _TAIL.size:
        commit_timestamp, tags_count = _tail(value, end)
        is_usual, topic_id = not tags_count, _NO_ID
    else:
        return None
    if not is_usual:
        return None
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=value[_HEAD.size : end].decode() if size > 1 else "",
        commit_timestamp=commit_timestamp,
        topic_id=_topic_id(topic_id),
    )


def encode_key(key: OffsetCommitKey) -> bytes | None:
    """Return the bytes of a key; None if they have to be made by the general codec."""
    try:
        group, topic = key.group.encode(), key.topic.encode()
        return b"".join(
            (
                _TWO_INT16.pack(KEY_TYPE, len(group)),
                group,
                _INT16.pack(len(topic)),
                topic,
                _INT32.pack(key.partition),
            )
        )
    except (struct.error, UnicodeEncodeError):
        return None


def encode_value(value: OffsetCommitValue) -> bytes | None:
    """Return the bytes of a value; None if they have to be made by the general codec."""
    try:
        metadata = value.metadata.encode()
        if len(metadata) > METADATA_MAX or value.expire_timestamp != NO_EXPIRY:
            return None
        head = _HEAD.pack(VALUE_VERSION, value.offset, value.leader_epoch, len(metadata) + 1)
        if value.topic_id == ZERO_ID:
            return head + metadata + _TAIL.pack(value.commit_timestamp, 0)
        return head + metadata + _TAIL_WITH_ID.pack(value.commit_timestamp, _ID_TAG, value.topic_id.bytes)
    except (struct.error, UnicodeEncodeError):
        return None
