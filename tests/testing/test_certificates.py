"""Certificates for a test: who trusts them, who has to show one, and what is said without trustme."""

from __future__ import annotations

import socket
import ssl
import sys
from pathlib import Path

import pytest

from odradek.client import BlockingAdmin
from odradek.kernel.errors import ConfigError
from odradek.testing.certificates import make_certificates
from odradek.testing.running_broker import RunningBroker, running_broker


def clients_settings(broker: RunningBroker) -> dict[str, object]:
    return {
        "bootstrap.servers": broker.bootstrap_of("SSL"),
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(broker.certificates.authority),
    }


def test_a_client_that_trusts_the_authority_is_served(odradek_tls_broker: RunningBroker) -> None:
    with BlockingAdmin(clients_settings(odradek_tls_broker)) as admin:
        assert admin.describe_cluster().nodes


def test_a_client_that_does_not_refuses_the_broker(odradek_tls_broker: RunningBroker, tmp_path: Path) -> None:
    strangers = make_certificates(tmp_path)
    host, _, port = odradek_tls_broker.bootstrap_of("SSL").rpartition(":")
    context = ssl.create_default_context(cafile=strangers.authority)
    with (
        socket.create_connection((host, int(port))) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
        context.wrap_socket(plain, server_hostname=host),
    ):
        pass


def test_a_broker_may_ask_for_the_clients_own() -> None:
    with running_broker({"ssl.client.auth": "required"}, tls=True) as broker:
        mine = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(broker.certificates.client)}
        with BlockingAdmin(clients_settings(broker) | mine) as admin:
            assert admin.describe_cluster().nodes
        before = broker.certificates
        broker.kill()
        broker.start()
        with BlockingAdmin(clients_settings(broker) | mine) as admin:
            assert admin.describe_cluster().nodes
        assert broker.certificates is before


def test_a_broker_without_tls_says_that_it_has_none(odradek_broker: RunningBroker) -> None:
    with pytest.raises(ValueError, match="start it with `tls=True`"):
        _ = odradek_broker.certificates


def test_without_trustme_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)

    with pytest.raises(ConfigError, match=r"need trustme \(pip install trustme\)"), running_broker(tls=True):
        pass
