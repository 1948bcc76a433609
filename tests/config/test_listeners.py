"""Listeners: what is bound, how it is secured, what clients are told."""

from __future__ import annotations

import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.checks import check_together
from odradek.kernel.config.listeners import Listener, connection_limits_by_host, parse_listeners
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.errors import ConfigError


def config(**texts: str) -> BrokerConfig:
    names = {name.replace("_", "."): Setting(text, f"line of {name}") for name, text in texts.items()}
    return BrokerConfig(builtin_registry(), names)


def test_without_configuration_this_machine_is_served() -> None:
    expected = [Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT", "127.0.0.1", 9092)]

    assert expected == parse_listeners(config())


def test_names_are_in_capitals_and_hosts_of_every_kind() -> None:
    found = parse_listeners(
        config(
            listeners="internal://[::1]:1,EXTERNAL://:2,PLAINTEXT://a-b.example:0",
            listener_security_protocol_map="INTERNAL:PLAINTEXT, external:ssl ,PLAINTEXT:PLAINTEXT",
        )
    )

    assert [str(listener) for listener in found] == [
        "INTERNAL://[::1]:1",
        "EXTERNAL://:2",
        "PLAINTEXT://a-b.example:0",
    ]
    assert [listener.security_protocol for listener in found] == ["PLAINTEXT", "SSL", "PLAINTEXT"]


def test_an_open_host_is_advertised_by_the_machines_name_and_a_free_port_as_bound() -> None:
    (listener,) = parse_listeners(config(listeners="PLAINTEXT://:0"))

    assert listener.advertised(40_000, "laptop") == ("laptop", 40_000)


def test_advertised_listeners_say_what_clients_are_told() -> None:
    inner, outer = parse_listeners(
        config(
            listeners="PLAINTEXT://0.0.0.0:9092,SSL://0.0.0.0:9093",
            advertised_listeners="SSL://broker.example:443",
        )
    )

    assert not inner.is_advertised
    assert outer.advertised(9093, "laptop") == ("broker.example", 443)


def test_listeners_of_the_controller_take_no_clients() -> None:
    found = parse_listeners(
        config(
            listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
            advertised_listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            controller_listener_names="CONTROLLER",
        )
    )

    assert [listener.name for listener in found] == ["PLAINTEXT"]


def test_one_port_may_have_an_address_of_each_kind() -> None:
    found = parse_listeners(
        config(
            listeners="PLAINTEXT://127.0.0.1:9092,SIX://[::1]:9092",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SIX:PLAINTEXT",
        )
    )

    assert len(found) == 2


WRONG = [
    ({"listeners": "127.0.0.1:9092"}, "listeners", "which is not NAME://HOST:PORT"),
    ({"listeners": "PLAINTEXT://127.0.0.1"}, "listeners", "which is not NAME://HOST:PORT"),
    ({"listeners": "PLAINTEXT://127.0.0.1:65536"}, "listeners", "which is not NAME://HOST:PORT"),
    ({"listeners": f"PLAINTEXT://127.0.0.1:{'9' * 5_000}"}, "listeners", "which is not NAME://HOST:PORT"),
    ({"listeners": "PLAINTEXT://127.0.0.1:-1"}, "listeners", "which is not NAME://HOST:PORT"),
    ({"listeners": "PLAINTEXT://::1:9092"}, "listeners", "which is not NAME://HOST:PORT"),
    ({"listeners": "OTHER://127.0.0.1:9092"}, "listeners", "no security protocol is defined for listener OTHER"),
    ({"listeners": "SASL_SSL://127.0.0.1:9092"}, "listeners", "SASL is not built yet"),
    ({"listeners": "PLAINTEXT://a:1,plaintext://b:2"}, "listeners", "two listeners named PLAINTEXT"),
    ({"listeners": "PLAINTEXT://a:1,SSL://b:1"}, "listeners", "two listeners on port 1"),
    ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "listeners", "clients cannot connect to the address 0.0.0.0"),
    ({"listeners": "C://:1", "controller_listener_names": "C"}, "listeners", "names none that serves clients"),
    ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "advertised_listeners", "which no client can connect to"),
    ({"advertised_listeners": "SSL://a:1"}, "advertised_listeners", "which is not one of listeners"),
    ({"advertised_listeners": "PLAINTEXT://a:1,plaintext://a:2"}, "advertised_listeners", "two listeners named"),
    (
        {"listeners": "PLAINTEXT://:1,C://:2", "controller_listener_names": "C", "advertised_listeners": "C://a:2"},
        "advertised_listeners",
        "names none that serves clients",
    ),
    ({"listener_security_protocol_map": "A"}, "listener_security_protocol_map", "which maps nothing"),
    ({"listener_security_protocol_map": "A:TLS"}, "listener_security_protocol_map", "which maps nothing"),
    ({"inter_broker_listener_name": "OTHER"}, "inter_broker_listener_name", "which is not an advertised listener"),
    (
        {"inter_broker_listener_name": "PLAINTEXT", "security_inter_broker_protocol": "PLAINTEXT"},
        "inter_broker_listener_name",
        "can be set",
    ),
]


