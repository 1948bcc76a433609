"""Pure core: private keys of a PKCS12 store that have a password of their own.

keytool gives key and store one password, other tools and Java's own KeyStore may give two; cryptography opens a whole
store with one. So the keys are opened one by one, and put back as plain ones: what is made so is opened with the
store's password alone::

    PFX     3, authSafe: data ── AuthenticatedSafe ─┬─ data: SafeContents ── the keys, each encrypted by itself
            macData, which is checked, and left out └─ encryptedData: the certificates, left as they are

*Source:* RFC 7292; `sun.security.pkcs12.PKCS12KeyStore` of OpenJDK 17.

.. versionadded:: 0.1
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SEQUENCE: Final = 0x30
_OCTETS: Final = 0x04
_EXPLICIT: Final = 0xA0
_LONG_FORM: Final = 0x80
_DATA: Final = bytes.fromhex("2a864886f70d010701")
_PLAIN_KEY: Final = bytes.fromhex("2a864886f70d010c0a0101")
_ENCRYPTED_KEY: Final = bytes.fromhex("2a864886f70d010c0a0102")
_DIGESTS: Final = {
    bytes.fromhex("2b0e03021a"): ("sha1", 64),
    bytes.fromhex("608648016503040201"): ("sha256", 64),
    bytes.fromhex("608648016503040202"): ("sha384", 128),
    bytes.fromhex("608648016503040203"): ("sha512", 128),
}
"""By object identifier, what a store may be signed with, and how many bytes that takes at a time."""
_ROUNDS_MAX: Final = 5_000_000
"""As in Java: more are taken for an attack, or damage."""
_MAC_KEY: Final = 3
"""RFC 7292, appendix B.3: what a key is derived for."""


class StructureError(ValueError):
    """It is not built as a PKCS12 store is, or signed in a way that is not known."""


class PasswordError(ValueError):
    """The password is wrong, or the store damaged: it is not signed with that."""


class _Value(NamedTuple):
    """A value of DER: its tag, its content, and all of it."""

    tag: int
    content: bytes
    whole: bytes


def plain_keys(data: bytes, password: str, open_key: Callable[[bytes], bytes | None]) -> tuple[bytes, int]:
    """Return a store whose encrypted keys are plain, and unsigned; those that do not open are left out.

    Args:
        data: The file.
        password: Of the store.
        open_key: Takes an encrypted key, PKCS8, and returns it decrypted; None when the password is another.

    Returns:
        The store, and how many keys it has.

    Raises:
        StructureError: It is no such store, or damaged.
        PasswordError: The password is wrong, or the store damaged.
    """
    try:
        version, auth_safe, *mac = _parts(data, _SEQUENCE)
        content = _data_of(auth_safe)
        if mac:
            _check_mac(mac[0], content, password)
        safes, count = [], 0
        for info in _parts(content, _SEQUENCE):
            safe, opened_count = _plain_safe(info, open_key)
            safes.append(safe)
            count += opened_count
    except (StructureError, PasswordError):
        raise
    except (IndexError, ValueError) as error:  # it ends in a length, or a sequence has fewer or more values than due
        raise StructureError("it is not built as PKCS12 is") from error
    return _made(_SEQUENCE, [version.whole, _data_info(_made(_SEQUENCE, safes))]), count


def is_signed_with(data: bytes, password: str) -> bool:
    """Return whether a store is signed, and with this password."""
    try:
        _, auth_safe, *mac = _parts(data, _SEQUENCE)
        if mac:
            _check_mac(mac[0], _data_of(auth_safe), password)
    except (IndexError, ValueError):  # it is damaged, too
        return False
    return bool(mac)


def _plain_safe(info: _Value, open_key: Callable[[bytes], bytes | None]) -> tuple[bytes, int]:
    kind, *_ = _parts(info.whole, _SEQUENCE)
    if kind.content != _DATA:
        return info.whole, 0
    bags, count = [], 0
    for bag in _parts(_data_of(info), _SEQUENCE):
        bag_kind, value, *attributes = _parts(bag.whole, _SEQUENCE)
        if bag_kind.content != _ENCRYPTED_KEY:
            bags.append(bag.whole)
            continue
        opened = open_key(value.content)
        if opened is not None:
            count += 1
            plain = [_made(bag_kind.tag, [_PLAIN_KEY]), _made(value.tag, [opened])]
            bags.append(_made(_SEQUENCE, plain + [each.whole for each in attributes]))
    return _data_info(_made(_SEQUENCE, bags)), count


def _check_mac(mac: _Value, content: bytes, password: str) -> None:
    digest_info, salt, *rounds = _parts(mac.whole, _SEQUENCE)
    algorithm, digest = _parts(digest_info.whole, _SEQUENCE)
    identifier, *_ = _parts(algorithm.whole, _SEQUENCE)
    if identifier.content not in _DIGESTS:
        raise StructureError("it is signed in a way that is not known here")
    name, block_bytes = _DIGESTS[identifier.content]
    rounds_count = int.from_bytes(rounds[0].content, "big") if rounds else 1
    if rounds_count > _ROUNDS_MAX:
        raise StructureError(f"it is signed in {rounds_count} rounds")
    key = _mac_key(name, block_bytes, password, salt.content, rounds_count)
    if not hmac.compare_digest(hmac.digest(key, content, name), digest.content):
        raise PasswordError("the password is wrong, or the store is damaged")


def _mac_key(name: str, block_bytes: int, password: str, salt: bytes, rounds: int) -> bytes:
    """Derive the key of the signature; it is as long as the digest, so that one round of RFC 7292, B.2, makes it."""
    text = password.encode("utf-16-be") + b"\0\0"
    key = bytes([_MAC_KEY]) * block_bytes + _filled(salt, block_bytes) + _filled(text, block_bytes)
    for _ in range(rounds):
        key = hashlib.new(name, key, usedforsecurity=False).digest()
    return key


def _filled(text: bytes, block_bytes: int) -> bytes:
    """Return a text again and again, so often that it fills blocks."""
    size = -(-len(text) // block_bytes) * block_bytes
    return (text * (size // max(len(text), 1) + 1))[:size]


# ------------------------------------------------------------------------------------------------------------------ DER


def _data_of(info: _Value) -> bytes:
    """Return what a ContentInfo of data holds."""
    kind, explicit = _parts(info.whole, _SEQUENCE)
    if kind.content != _DATA:
        raise StructureError("it is signed by a key, or encrypted as a whole")
    (octets,) = _values(explicit.content)
    _check_tag(octets, _OCTETS)
    return octets.content


def _data_info(content: bytes) -> bytes:
    return _made(_SEQUENCE, [_made(0x06, [_DATA]), _made(_EXPLICIT, [_made(_OCTETS, [content])])])


def _parts(data: bytes, tag: int) -> list[_Value]:
    """Return the values of the one value that there is."""
    (value,) = _values(data)
    _check_tag(value, tag)
    return _values(value.content)


def _check_tag(value: _Value, tag: int) -> None:
    if value.tag != tag:
        raise StructureError(f"it has a value of type {value.tag:#x} where {tag:#x} is due")


def _values(data: bytes) -> list[_Value]:
    found, position = [], 0
    while position < len(data):
        tag, first = data[position], data[position + 1]
        start = position + 2
        size = first
        if first == _LONG_FORM:
            raise StructureError("it is BER of no definite length")
        if first > _LONG_FORM:
            start += first - _LONG_FORM
            size = int.from_bytes(data[position + 2 : start], "big")
        if start + size > len(data):
            raise StructureError("it ends too early")
        found.append(_Value(tag, data[start : start + size], data[position : start + size]))
        position = start + size
    return found


def _made(tag: int, parts: Iterable[bytes]) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < _LONG_FORM:
        return bytes([tag, size]) + content
    size_bytes = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, _LONG_FORM + len(size_bytes)]) + size_bytes + content
