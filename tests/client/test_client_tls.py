"""The client over TLS, against a broker of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from odradek.kernel.client import ClientError, Producer
from odradek.kernel.errors import ConfigError
from tests.tls_broker import Secured, secured_broker


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
    with pytest.raises(ConfigError, match=r"ssl\.\* settings"):
        send(secured, ssl_keystore_location="/nowhere/client.pem")
