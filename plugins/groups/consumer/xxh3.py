"""Pure core: XXH3, 64 bits, seed 0: the hash in which a group remembers the topics that it reads.

Kafka keeps this hash in `ConsumerGroupMetadata` records, so a group that moves between Kafka and here has to find the
same one, or it would be assigned anew. Metadata changes seldom: a few microseconds a partition are enough.

*Source:* the XXH3 specification (xxHash, doc/xxhash_spec.md).
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_PRIME32: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIME64: Final = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MIX_1: Final = 0x165667919E3779F9
_MIX_2: Final = 0x9FB21C651E98DF25

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE: Final = 64
_STRIPES_PER_BLOCK: Final = 16
_BLOCK: Final = _STRIPE * _STRIPES_PER_BLOCK
_MIDDLE_MAX: Final = 240

_u64 = struct.Struct("<Q").unpack_from
_two_u64 = struct.Struct("<2Q").unpack_from
_u32 = struct.Struct("<I").unpack_from
_lanes = struct.Struct("<8Q").unpack_from
_SECRET_LANES: Final = tuple(_lanes(_SECRET, 8 * stripe) for stripe in range(_STRIPES_PER_BLOCK))
_SCRAMBLE_LANES: Final = _lanes(_SECRET, 128)
_LAST_LANES: Final = _lanes(_SECRET, 121)
_MERGE_LANES: Final = _lanes(_SECRET, 11)


def xxh3_64(data: bytes) -> int:
    """Return the hash as a signed 64-bit number, as Java has it."""
    length = len(data)
    if length <= 16:
        value = _up_to_16(data, length)
    elif length <= 128:
        value = _up_to_128(data, length)
    elif length <= _MIDDLE_MAX:
        value = _up_to_240(data, length)
    else:
        value = _longer(data, length)
    return value - (1 << 64) if value >> 63 else value


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product ^ (product >> 64)) & _MASK


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = (value * _MIX_1) & _MASK
    return value ^ (value >> 32)


def _avalanche_64(value: int) -> int:
    value ^= value >> 33
    value = (value * _PRIME64[1]) & _MASK
    value ^= value >> 29
    value = (value * _PRIME64[2]) & _MASK
    return value ^ (value >> 32)


def _up_to_16(data: bytes, length: int) -> int:
    if length > 8:
        low = _u64(data, 0)[0] ^ (_u64(_SECRET, 24)[0] ^ _u64(_SECRET, 32)[0])
        high = _u64(data, length - 8)[0] ^ (_u64(_SECRET, 40)[0] ^ _u64(_SECRET, 48)[0])
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((length + swapped + high + _fold(low, high)) & _MASK)
    if length >= 4:
        mixed: int = (_u32(data, length - 4)[0] + (_u32(data, 0)[0] << 32)) ^ (
            _u64(_SECRET, 8)[0] ^ _u64(_SECRET, 16)[0]
        )
        mixed ^= ((mixed << 49 | mixed >> 15) ^ (mixed << 24 | mixed >> 40)) & _MASK
        mixed = (mixed * _MIX_2) & _MASK
        mixed ^= (mixed >> 35) + length
        mixed = (mixed * _MIX_2) & _MASK
        return mixed ^ (mixed >> 28)
    if length:
        combined = data[0] << 16 | data[length >> 1] << 24 | data[length - 1] | length << 8
        return _avalanche_64(combined ^ (_u32(_SECRET, 0)[0] ^ _u32(_SECRET, 4)[0]))
    return _avalanche_64(_u64(_SECRET, 56)[0] ^ _u64(_SECRET, 64)[0])


def _mix_16(data: bytes, at: int, secret_at: int) -> int:
    low, high = _two_u64(data, at)
    low_key, high_key = _two_u64(_SECRET, secret_at)
    product: int = (low ^ low_key) * (high ^ high_key)
    return (product ^ (product >> 64)) & _MASK


def _up_to_128(data: bytes, length: int) -> int:
    value = length * _PRIME64[0]
    for pair in range((length - 1) // 32 + 1):
        value += _mix_16(data, 16 * pair, 32 * pair)
        value += _mix_16(data, length - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(value & _MASK)


def _up_to_240(data: bytes, length: int) -> int:
    value = length * _PRIME64[0]
    for part in range(8):
        value += _mix_16(data, 16 * part, 16 * part)
    value = _avalanche(value & _MASK)
    for part in range(8, length // 16):
        value += _mix_16(data, 16 * part, 16 * (part - 8) + 3)
    value += _mix_16(data, length - 16, 136 - 17)
    return _avalanche(value & _MASK)


def _accumulate(lanes: list[int], data: bytes, at: int, secret: tuple[int, ...]) -> None:
    for index, value in enumerate(_lanes(data, at)):
        keyed = value ^ secret[index]
        lanes[index ^ 1] = (lanes[index ^ 1] + value) & _MASK
        lanes[index] = (lanes[index] + (keyed & 0xFFFF_FFFF) * (keyed >> 32)) & _MASK


def _longer(data: bytes, length: int) -> int:
    lanes = [
        _PRIME32[2],
        _PRIME64[0],
        _PRIME64[1],
        _PRIME64[2],
        _PRIME64[3],
        _PRIME32[1],
        _PRIME64[4],
        _PRIME32[0],
    ]
    blocks = (length - 1) // _BLOCK
    for block in range(blocks):
        for stripe in range(_STRIPES_PER_BLOCK):
            _accumulate(lanes, data, block * _BLOCK + stripe * _STRIPE, _SECRET_LANES[stripe])
        for index, secret in enumerate(_SCRAMBLE_LANES):
            lane = lanes[index]
            lanes[index] = ((lane ^ (lane >> 47) ^ secret) * _PRIME32[0]) & _MASK
    for stripe in range((length - 1 - blocks * _BLOCK) // _STRIPE):
        _accumulate(lanes, data, blocks * _BLOCK + stripe * _STRIPE, _SECRET_LANES[stripe])
    _accumulate(lanes, data, length - _STRIPE, _LAST_LANES)
    value = length * _PRIME64[0]
    for pair in range(0, 8, 2):
        value += _fold(lanes[pair] ^ _MERGE_LANES[pair], lanes[pair + 1] ^ _MERGE_LANES[pair + 1])
    return _avalanche(value & _MASK)
