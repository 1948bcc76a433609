"""Pure core: PKCS12, which Java writes since 9, read by the package cryptography, which is imported here alone.

*Source:* RFC 7292; `sun.security.pkcs12.PKCS12KeyStore` of OpenJDK 17.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .pkcs12_keys import PasswordError, StructureError, is_signed_with, plain_keys
from .values import A_KEY, PrivateKeyEntry, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

INSTALL: Final = "pip install cryptography"
NEEDED: Final = "to read PKCS12 the package cryptography is needed"
_CONVERT: Final = "convert it: `keytool -importkeystore`"
_WRONG: Final = "the password of the store is wrong, or the store is damaged"
_UNTOLD: Final = "which certificates are trusted cannot be told from those of the keys"
_ALONE: Final = "make a store of them alone: `keytool -exportcert -rfc`, then `keytool -importcert` into a new one"
_KEY_BAG: Final = bytes.fromhex("060b2a864886f70d010c0a0102")
"""What a protected private key begins with, 1.2.840.113549.1.12.10.1.2 as DER; it is not encrypted itself."""


def open_key(data: bytes, password: str, key_password: str | None) -> PrivateKeyEntry:
    """Return the private key, and its chain; of several the first that was put in.

    Args:
        data: The file.
        password: Of the store.
        key_password: Of the key; None where it is the store's, as keytool has it.

    Raises:
        StoreError: A password is wrong, the file damaged, it holds no key, or cryptography is not installed.
    """
    if key_password is None or key_password == password:
        found = _opened(data, password)
    else:
        found = _opened_by_two(data, password, key_password)
    if found.key is None:
        raise StoreError("location", "there is no private key in it", A_KEY)
    if found.cert is None:
        raise StoreError("location", "its private key has no certificate", "import it with keytool")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    chain, _ = _chain(found.cert.certificate, [one.certificate for one in found.additional_certs])
    return PrivateKeyEntry(
        found.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        [one.public_bytes(Encoding.DER) for one in chain],
    )


def anchors(data: bytes, password: str | None) -> list[bytes]:
    """Return what a trust store trusts, DER: its certificates, and of a private key its own alone, as Java does.

    Java marks in the file which certificates are trusted, and cryptography does not tell: what is not of the key's
    chain is. Who signed the key is trusted if it is there once more.

    Raises:
        StoreError: The password is wrong, the file damaged, it holds several keys, or cryptography is not installed.
    """
    try:
        found = _opened(data, password)
    except StoreError as error:
        if error.setting != "key.password":
            raise
        raise StoreError("location", f"{error.reason}: {_UNTOLD}", _ALONE) from None
    keys_count = data.count(_KEY_BAG)
    if keys_count > 1:
        raise StoreError("location", f"it holds {keys_count} private keys: {_UNTOLD}", _ALONE)
    from cryptography.hazmat.primitives.serialization import Encoding

    trusted = [one.certificate for one in found.additional_certs]
    if found.cert is not None:
        _, others = _chain(found.cert.certificate, trusted)
        trusted = [found.cert.certificate, *others]
    return [one.public_bytes(Encoding.DER) for one in trusted]


def _opened(data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise StoreError("location", NEEDED, INSTALL) from None
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        if password is None:
            raise _unopened("the store cannot be opened without its password, or it is damaged") from None
        if _KEY_BAG in data and is_signed_with(data, password):
            raise StoreError(
                "key.password", "its private key has a password of its own", "set ssl.key.password to it"
            ) from None
        raise _unopened(_WRONG) from None
    except UnsupportedAlgorithm as error:
        raise _unreadable(error) from None


def _opened_by_two(data: bytes, password: str, key_password: str) -> PKCS12KeyAndCertificates:
    """Open a store whose keys have a password of their own; those that have another one are left out."""
    if _KEY_BAG not in data:
        return _opened(data, password)
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise StoreError("location", NEEDED, INSTALL) from None

    def open_key(encrypted: bytes) -> bytes | None:
        try:
            key = serialization.load_der_private_key(encrypted, key_password.encode())
        except (ValueError, TypeError):  # its password is another, or there is none
            return None
        no_encryption = serialization.NoEncryption()
        return key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, no_encryption)

    try:
        plain, count = plain_keys(data, password, open_key)
    except StructureError as error:
        raise StoreError("location", f"its private key cannot be found: {error}", _CONVERT) from None
    except UnsupportedAlgorithm as error:
        raise _unreadable(error) from None
    except PasswordError:
        raise _unopened(_WRONG) from None
    if not count:
        raise StoreError(
            "key.password", "the password of the private key is wrong", "leave it out where it is the store's"
        )
    return _opened(plain, password)


def _unreadable(error: Exception) -> StoreError:
    return StoreError("location", f"it is encrypted in a way that cannot be read: {error}", _CONVERT)


def _unopened(reason: str) -> StoreError:
    return StoreError("password", reason, "try it with `keytool -list`")


def _chain(own: Certificate, others: Sequence[Certificate]) -> tuple[list[Certificate], list[Certificate]]:
    """Return a certificate and those that signed it, each the one before, and what else a store holds."""
    chain, left = [own], list(others)
    while chain[-1].issuer != chain[-1].subject and (
        issuer := next((one for one in left if _has_signed(one, chain[-1])), None)
    ):
        left.remove(issuer)
        chain.append(issuer)
    return chain, left


def _has_signed(issuer: Certificate, certificate: Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