@pytest.mark.parametrize(("texts", "key", "what"), WRONG)
def test_wrong_listeners_are_refused_where_they_stand(texts: dict[str, str], key: str, what: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_listeners(config(**texts))

    assert what in refusal.value.message
    assert refusal.value.where == f"line of {key}"


def test_connection_limits_are_read_by_host() -> None:
    limits = connection_limits_by_host(config(max_connections_per_ip_overrides="127.0.0.1:7, [0:0::1]:8,,::2: 9"))

    assert limits == {"127.0.0.1": 7, "::1": 8, "::2": 9}


def test_a_limit_of_a_host_is_a_number_of_32_bits() -> None:
    def limits(count: str) -> dict[str, int]:
        return connection_limits_by_host(config(max_connections_per_ip_overrides=f"127.0.0.1:{count}"))

    assert limits("2147483647") == {"127.0.0.1": 2147483647}
    for count in ("2147483648", "9" * 5_000, "0" * 5_000):
        with pytest.raises(ConfigError, match="which is not ADDRESS:COUNT"):
            limits(count)


def test_a_limit_of_a_host_by_its_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="has 'localhost', which is no address, and names are not looked up"):
        connection_limits_by_host(config(max_connections_per_ip_overrides="127.0.0.1:7,localhost:8"))


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("listener.name.plaintext.max.connections", "max.connections holds for all listeners here", "max.connections"),
        ("listener.name.plaintext.num.partitions", "num.partitions holds for all listeners here", "num.partitions"),
        (
            "listener.name.PLAINTEXT.ssl.client.auth",
            "unknown broker key 'listener.name.PLAINTEXT.ssl.client.auth'",
            "'listener.name.plaintext.ssl.client.auth'",
        ),
    ],
)
def test_what_one_listener_cannot_have_alone_is_refused(name: str, what: str, hint: str) -> None:
    text = "required" if name.endswith("auth") else "4"
    with pytest.raises(ConfigError) as refusal:
        check_together(BrokerConfig(builtin_registry(), {name: Setting(text, "line 3")}))

    assert refusal.value.where == "line 3"
    assert what in refusal.value.message
    assert hint in refusal.value.hint


def test_a_key_of_a_listener_that_does_not_exist_earns_a_warning() -> None:
    names = ("controller", "sll")
    keys = {f"listener.name.{name}.ssl.client.auth": Setting("required", f"line {name}") for name in names}
    found = BrokerConfig(builtin_registry(), {"controller.listener.names": Setting("CONTROLLER", ""), **keys})
    check_together(found)

    assert found.warnings() == [
        "line sll: listener.name.sll.ssl.client.auth belongs to listener SLL, which listeners does not name; "
        "it has no effect"
    ]


def test_a_key_of_one_mechanism_is_known_by_the_key_it_stands_for() -> None:
    name = "listener.name.plaintext.scram-sha-256.sasl.jaas.config"
    found = BrokerConfig(builtin_registry(), {name: Setting("hunter2", "line 3")})

    (line,) = found.warnings()

    assert line.startswith(f"line 3: {name} belongs to SASL")
    assert found.key(name).is_sensitive
