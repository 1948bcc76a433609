"""Keys by which an operator asks for a lock: they work, refuse the start, or say in one line that nothing is locked."""

from __future__ import annotations

import pytest

from odradek.kernel.config.describe import describe_broker
from odradek.kernel.config.listeners import parse_listeners
from odradek.kernel.errors import ConfigError
from tests.config.test_listeners import config

TLS_BESIDE_PLAINTEXT = "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.1:9093"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "ACLs are not built yet"),
        ("ssl.engine.factory.class", "com.example.Locked", "its Java class cannot run here"),
    ],
)
def test_a_lock_that_nobody_would_close_refuses_the_start(key: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} is refused: .*{why}") as refusal:
        config(**{key: value})

    assert refusal.value.where == f"line of {key}"


def test_the_default_of_the_authorizer_is_taken() -> None:
    assert config(**{"authorizer.class.name": ""}).get_text("authorizer.class.name") == ""


@pytest.mark.parametrize("key", ["super.users", "allow.everyone.if.no.acl.found"])
def test_keys_of_kafkas_authorizer_alone_earn_the_line_of_their_part(key: str) -> None:
    found = config(**{key: "User:admin"})

    (line,) = found.warnings()
    assert line == (
        f"line of {key}: {key} belongs to SASL, ACLs and delegation tokens, which are not built yet; it has no effect"
    )
    (row,) = describe_broker(found, [key])
    assert (row.value, row.is_sensitive) == (None, True), "as Apache Kafka 4.3.1 answers"
    assert not describe_broker(config(), [key]), "Kafka lists it only where it is set"


def test_keys_of_tls_without_a_listener_that_speaks_it_earn_one_line() -> None:
    found = config(ssl_client_auth="required", ssl_truststore_location="/ca.pem")

    assert found.warnings() == [
        "line of ssl_client_auth: ssl.client.auth, ssl.truststore.location have no effect: no listener speaks TLS"
    ]


def test_keys_of_tls_on_a_listener_that_does_not_speak_it_earn_a_line() -> None:
    name = "listener.name.plaintext.ssl.client.auth"

    found = config(**{"listeners": TLS_BESIDE_PLAINTEXT, name: "required"})

    assert found.warnings() == [f"line of {name}: {name} has no effect: listener PLAINTEXT does not speak TLS"]


def test_keys_of_tls_on_a_listener_that_speaks_it_earn_none() -> None:
    texts = {
        "listeners": TLS_BESIDE_PLAINTEXT,
        "ssl.client.auth": "required",
        "listener.name.ssl.ssl.key.password": "x",
    }

    assert config(**texts).warnings() == []


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_brokers_that_would_talk_by_a_protocol_that_no_listener_has_do_not_start(protocol: str) -> None:
    """*Source:* `KafkaConfig.validateValues`: the protocol is the listener's name."""
    with pytest.raises(ConfigError, match=f"inter.broker.protocol is {protocol}, .* not an advertised listener"):
        parse_listeners(config(security_inter_broker_protocol=protocol))


def test_brokers_may_talk_by_a_listeners_own_protocol() -> None:
    assert parse_listeners(config(listeners=TLS_BESIDE_PLAINTEXT, security_inter_broker_protocol="SSL"))
