"""Pure core: JKS, the key store format of Java before 9, on the standard library alone.

Numbers are big-endian, a text has its length in two bytes before it, a blob its length in four::

    FE ED FE ED | version 2 | number of entries | entries | SHA-1

    entry of a private key      1 | alias | created, 8 bytes of ms | blob: the protected key | number of certificates |
                                certificates: type "X.509", blob: DER
    trusted certificate         2 | alias | created                | type "X.509", blob: DER

The SHA-1 at the end is of the store's password, a phrase, and all before it: whoever knows the password can tell
whether the file is whole. A protected key is an ASN.1 EncryptedPrivateKeyInfo of Sun's own algorithm::

    salt, 20 bytes | the key's PKCS #8, xor a stream | SHA-1 of the password and the key

whose stream is SHA-1(password, salt), then SHA-1(password, the 20 bytes before), and so on. Passwords count as UTF-16.
That is weak, so Java writes PKCS12 since 9, and still reads this.

*Source:* `sun.security.provider.JavaKeyStore` and `KeyProtector` of OpenJDK 17.

.. versionadded:: 0.1
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

from .values import A_KEY, PrivateKeyEntry, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC: Final = b"\xfe\xed\xfe\xed"
_VERSION: Final = 2
_PRIVATE_KEY, _TRUSTED_CERTIFICATE = 1, 2
_PHRASE: Final = b"Mighty Aphrodite"
_DIGEST_BYTES: Final = 20
_PROTECTION: Final = bytes.fromhex("060a2b060104012a02110101")
"""The object identifier of the algorithm that protects keys, 1.3.6.1.4.1.42.2.17.1.1, as DER."""
_RESTORE: Final = "take it from a backup, or make it again with keytool"
_DAMAGED: Final = "the store is damaged"


class JksStore:
    """What a JKS file holds, its keys still protected."""

    def __init__(self, data: bytes, password: str | None) -> None:
        """Read a file.

        Args:
            data: All of it; begins with `MAGIC`.
            password: Of the store; with None nobody looks whether the file is whole, as Java does.

        Raises:
            StoreError: The password is wrong, or the file damaged.
        """
        if password is not None:
            _check_whole(data, password)
        reader = _Reader(data[:-_DIGEST_BYTES])
        reader.take(len(MAGIC))
        version = reader.number(4)
        if version != _VERSION:
            raise StoreError("location", f"version {version} of JKS is not read", "make it again with a newer keytool")
        self.keys: dict[str, tuple[bytes, tuple[bytes, ...]]] = {}
        """Alias to the protected key and its certificates, DER; the key's own first."""
        self.trusted: list[bytes] = []
        """Certificates, DER."""
        for _ in range(reader.number(4)):
            self._read_entry(reader)
        if not reader.is_at_end:
            raise StoreError("location", f"{_DAMAGED}: bytes follow its last entry", _RESTORE)

    def _read_entry(self, reader: _Reader) -> None:
        kind, alias = reader.number(4), reader.text()
        reader.take(8)
        if kind == _PRIVATE_KEY:
            protected = reader.blob()
            self.keys[alias] = protected, tuple(reader.certificate() for _ in range(reader.number(4)))
        elif kind == _TRUSTED_CERTIFICATE:
            self.trusted.append(reader.certificate())
        else:
            raise StoreError("location", f"{_DAMAGED}: an entry is of kind {kind}", _RESTORE)

    def anchors(self) -> list[bytes]:
        """Return what the store trusts, as Java does: its trusted certificates, and its keys' own."""
        return self.trusted + [chain[0] for _, chain in self.keys.values() if chain]

    def open_key(self, password: str) -> PrivateKeyEntry:
        """Return a private key: no setting names one, so of several the first by its alias that the password opens.

        Args:
            password: Of the key.

        Raises:
            StoreError: There is none, or the password is wrong.
        """
        refusal = StoreError("location", "there is no private key in it", A_KEY)
        for alias, (protected, chain) in sorted(self.keys.items()):
            try:
                return _opened(alias, protected, chain, password)
            except StoreError as error:
                refusal = error
        raise refusal


def _check_whole(data: bytes, password: str) -> None:
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    # SHA-1 is the format's; it guards against accidents here, not against forgers who know the password.
    expected = hashlib.sha1(_utf16(password) + _PHRASE + content, usedforsecurity=False).digest()
    if not hmac.compare_digest(expected, digest):
        raise StoreError(
            "password", "the password of the store is wrong, or the store is damaged", "try it with `keytool -list`"
        )


def _opened(alias: str, protected: bytes, chain: tuple[bytes, ...], password: str) -> PrivateKeyEntry:
    if not chain:
        raise StoreError("location", f"the private key {alias!r} has no certificate", "import it with keytool")
    return PrivateKeyEntry(_unprotected(protected, password, alias), chain)


def _unprotected(protected: bytes, password: str, alias: str) -> bytes:
    """Return a key as PKCS #8."""
    sealed = _sealed(protected)
    salt, body, check = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
    secret = _utf16(password)
    pads = _stream(secret, salt, len(body))
    key = (int.from_bytes(body, "big") ^ int.from_bytes(pads, "big")).to_bytes(len(body), "big")
    if not hmac.compare_digest(hashlib.sha1(secret + key, usedforsecurity=False).digest(), check):
        raise StoreError(
            "key.password",
            f"the password of the private key {alias!r} is wrong",
            "it is ssl.key.password, and without that the store's",
        )
    return key


def _stream(secret: bytes, salt: bytes, size_bytes: int) -> bytes:
    """Return what keys are xored with."""

    def digests() -> Iterator[bytes]:
        digest = salt
        for _ in range(0, size_bytes, _DIGEST_BYTES):
            digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
            yield digest

    return b"".join(digests())[:size_bytes]


def _sealed(protected: bytes) -> bytes:
    """Return the octet string of an EncryptedPrivateKeyInfo: SEQUENCE {SEQUENCE {algorithm}, OCTET STRING}."""
    outer = _Reader(_Reader(protected).der(0x30))
    algorithm = outer.der(0x30)
    if not algorithm.startswith(_PROTECTION):
        raise StoreError("location", "a private key is protected in a way that is not Java's", _RESTORE)
    sealed = outer.der(0x04)
    if len(sealed) < 2 * _DIGEST_BYTES:
        raise StoreError("location", f"{_DAMAGED}: a private key is too short", _RESTORE)
    return sealed


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Reader:
    """Takes bytes from the front; what is missing is an error."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        return self._position == len(self._data)

    def take(self, size_bytes: int) -> bytes:
        end = self._position + size_bytes
        if end > len(self._data):
            raise StoreError("location", f"{_DAMAGED}: it ends too early", _RESTORE)
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def number(self, size_bytes: int) -> int:
        return int.from_bytes(self.take(size_bytes), "big")

    def blob(self) -> bytes:
        return self.take(self.number(4))

    def text(self) -> str:
        return self.take(self.number(2)).decode("utf-8", "replace")  # Java's UTF-8 differs for what no alias holds

    def certificate(self) -> bytes:
        kind = self.text()
        if kind != "X.509":
            raise StoreError("location", f"a certificate is of type {kind!r}, not X.509", _RESTORE)
        return self.blob()

    def der(self, tag: int) -> bytes:
        """Return the content of the next ASN.1 value."""
        found, size_bytes = self.take(2)
        if found != tag:
            raise StoreError("location", f"{_DAMAGED}: a private key is none", _RESTORE)
        if size_bytes & 0x80:
            size_bytes = self.number(size_bytes & 0x7F)
        return self.take(size_bytes)
