"""Shell: what TLS contexts of broker and client share: Kafka's names of versions, and how `ssl.*` stores are loaded.

OpenSSL reads private keys from files only. One that comes out of a store or the settings is given to it as a file in
memory; where a system has none, in a folder of this user's alone, for as long as loading takes.

*Source:* `DefaultSslEngineFactory` of Kafka 4.3: which settings go together, and what a password opens.
"""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ..classes import frozen
from ..errors import ConfigError
from .formats import StoreFormat, open_key_store, open_trust_store
from .values import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TLS_VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
"""Safe versions as `ssl.enabled.protocols` names them."""

_HINTS: Final[Mapping[str, str]] = {
    "ssl.keystore": "a JKS, PKCS12 or PEM file with the private key and its certificates, ssl.key.password for the key",
    "ssl.truststore": "a JKS, PKCS12 or PEM file with the certificates of the authorities",
}
"""What each of the two stores is to be."""


class StoreSettings(Protocol):
    """The `ssl.*` keys of a key store and a trust store; None is not set."""

    @property
    def keystore_type(self) -> str | None:
        """JKS, PKCS12 or PEM; without it the file's content tells."""
        ...

    @property
    def keystore_location(self) -> str | None:
        """A file with the private key and its certificates."""
        ...

    @property
    def keystore_password(self) -> str | None:
        """What opens that file, if it is not PEM."""
        ...

    @property
    def keystore_certificate_chain(self) -> str | None:
        """The chain, PEM text, instead of a file."""
        ...

    @property
    def keystore_key(self) -> str | None:
        """The key, PEM text, instead of a file."""
        ...

    @property
    def key_password(self) -> str | None:
        """What opens the key itself."""
        ...

    @property
    def truststore_type(self) -> str | None:
        """As `keystore_type`."""
        ...

    @property
    def truststore_location(self) -> str | None:
        """A file with the certificates that are trusted."""
        ...

    @property
    def truststore_password(self) -> str | None:
        """What that file is checked with."""
        ...

    @property
    def truststore_certificates(self) -> str | None:
        """Trusted certificates, PEM text, instead of a file."""
        ...


def load_key(context: ssl.SSLContext, settings: StoreSettings) -> bool:
    """Load the private key and its certificates into a context; return whether the settings name any.

    Raises:
        ConfigError: The settings contradict each other, or what they name cannot be used.
    """
    if (settings.keystore_key is None) is not (settings.keystore_certificate_chain is None):
        raise ConfigError(
            "a private key and its certificates go together, and one of them is not set",
            where="ssl.keystore.key" if settings.keystore_key is None else "ssl.keystore.certificate.chain",
            hint="set ssl.keystore.key and ssl.keystore.certificate.chain, or ssl.keystore.location",
        )
    store = _Store(
        "ssl.keystore",
        settings.keystore_type,
        settings.keystore_location,
        settings.keystore_password,
        "ssl.keystore.key",
        settings.keystore_key,
    )
    found = store.read()
    if found is None:
        return False
    pem, path = found.data, store.location
    if settings.keystore_key is not None:
        pem, path = f"{settings.keystore_key}\n{settings.keystore_certificate_chain}\n".encode(), None
    elif found.format is not StoreFormat.PEM:
        pem, path = _open_key(store, found, settings.key_password), None
    try:
        with _private_file(pem) if path is None else nullcontext(path) as file:
            # An empty password, not None: with None OpenSSL would ask at the terminal when the key is encrypted.
            context.load_cert_chain(file, password=settings.key_password or "")
    except (OSError, ValueError) as error:
        raise store.unusable(_key_trouble(pem, settings.key_password, error)) from error
    return True


def load_trusted(context: ssl.SSLContext, settings: StoreSettings) -> bool:
    """Have a context trust the certificates of the settings; return whether they name any.

    As in Java each of them is trusted by itself, whoever signed it.

    Raises:
        ConfigError: The settings contradict each other, or what they name cannot be used.
    """
    store = _Store(
        "ssl.truststore",
        settings.truststore_type,
        settings.truststore_location,
        settings.truststore_password,
        "ssl.truststore.certificates",
        settings.truststore_certificates,
    )
    found = store.read()
    if found is None:
        return False
    try:
        if found.format is not StoreFormat.PEM:
            context.load_verify_locations(cadata=b"".join(open_trust_store(found.data, found.format, store.password)))
        else:
            context.load_verify_locations(cafile=store.location, cadata=store.text)
    except StoreError as error:
        raise store.refused(error) from error
    except (OSError, ValueError) as error:
        is_empty = isinstance(error, ssl.SSLError) and found.format is StoreFormat.PEM
        raise store.unusable("there is no certificate in it" if is_empty else _reason(error)) from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return True


