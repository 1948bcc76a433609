"""A broker that strangers can reach says so, once."""

from __future__ import annotations

import pytest

from odradek.kernel.network.exposure import exposure
from odradek.kernel.network.settings import ClientAuth, ListenerSettings, SecurityProtocol, TlsSettings


def listener(name: str, host: str, client_auth: ClientAuth | None = None) -> tuple[ListenerSettings, tuple[str, int]]:
    tls = TlsSettings(client_auth=client_auth) if client_auth is not None else None
    protocol = SecurityProtocol.PLAINTEXT if tls is None else SecurityProtocol.SSL
    return ListenerSettings(name=name, host=host, port=0, security_protocol=protocol, tls=tls), (host, 9092)


def told(*listeners: tuple[ListenerSettings, tuple[str, int]]) -> str:
    return exposure([settings for settings, _ in listeners], {settings.name: bound for settings, bound in listeners})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"])
def test_a_listener_for_this_machine_alone_needs_no_word(host: str) -> None:
    assert not told(listener("PLAINTEXT", host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "fe80::1"])
@pytest.mark.parametrize("client_auth", [None, ClientAuth.NONE, ClientAuth.REQUESTED])
def test_a_listener_that_asks_nobody_who_he_is_is_told(host: str, client_auth: ClientAuth | None) -> None:
    line = told(listener("PLAINTEXT", host, client_auth))

    place = {"fe80::1": "[fe80::1]:9092", "192.168.1.5": "192.168.1.5:9092"}.get(host, "port 9092 of this machine")
    assert f"whoever reaches {place} may read, write and delete everything" in line
    assert "ssl.client.auth=required" in line


def test_certificates_that_are_required_are_a_lock() -> None:
    assert not told(listener("SSL", "0.0.0.0", ClientAuth.REQUIRED))


def test_several_are_told_in_one_line() -> None:
    line = told(listener("A", "10.0.0.1"), listener("B", "127.0.0.1"), listener("C", "::"))

    assert "whoever reaches 10.0.0.1:9092 or port 9092 of this machine may" in line
