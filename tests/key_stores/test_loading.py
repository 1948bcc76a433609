"""How stores get from `ssl.*` settings into a TLS context: which settings go together, and where a private key lies."""

from __future__ import annotations

import ssl
import sys
import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest

from odradek.kernel.errors import ConfigError
from odradek.kernel.key_stores import loading
from odradek.kernel.key_stores.loading import load_key, load_trusted
from odradek.kernel.peers.settings import TlsClientSettings
from tests.key_stores.stores import GOLDEN, KEY_PASSWORD, PASSWORD

NOWHERE = "/nowhere/store"
JKS = {"keystore_location": str(GOLDEN / "server.jks"), "keystore_password": PASSWORD, "key_password": KEY_PASSWORD}
TWO_PASSWORDS = {
    "keystore_location": str(GOLDEN / "two-passwords.p12"),
    "keystore_password": PASSWORD,
    "key_password": KEY_PASSWORD,
}
PKCS12 = {"keystore_location": str(GOLDEN / "server.p12"), "keystore_password": PASSWORD}
TRUST = {"truststore_location": str(GOLDEN / "trust.jks"), "truststore_password": PASSWORD}
PEM = str(GOLDEN / "authority.pem")


def context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


@pytest.mark.parametrize(
    "given", [JKS, PKCS12, TWO_PASSWORDS, JKS | {"keystore_type": "JKS"}, JKS | {"keystore_type": "pkcs12"}]
)
def test_a_key_is_loaded_from_a_store(given: dict[str, str]) -> None:
    assert load_key(context(), TlsClientSettings(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        TRUST,
        TRUST | {"truststore_type": "JKS"},
        TRUST | {"truststore_password": None},
        {"truststore_location": str(GOLDEN / "trust.p12"), "truststore_password": PASSWORD},
        {"truststore_location": PEM},
        {"truststore_location": PEM, "truststore_type": "PEM"},
        {"truststore_certificates": Path(PEM).read_text(encoding="utf-8")},
    ],
)
def test_authorities_are_loaded_from_any_store(given: dict[str, Any]) -> None:
    loaded = context()

    assert load_trusted(loaded, TlsClientSettings(**given))
    assert [one["subject"] for one in loaded.get_ca_certs()] == [((("commonName", "authority"),),)]
    assert loaded.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN  # each is trusted by itself, as in Java


def test_settings_that_name_nothing_load_nothing() -> None:
    assert not load_key(context(), TlsClientSettings())
    assert not load_trusted(context(), TlsClientSettings())


@pytest.mark.parametrize(
    ("given", "where", "says"),
    [
        # Kafka's rules of what goes together.
        ({"keystore_password": "x"}, "ssl.keystore.password", "ssl.keystore.location is not set"),
        (JKS | {"keystore_password": None}, "ssl.keystore.password", "that is JKS needs its password"),
        (JKS | {"keystore_key": "k", "keystore_certificate_chain": "c"}, "ssl.keystore.location", "is set as well"),
        ({"keystore_key": "k"}, "ssl.keystore.certificate.chain", "go together"),
        ({"keystore_certificate_chain": "c"}, "ssl.keystore.key", "go together"),
        (
            {"keystore_key": "k", "keystore_certificate_chain": "c", "keystore_type": "JKS"},
            "ssl.keystore.type",
            "ssl.keystore.key is PEM",
        ),
        ({"keystore_location": PEM, "keystore_password": "x"}, "ssl.keystore.password", "ssl.key.password opens"),
        # Each by the file, and by the setting that has to do with it.
        ({"keystore_location": NOWHERE, "keystore_password": "x"}, "ssl.keystore.location", f"{NOWHERE}: No such file"),
        (JKS | {"keystore_password": "x"}, "ssl.keystore.password", "server.jks: the password of the store is wrong"),
        (JKS | {"key_password": None}, "ssl.key.password", "server.jks: the password of the private key 'server'"),
        (
            TWO_PASSWORDS | {"key_password": None},
            "ssl.key.password",
            "two-passwords.p12: its private key has",
        ),
        (PKCS12 | {"keystore_type": "PEM"}, "ssl.keystore.type", "server.p12: it is PKCS12"),
        (JKS | {"keystore_type": "PKCS11"}, "ssl.keystore.type", "stores of type PKCS11 are not read"),
        ({"keystore_location": str(GOLDEN)}, "ssl.keystore.location", "Is a directory"),
    ],
)
def test_a_key_that_cannot_be_loaded_is_told_by_its_setting(given: dict[str, Any], where: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load_key(context(), TlsClientSettings(**given))

    assert caught.value.where == where
    assert caught.value.hint


@pytest.mark.parametrize(
    ("given", "where", "says"),
    [
        ({"truststore_password": "x"}, "ssl.truststore.password", "ssl.truststore.location is not set"),
        (TRUST | {"truststore_certificates": "c"}, "ssl.truststore.location", "ssl.truststore.certificates is set"),
        ({"truststore_certificates": "c", "truststore_type": "JKS"}, "ssl.truststore.type", "is PEM"),
        ({"truststore_certificates": "c", "truststore_password": "x"}, "ssl.truststore.password", "no password"),
        ({"truststore_certificates": "c"}, "ssl.truststore.certificates", "no certificate in it"),
        ({"truststore_location": PEM, "truststore_password": "x"}, "ssl.truststore.password", "leave it out"),
        ({"truststore_location": NOWHERE}, "ssl.truststore.location", f"{NOWHERE}: No such file"),
        (TRUST | {"truststore_password": "x"}, "ssl.truststore.password", "trust.jks: the password of the store"),
        ({"truststore_location": str(GOLDEN / "trust.p12")}, "ssl.truststore.password", "without its password"),
        (TRUST | {"truststore_type": "PEM"}, "ssl.truststore.type", "trust.jks: it is JKS"),
    ],
)
def test_authorities_that_cannot_be_loaded_are_told_by_their_setting(
    given: dict[str, Any], where: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load_trusted(context(), TlsClientSettings(**given))

    assert caught.value.where == where
    assert caught.value.hint


@attrs.define
class Witness:
    """A context that looks at the file that it is given."""

    path: Path = Path()
    content: bytes = b""
    modes: tuple[int, int] = (0, 0)

    def load_cert_chain(self, path: str, *, password: str) -> None:
        del password
        self.path = Path(path)
        self.content = self.path.read_bytes()
        self.modes = self.path.stat().st_mode & 0o777, self.path.parent.stat().st_mode & 0o777


def test_an_opened_key_lies_in_a_private_file_that_is_gone_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(loading, "_memory_file", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    witness: Any = Witness()

    load_key(witness, TlsClientSettings(**JKS))  # type: ignore[arg-type]

    assert b"PRIVATE KEY" in witness.content
    assert witness.modes == (0o600, 0o700)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="files in memory are Linux's")
def test_on_linux_an_opened_key_lies_in_memory_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", NOWHERE)  # whoever writes there fails
    witness: Any = Witness()

    load_key(witness, TlsClientSettings(**JKS))  # type: ignore[arg-type]

    assert b"PRIVATE KEY" in witness.content
    assert not witness.path.exists()


def test_a_key_is_gone_where_it_does_not_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loading, "_memory_file", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    texts = {"keystore_key": "-----BEGIN PRIVATE KEY-----\n", "keystore_certificate_chain": "c"}

    with pytest.raises(ConfigError, match=r"ssl\.keystore\.key"):
        load_key(context(), TlsClientSettings(**texts))  # type: ignore[arg-type]

    assert list(tmp_path.iterdir()) == []
