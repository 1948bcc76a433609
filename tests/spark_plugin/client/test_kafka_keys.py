"""Kafka's keys as the light client reads them: numbers, credentials, strangers; nothing secret is printed."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.errors import ConfigError
from odradek.spark_plugin.client.jaas import parse_jaas
from odradek.spark_plugin.client.setting_keys import KNOWN_NAMES, unknown_keys
from odradek.spark_plugin.client.settings import ClientSettings

SERVERS = {"bootstrap.servers": "a:9092,[::1]:9093"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def sasl(mechanism: str, line: str | None = None, **more: str) -> ClientSettings:
    options = {**SERVERS, "security.protocol": "SASL_SSL", "sasl.mechanism": mechanism}
    if line is not None:
        options["sasl.jaas.config"] = line
    return ClientSettings.of(options | {name.replace("_", "."): value for name, value in more.items()})


def test_defaults_are_kafkas_but_for_the_size_of_a_fetch() -> None:
    settings = ClientSettings.of(SERVERS)

    assert settings.bootstrap == (("a", 9092), ("::1", 9093))
    assert (settings.request_timeout_ms, settings.api_timeout_ms) == (30_000, 60_000)
    assert (settings.fetch_bytes, settings.fetch_wait_ms, settings.receive_buffer_bytes) == (4 << 20, 500, -1)
    assert (settings.tls, settings.sasl, settings.is_read_committed) == (None, None, False)


def test_keys_come_in_any_case_and_as_numbers() -> None:
    settings = ClientSettings.of(
        {"Bootstrap.Servers": "a:1", "REQUEST.TIMEOUT.MS": 5, "isolation.level": "read_committed"}
    )

    assert (settings.request_timeout_ms, settings.is_read_committed) == (5, True)


def test_a_text_of_the_settings_is_the_servers() -> None:
    assert str(ClientSettings.of(SERVERS)) == "a:9092,::1:9093"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("bootstrap.servers", "nonsense", "host:port"),
        ("bootstrap.servers", "", "missing"),
        ("request.timeout.ms", "soon", "request.timeout.ms"),
        ("isolation.level", "read_all", "isolation.level"),
        ("security.protocol", "TLS", "security.protocol"),
        ("ssl.truststore.type", "JCEKS", "PKCS12"),
        ("fetch.max.wait.ms", "-1", "at least 0"),
    ],
)
def test_a_value_that_is_none_is_refused_by_its_key(name: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ClientSettings.of(SERVERS | {name: value})


def test_keys_without_effect_pass_and_are_known() -> None:
    options = {"max.poll.records": "7", "metrics.num.samples": "9", "sasl.kerberos.service.name": "kafka", "acks": "1"}

    assert ClientSettings.of(SERVERS | options).bootstrap
    assert unknown_keys(options) == {}
    assert "ssl.keystore.password" in KNOWN_NAMES


def test_a_stranger_is_named_with_what_was_probably_meant() -> None:
    assert unknown_keys(["request.timout.ms", "foo"]) == {
        "request.timout.ms": "did you mean 'request.timeout.ms'?",
        "foo": "",
    }


def test_settings_travel_to_workers_and_are_keys() -> None:
    settings = sasl("PLAIN", f'{PLAIN} required username="u" password="p";')
    again = pickle.loads(pickle.dumps(settings))

    assert (again, hash(again)) == (settings, hash(settings))
    assert settings != sasl("PLAIN", f'{PLAIN} required username="u" password="q";')


def test_nothing_secret_is_printed() -> None:
    settings = sasl("PLAIN", f'{PLAIN} required username="u" password="hush";', ssl_key_password="hush")

    assert "hush" not in repr(settings)
    assert "hush" not in str(settings)
    assert "hush" not in repr(settings.sasl) + repr(settings.tls)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_takes_a_line_of_jaas(mechanism: str) -> None:
    found = sasl(mechanism, f'{SCRAM} required\n  username="al\\"ice"\n  password=secret\n  tokenauth=true ;').sasl

    assert found is not None
    assert (found.mechanism, found.username, found.password) == (mechanism, 'al"ice', "secret")
    assert found.extensions == (("tokenauth", "true"),)


def test_user_and_password_may_be_keys_of_their_own() -> None:
    found = sasl("PLAIN", sasl_username="u", sasl_password="p").sasl

    assert found is not None
    assert (found.username, found.password) == ("u", "p")


def test_a_token_may_be_given_in_four_ways() -> None:
    direct = sasl("OAUTHBEARER", sasl_oauthbearer_token="abc").sasl
    line = sasl("OAUTHBEARER", f'{BEARER} required token="abc" unsecuredLoginExtension_k="v";').sasl
    file = ClientSettings.of(
        SERVERS
        | {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "file:///tmp/token",
        }
    ).sasl
    claims = sasl(
        "OAUTHBEARER",
        f'{BEARER} required unsecuredLoginStringClaim_sub="me" unsecuredLoginNumberClaim_n="2" '
        'unsecuredLoginLifetimeSeconds="60";',
    ).sasl

    assert direct is not None
    assert line is not None
    assert file is not None
    assert claims is not None
    assert (direct.token, line.token, line.extensions) == ("abc", "abc", (("k", "v"),))
    assert file.token_path == "/tmp/token"
    assert (claims.claims, claims.token_life_s) == ((("n", 2.0), ("sub", "me")), 60)


@pytest.mark.parametrize(
    ("mechanism", "line", "words"),
    [
        ("GSSAPI", None, "Kerberos is not built"),
        ("DIGEST-MD5", None, "no such mechanism"),
        ("PLAIN", None, "username and password"),
        ("PLAIN", f"{PLAIN} required username=u;", "username and password"),
        ("PLAIN", f"{SCRAM} required username=u password=p;", "does not serve"),
        ("PLAIN", f"{PLAIN} required username=u password=p", "control flag"),
        ("PLAIN", f"{PLAIN} maybe username=u password=p;", "control flag"),
        ("PLAIN", f"{PLAIN} required username u;", "name=value"),
        ("PLAIN", f'{PLAIN} required username="u;', "not closed"),
        ("OAUTHBEARER", f"{BEARER} required;", "needs a token"),
        ("OAUTHBEARER", f"{BEARER} required unsecuredLoginNumberClaim_n=x;", "could not convert"),
    ],
)
def test_credentials_that_do_not_fit_are_refused(mechanism: str, line: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        sasl(mechanism, line)
    assert "password=p" not in str(caught.value).partition("write it as")[0]


def test_a_token_from_the_network_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="file:///path"):
        sasl("OAUTHBEARER", sasl_oauthbearer_token_endpoint_url="https://idp/token")


@given(st.dictionaries(st.from_regex(r"[a-z][a-zA-Z_]*", fullmatch=True), st.text(), max_size=4))
def test_any_quoted_value_comes_back(options: dict[str, str]) -> None:
    quoted = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in options.items()}
    line = f"{PLAIN} required " + " ".join(f'{name}="{value}"' for name, value in quoted.items()) + ";"

    assert parse_jaas(line).options == options