class _Found(NamedTuple):
    """What the settings name, with a file's content; empty for a text."""

    format: StoreFormat
    data: bytes


@frozen(repr=False)
class _Store:
    """One of the two stores, as settings name it."""

    kind: str
    type: str | None
    location: str | None
    password: str | None
    text_key: str
    text: str | None

    def read(self) -> _Found | None:
        """Return what there is, a file with its content; None when nothing is named.

        Raises:
            ConfigError: The settings contradict each other, or the file cannot be read.
        """
        try:
            return self._read()
        except OSError as error:
            raise self.unusable(_reason(error)) from error
        except StoreError as error:
            raise self.refused(error) from error

    def _read(self) -> _Found | None:
        if self.text is not None:
            self._check_text()
            found = _Found(StoreFormat.PEM, b"")
        elif self.location is not None:
            data = Path(self.location).read_bytes()
            found = _Found(StoreFormat.of(data, self.type), data)
        elif self.password is not None:
            raise StoreError("password", f"{self.kind}.location is not set", "set it, or leave the password out")
        else:
            return None
        self._check_password(found.format)
        return found

    def _check_text(self) -> None:
        if self.location is not None:
            raise StoreError("location", f"{self.text_key} is set as well", "leave one of them out")
        if self.type is not None and StoreFormat.named(self.type) is not StoreFormat.PEM:
            raise StoreError("type", f"{self.text_key} is PEM, and the type is said to be {self.type}", "say PEM")

    def _check_password(self, found: StoreFormat) -> None:
        if found is StoreFormat.PEM and self.password is not None:
            instead = "ssl.key.password opens the private key" if self.kind == "ssl.keystore" else "leave it out"
            raise StoreError("password", "PEM has no password of a store", instead)
        if found is not StoreFormat.PEM and self.password is None and self.kind == "ssl.keystore":
            raise StoreError("password", f"a key store that is {found.value} needs its password", "set it")

    def refused(self, error: StoreError) -> ConfigError:
        """Return what is wrong with the store, by the key of the settings that has to do with it."""
        where = f"ssl.{error.setting}" if error.setting == "key.password" else f"{self.kind}.{error.setting}"
        return ConfigError(self._told(error.reason), where=where, hint=error.hint)

    def unusable(self, reason: str) -> ConfigError:
        """Return what is wrong with what the settings name."""
        where = self.text_key if self.location is None else f"{self.kind}.location"
        return ConfigError(self._told(reason), where=where, hint=_HINTS[self.kind])

    def _told(self, reason: str) -> str:
        return reason if self.location is None else f"{self.location}: {reason}"


def _open_key(store: _Store, found: _Found, key_password: str | None) -> bytes:
    """Return the key and the certificates of a store as PEM."""
    assert store.password is not None  # `read` has looked
    try:
        return open_key_store(found.data, found.format, store.password, key_password).pem()
    except StoreError as error:
        raise store.refused(error) from error


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """Name a file with this content that nobody else can read, and that is gone afterwards."""
    memory = _memory_file()
    if memory is not None:
        with memory:
            memory.write(content)
            yield _path_of(memory)
        return
    with tempfile.TemporaryDirectory(prefix="odradek-tls-") as folder:  # readable by this user alone
        path = Path(folder) / "keystore.pem"
        path.touch(mode=0o600)
        path.write_bytes(content)
        yield str(path)


def _memory_file() -> FileIO | None:
    """Return a file that never lies on a disk and ends as it is closed; None where the system has none."""
    if sys.platform != "linux":
        return None
    try:
        memory = FileIO(os.memfd_create("odradek-tls"), "wb")
    except OSError:  # a sandbox may forbid it
        return None
    if Path(_path_of(memory)).exists():
        return memory
    memory.close()  # /proc is not mounted: it has no name
    return None


def _path_of(memory: FileIO) -> str:
    return f"/proc/self/fd/{memory.fileno()}"


def _key_trouble(pem: bytes, key_password: str | None, error: OSError | ValueError) -> str:
    """Return what is wrong with a key and its certificates: OpenSSL's own words name lines of its source."""
    if not isinstance(error, ssl.SSLError):
        return _reason(error)
    if b"PRIVATE KEY-----" not in pem:
        return "there is no private key in it"
    if b"ENCRYPTED" in pem:
        given = "does not decrypt it" if key_password else "is not set"
        return f"the private key is encrypted, and ssl.key.password {given}"
    if b"BEGIN CERTIFICATE-----" not in pem:
        return "there is no certificate in it"
    return error.reason.lower().replace("_", " ") if error.reason else "it cannot be parsed"


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
