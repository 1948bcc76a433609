"""TLS whose key, certificates and authorities stand in the configuration itself, as clients meet it."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.testing.running_broker import running_broker

from .broker_process import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.testing.running_broker import RunningBroker

PASSWORD = "secret"


def as_toml(settings: Mapping[str, str]) -> str:
    """Return an `odradek.toml`, in which a text may have several lines."""
    return "[broker]\n" + "".join(f"\"{key}\" = '''\n{value}'''\n" for key, value in settings.items())


def as_properties(settings: Mapping[str, str]) -> str:
    """Return a `server.properties`, in which the PEM text of Kafka's documents is one line with its ends escaped."""
    return "".join(f"{key}={value}\n".replace("\n", "\\n\\\n", value.count("\n")) for key, value in settings.items())


def encrypted(key: bytes) -> str:
    """Return a private key as PKCS 8, encrypted."""
    return (
        serialization.load_pem_private_key(key, None)
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
        .decode()
    )


def is_served(broker: RunningBroker, context: ssl.SSLContext) -> bool:
    """Return whether a client is answered; with TLS 1.3 it learns of its refusal with the first answer."""
    with contextlib.suppress(OSError, AssertionError), Client(broker.bootstrap) as client:
        client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
        client.ask(ApiVersionsRequest(), 0)
        return True
    return False


@pytest.mark.parametrize(("name", "written"), [("odradek.toml", as_toml), ("server.properties", as_properties)])
def test_keys_and_authorities_may_stand_in_the_file_of_settings(
    tmp_path: Path, name: str, written: Callable[[Mapping[str, str]], str]
) -> None:
    authority, strangers = trustme.CA(), trustme.CA()
    server = authority.issue_cert("localhost")
    config = tmp_path / name
    config.write_text(
        written(
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": encrypted(server.private_key_pem.bytes()),
                "ssl.keystore.certificate.chain": b"".join(pem.bytes() for pem in server.cert_chain_pems).decode(),
                "ssl.key.password": PASSWORD,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": authority.cert_pem.bytes().decode(),
                "ssl.client.auth": "required",
                "ssl.enabled.protocols": "TLSv1.3",
            }
        )
    )

    def client(signed_by: trustme.CA | None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.maximum_version = version
        authority.configure_trust(context)
        if signed_by is not None:
            signed_by.issue_cert("client@example.org").configure_cert(context)
        return context

    with running_broker({"listeners": "SSL://localhost:0"}, config=config) as broker:
        assert is_served(broker, client(authority))
        assert not is_served(broker, client(strangers))
        assert not is_served(broker, client(None))
        assert not is_served(broker, client(authority, ssl.TLSVersion.TLSv1_2))
