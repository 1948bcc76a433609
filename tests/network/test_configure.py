"""The settings of the network as the configuration says them."""

from __future__ import annotations

import attrs
import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.network.configure import network_settings
from odradek.kernel.network.settings import ClientAuth


def config(**texts: str) -> BrokerConfig:
    return BrokerConfig(builtin_registry(), {name: Setting(text, f"--set {name}") for name, text in texts.items()})


def test_a_key_of_one_listener_beats_that_of_all() -> None:
    settings = network_settings(
        config(
            **{
                "listeners": "SSL://127.0.0.1:0,INTERNAL://127.0.0.1:0",
                "listener.security.protocol.map": "SSL:SSL,INTERNAL:SSL",
                "ssl.keystore.location": "all.pem",
                "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
                "listener.name.internal.ssl.keystore.location": "internal.pem",
                "listener.name.internal.ssl.enabled.protocols": "TLSv1.3",
                "listener.name.internal.ssl.client.auth": "required",
            }
        )
    )
    everyone, internal = (listener.tls for listener in settings.listeners)
    assert everyone is not None
    assert internal is not None

    assert (
        everyone.keystore_location,
        everyone.enabled_protocols,
        everyone.client_auth,
    ) == ("all.pem", ("TLSv1.2", "TLSv1.3"), ClientAuth.NONE)
    assert attrs.evolve(
        everyone,
        keystore_location="internal.pem",
        enabled_protocols=("TLSv1.3",),
        client_auth=ClientAuth.REQUIRED,
    ) == (internal)


def test_the_limit_of_kafkas_key_beats_our_own() -> None:
    ours = {"odradek.network.memory.bytes": "2000000"}

    assert network_settings(config(**ours)).request_memory_bytes == 2_000_000
    assert network_settings(config(**ours, **{"queued.max.request.bytes": "200000000"})).request_memory_bytes == (
        200_000_000
    )


def test_socket_buffers_are_the_systems_unless_they_are_set() -> None:
    chosen = network_settings(config(**{"socket.send.buffer.bytes": "65536"}))

    assert (chosen.send_buffer_bytes, chosen.receive_buffer_bytes) == (65536, -1)


def test_the_controllers_listener_goes_first_and_no_other_does() -> None:
    settings = network_settings(
        config(
            **{
                "process.roles": "broker,controller",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "1@127.0.0.1:9093",
                "listeners": "CLIENTS://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
                "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "CLIENTS",
            }
        )
    )

    assert {each.name: each.goes_first for each in settings.listeners} == {"CLIENTS": False, "CONTROLLER": True}
    assert not any(each.is_protected for each in settings.listeners)


@pytest.mark.parametrize(
    ("listeners", "protected"),
    [("CLIENTS,INTERNAL", {"INTERNAL"}), ("INTERNAL,CLIENTS", {"INTERNAL"}), ("INTERNAL", set())],
)
def test_the_listener_of_brokers_is_protected_where_there_is_another(listeners: str, protected: set[str]) -> None:
    names = listeners.split(",")
    settings = network_settings(
        config(
            **{
                "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
                "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
                "inter.broker.listener.name": "INTERNAL",
            }
        )
    )

    assert {each.name for each in settings.listeners if each.is_protected} == protected
