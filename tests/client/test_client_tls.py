"""The client over TLS, against a broker of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from odradek.client import ClientError, ConnectionFailedError, Producer
from odradek.client.producer_settings import ProducerSettings
from odradek.kernel.errors import ConfigError
from odradek.kernel.machine.network import Network
from odradek.kernel.machine.system.network import SystemNetwork
from odradek.kernel.peers import connection
from odradek.kernel.peers.connection import connect_stream
from odradek.kernel.peers.tls import client_context
from tests.tls_broker import Secured, secured_broker

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", params=["auto", "portable"])
def secured(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("tls"), odradek_network_loop=request.param) as broker:
        yield broker


def send(secured: Secured, **more: object) -> int:
    settings: dict[str, object] = {
        "bootstrap.servers": secured.bootstrap,
        "security.protocol": "SSL",
        "ssl.truststore.location": secured.authority,
        "ssl.keystore.location": secured.client,
        "max.block.ms": 300,
        **{name.replace("_", "."): value for name, value in more.items()},
    }

    async def run() -> int:
        async with Producer(settings) as producer:
            return (await producer.send("secret", b"value", partition=0)).offset

    return trio.run(run)


def test_records_are_sent_over_tls_with_a_client_certificate(secured: Secured) -> None:
    assert send(secured, max_block_ms=10_000) >= 0


@pytest.mark.parametrize("missing", ["ssl_truststore_location", "ssl_keystore_location"])
def test_without_trust_or_certificate_there_is_no_connection(secured: Secured, missing: str) -> None:
    with pytest.raises(ClientError) as caught:
        send(secured, **{missing: None})
    assert caught.value.retriable


def test_a_missing_file_is_told_as_a_setting(secured: Secured) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location: /nowhere/client\.pem: No such file"):
        send(secured, ssl_keystore_location="/nowhere/client.pem")


def test_a_certificate_of_another_host_is_refused_unless_names_are_not_compared(secured: Secured) -> None:
    port = int(secured.bootstrap.rpartition(":")[2])
    elsewhere = {"bootstrap_servers": f"127.0.0.1:{port}"}  # the same broker, by a name that its certificate has not
    tls = {"security.protocol": "SSL", "ssl.truststore.location": secured.authority}
    settings = ProducerSettings.read({"bootstrap.servers": secured.bootstrap, **tls}).connection
    assert settings.tls is not None
    context = client_context(settings.tls)

    with pytest.raises(ConnectionFailedError, match=r"certificate is not valid for '127\.0\.0\.1'"):
        trio.run(connect_stream, SystemNetwork(), "127.0.0.1", port, settings, context, 10_000)
    assert send(secured, max_block_ms=10_000, ssl_endpoint_identification_algorithm="", **elsewhere) >= 0


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_only_enabled_versions_of_tls_are_spoken(
    secured: Secured, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    spoken: set[str | None] = set()

    async def connect(network: Network, host: str, port: int, *how: Any) -> trio.abc.Stream:
        stream = await connect_stream(network, host, port, *how)
        assert isinstance(stream, trio.SSLStream)
        spoken.add(stream.version())
        return stream

    monkeypatch.setattr(connection, "connect_stream", connect)

    assert send(secured, max_block_ms=10_000, ssl_enabled_protocols=version) >= 0
    assert {version} == spoken


def test_certificates_and_an_encrypted_key_may_be_given_as_texts(secured: Secured) -> None:
    pem = Path(secured.client).read_bytes()
    key, _, chain = pem.decode().partition("-----BEGIN CERTIFICATE-----")
    encrypted = load_pem_private_key(key.encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open sesame")
    )
    texts = {
        "ssl_truststore_location": None,
        "ssl_truststore_certificates": Path(secured.authority).read_text(encoding="utf-8"),
        "ssl_keystore_location": None,
        "ssl_keystore_certificate_chain": f"-----BEGIN CERTIFICATE-----{chain}",
        "ssl_keystore_key": encrypted.decode(),
    }

    assert send(secured, max_block_ms=10_000, ssl_key_password="open sesame", **texts) >= 0
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.key: .*ssl\.key\.password does not decrypt it"):
        send(secured, ssl_key_password="open barley", **texts)
