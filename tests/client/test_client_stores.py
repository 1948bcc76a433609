"""A broker whose stores Java wrote, and clients with stores of every format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import ConnectionFailedError, Producer
from odradek.client.producer_settings import ProducerSettings
from odradek.kernel.machine.system.network import SystemNetwork
from odradek.kernel.peers.connection import connect_stream
from odradek.kernel.peers.tls import client_context
from odradek.spark_plugin.client import Client
from odradek.spark_plugin.client.settings import ClientSettings
from odradek.testing.running_broker import running_broker
from tests.key_stores.stores import GOLDEN, KEY_PASSWORD, PASSWORD

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = {"ssl.keystore.location": str(GOLDEN / "server.jks"), "ssl.keystore.password": PASSWORD}
SIGNED = {"ssl.keystore.location": str(GOLDEN / "server.p12"), "ssl.keystore.password": PASSWORD}
"""The broker's certificate does for a client."""
TRUST = {
    "PEM": {"ssl.truststore.location": str(GOLDEN / "authority.pem")},
    "JKS": {"ssl.truststore.location": str(GOLDEN / "trust.jks"), "ssl.truststore.password": PASSWORD},
    "PKCS12": {"ssl.truststore.location": str(GOLDEN / "trust.p12"), "ssl.truststore.password": PASSWORD},
    "the certificate itself": {"ssl.truststore.location": str(GOLDEN / "server.jks")},
}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    settings = {
        "listeners": "SSL://localhost:0",
        **SERVER,
        "ssl.key.password": KEY_PASSWORD,
        **TRUST["JKS"],
        "ssl.client.auth": "requested",
    }
    with running_broker(settings) as broker:
        yield broker.bootstrap


def given(bootstrap: str, trust: str, **more: str) -> dict[str, object]:
    return {"bootstrap.servers": bootstrap, "security.protocol": "SSL", **TRUST[trust], **more}


@pytest.mark.parametrize("key", [{}, SIGNED], ids=["no key", "a key"])
@pytest.mark.parametrize("trust", TRUST)
def test_records_are_sent_to_a_broker_with_stores_of_java(bootstrap: str, trust: str, key: dict[str, str]) -> None:
    async def run() -> int:
        async with Producer({**given(bootstrap, trust), **key}) as producer:
            return (await producer.send("stores", b"value", partition=0)).offset

    assert trio.run(run) >= 0


@pytest.mark.parametrize("trust", TRUST)
def test_spark_s_client_reads_the_same_stores(bootstrap: str, trust: str) -> None:
    with Client(ClientSettings.of({**given(bootstrap, trust), **SIGNED})) as client:
        client.meet()

        assert client.cluster_id


def test_who_names_no_authority_trusts_the_system_s_and_not_the_broker(bootstrap: str) -> None:
    port = int(bootstrap.rpartition(":")[2])
    read = ProducerSettings.read({"bootstrap.servers": bootstrap, "security.protocol": "SSL", **SIGNED}).connection
    assert read.tls is not None

    with pytest.raises(ConnectionFailedError, match="certificate verify failed"):
        trio.run(connect_stream, SystemNetwork(), "localhost", port, read, client_context(read.tls), 10_000)
