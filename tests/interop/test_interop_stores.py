"""Kafka's own Java client and keytool with our broker: the same files, read by both."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from cryptography.hazmat.primitives.serialization import load_der_private_key

from odradek.kernel.key_stores import StoreFormat, open_key_store
from odradek.testing.running_broker import running_broker
from tests.kafka_tools import kafka_says
from tests.key_stores.stores import GOLDEN, KEY_PASSWORD, PASSWORD, fingerprints

from .clients import skip_or_fail

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

TRUST: Final = {"ssl.truststore.location": str(GOLDEN / "trust.jks"), "ssl.truststore.password": PASSWORD}
SERVER: Final = {
    "ssl.keystore.location": str(GOLDEN / "server.jks"),
    "ssl.keystore.password": PASSWORD,
    "ssl.key.password": KEY_PASSWORD,
}
TWO_PASSWORDS: Final = SERVER | {"ssl.keystore.location": str(GOLDEN / "two-passwords.p12")}
CLIENTS: Final = {
    "JKS": SERVER | TRUST,
    "PKCS12 of two passwords": TWO_PASSWORDS | TRUST,
    "PKCS12 without its type": {"ssl.keystore.location": str(GOLDEN / "server.p12"), "ssl.keystore.password": PASSWORD}
    | {"ssl.truststore.location": str(GOLDEN / "trust.p12"), "ssl.truststore.password": PASSWORD},
}


@pytest.mark.parametrize("stores", CLIENTS)
def test_kafka_s_client_and_our_broker_read_the_same_stores(stores: str, tmp_path: Path) -> None:
    ours = TWO_PASSWORDS if "two" in stores else SERVER
    settings = {"listeners": "SSL://localhost:0", "ssl.client.auth": "required", **ours, **TRUST}
    config = tmp_path / "client.properties"
    lines = {"security.protocol": "SSL", **CLIENTS[stores]}
    config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()), encoding="utf-8")

    with running_broker(settings) as broker:
        reach = ("--bootstrap-server", broker.bootstrap, "--command-config", str(config))
        kafka_says("tool", "TopicCommand", *reach, "--create", "--topic", "shown")

        assert kafka_says("tool", "TopicCommand", *reach, "--list").split() == ["shown"]


ALGORITHMS: Final = {"RSA": ("-keyalg", "RSA"), "EC": ("-keyalg", "EC"), "Ed25519": ("-keyalg", "Ed25519")}


@pytest.mark.parametrize("kind", [StoreFormat.JKS, StoreFormat.PKCS12], ids=lambda kind: kind.value)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_stores_that_this_machine_s_keytool_writes_are_read(kind: StoreFormat, algorithm: str, tmp_path: Path) -> None:
    if shutil.which("keytool") is None:
        skip_or_fail("keytool is not on this machine; need a JDK 17")
    path = tmp_path / "store"
    common = ("-keystore", str(path), "-storetype", kind.value, "-storepass", "a password", "-noprompt")
    name = ("-alias", "mine", "-dname", "CN=localhost")
    subprocess.run(
        ["keytool", "-genkeypair", *common, "-keypass", "a password", *name, *ALGORITHMS[algorithm]],
        check=True,
        capture_output=True,
    )
    listed = subprocess.run(["keytool", "-list", *common], check=True, capture_output=True, text=True).stdout
    data = path.read_bytes()

    entry = open_key_store(data, StoreFormat.of(data, kind.value), "a password", None)

    assert f"(SHA-256): {fingerprints(entry.chain)[0]}" in listed

    two = tmp_path / "two"
    copy = (str(GOLDEN / "TwoPasswords.java"), str(path), "a password", "another", str(two))
    subprocess.run(["java", *copy], check=True, capture_output=True)

    again = open_key_store(two.read_bytes(), StoreFormat.PKCS12, "a password", "another")

    assert list(again.chain) == list(entry.chain)
    assert load_der_private_key(again.key, None).public_key() == load_der_private_key(entry.key, None).public_key()
