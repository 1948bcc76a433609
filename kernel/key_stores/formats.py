"""Pure core: which format a store has, and what is taken from it.

Java reads JKS and PKCS12 under either name (`keystore.type.compat`), so the content decides between these two.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from . import pkcs12
from .jks import MAGIC as JKS_MAGIC
from .jks import JksStore
from .values import StoreError

if TYPE_CHECKING:
    from .values import PrivateKeyEntry

_JCEKS_MAGIC: Final = b"\xce\xce\xce\xce"
_PKCS12_VERSION: Final = b"\x02\x01\x03"
"""The number 3 as ASN.1: what stands first in the sequence that a PKCS12 store is."""
_PKCS12_HEAD_BYTES: Final = 9
_CONVERT: Final = "convert it: `keytool -importkeystore -srckeystore OLD -destkeystore NEW.p12 -deststoretype PKCS12`"


class StoreFormat(Enum):
    """What `ssl.keystore.type` and `ssl.truststore.type` may say, and what a file may be."""

    JKS = "JKS"
    PKCS12 = "PKCS12"
    PEM = "PEM"

    @classmethod
    def named(cls, name: str) -> StoreFormat:
        """Return the format of a name, whose case does not matter.

        Raises:
            StoreError: No such format is read here.
        """
        try:
            return cls(name.upper())
        except ValueError:
            known = ", ".join(one.value for one in cls)
            raise StoreError("type", f"stores of type {name} are not read: {known} are", _CONVERT) from None

    @classmethod
    def of(cls, data: bytes, name: str | None) -> StoreFormat:
        """Return the format of a file.

        Args:
            data: All of it.
            name: What the settings say; None where they are silent.

        Raises:
            StoreError: No such format is read here, or the settings say another.
        """
        said = None if name is None else cls.named(name)
        found = cls._found(data)
        if found is None:
            if said is cls.PEM:
                return said  # OpenSSL tells what is wrong with a text
            raise StoreError(
                "location", "it is neither JKS nor PKCS12 nor PEM", "`file` or `keytool -list` may know it"
            )
        if said is not None and (said is cls.PEM) is not (found is cls.PEM):
            raise StoreError(
                "type", f"it is {found.value}, and its type is said to be {said.value}", f"say {found.value}"
            )
        return found

    @classmethod
    def _found(cls, data: bytes) -> StoreFormat | None:
        if data.startswith(JKS_MAGIC):
            return cls.JKS
        if data.startswith(_JCEKS_MAGIC):
            raise StoreError("location", "it is JCEKS, which is not read", _CONVERT)
        if data.startswith(b"\x30") and _PKCS12_VERSION in data[2:_PKCS12_HEAD_BYTES]:
            return cls.PKCS12
        return cls.PEM if b"-----BEGIN " in data else None


def open_key_store(data: bytes, found: StoreFormat, password: str, key_password: str | None) -> PrivateKeyEntry:
    """Return a private key of a store, and its certificates. Of several any will do, as in Java.

    Args:
        data: The file.
        found: JKS or PKCS12.
        password: Of the store.
        key_password: Of the key; None for the store's.

    Raises:
        StoreError: A password is wrong, the file is damaged, or there is no key in it.
    """
    if found is StoreFormat.PKCS12:
        return pkcs12.open_key(data, password, key_password)
    return JksStore(data, password).open_key(password if key_password is None else key_password)


def open_trust_store(data: bytes, found: StoreFormat, password: str | None) -> list[bytes]:
    """Return the certificates that a store trusts, DER; at least one.

    Args:
        data: The file.
        found: JKS or PKCS12.
        password: Of the store; with None nobody looks whether it is whole.

    Raises:
        StoreError: The password is wrong, the file is damaged, or no certificate is in it.
    """
    certificates = pkcs12.anchors(data, password) if found is StoreFormat.PKCS12 else JksStore(data, password).anchors()
    if not certificates:
        raise StoreError("location", "there is no certificate in it", "`keytool -importcert` puts one in")
    return certificates
