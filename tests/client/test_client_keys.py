"""Every key of Kafka's clients is read or refused with a reason; types, defaults and limits are what its jars say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.client.consumer_settings import ADMIN_KEYS, CONSUMER_KEYS, AdminSettings, ConsumerSettings
from odradek.client.producer_settings import PRODUCER_KEYS, ProducerSettings
from odradek.client.refused_keys import COMMON_REFUSALS, CONSUMER_REFUSALS, Refusal
from odradek.kernel.config.values import render
from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.client.settings import ClientKey

HERE: dict[str, object] = {"bootstrap.servers": "127.0.0.1:9092"}
GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "client_keys.json").read_text(encoding="utf-8"))
KEYS: dict[str, tuple[ClientKey, ...]] = {"producer": PRODUCER_KEYS, "consumer": CONSUMER_KEYS, "admin": ADMIN_KEYS}
REFUSALS: dict[str, Mapping[str, Refusal]] = {
    "producer": COMMON_REFUSALS,
    "consumer": CONSUMER_REFUSALS,
    "admin": COMMON_REFUSALS,
}
READERS: dict[str, Callable[[Mapping[str, object]], object]] = {
    "producer": ProducerSettings.read,
    "consumer": ConsumerSettings.read,
    "admin": AdminSettings.read,
}

OUR_DEFAULTS = {
    "enable.metrics.push": ("false", "client telemetry is not built yet, so nothing is pushed"),
    "ssl.keystore.type": (None, "the file's content tells, also of PEM"),
    "ssl.truststore.type": (None, "the file's content tells, also of PEM"),
    "partition.assignment.strategy": ("", "without it the same two assignors, which plugins offer by name"),
}
"""Defaults that differ from Kafka's, and why."""

OUR_LIMITS = {
    "connections.max.idle.ms": "Kafka takes any number, and means never by all below 0",
    "heartbeat.interval.ms": "Kafka's members fail or spin with 0 or less",
    "session.timeout.ms": "brokers refuse 0 or less",
    "transaction.timeout.ms": "brokers refuse 0 or less",
    "socket.connection.setup.timeout.ms": "nothing connects in 0 ms or less",
    "socket.connection.setup.timeout.max.ms": "nothing connects in 0 ms or less",
    "ssl.keystore.type": "there are no providers of others",
    "ssl.truststore.type": "there are no providers of others",
    "ssl.endpoint.identification.algorithm": "Java knows LDAP too",
    "ssl.enabled.protocols": "older versions are not safe",
    "compression.gzip.level": "0 is refused together with the codec",
}
"""Values that Kafka takes and we refuse, or refuse elsewhere, and why."""


def kafka_rows(kind: str) -> dict[str, tuple[str, str | None, str, bool]]:
    return {name: (type_, default, valid, required) for name, type_, default, valid, required in GOLDEN[kind]}


def limits(described: str) -> str | list[str]:
    """Return a range as it is, and the words of a choice in one order."""
    if "..." in described:
        return described
    words = described.lower() if described.startswith("(case insensitive)") else described
    return sorted(words.replace("[", "").replace("]", "").replace(",", "").split())


@pytest.mark.parametrize("kind", KEYS)
def test_every_key_of_kafka_s_client_is_read_or_refused_and_no_other(kind: str) -> None:
    read, refused = [key.name for key in KEYS[kind]], list(REFUSALS[kind])

    assert sorted(kafka_rows(kind)) == sorted(read + refused)


@pytest.mark.parametrize("kind", KEYS)
def test_types_and_defaults_are_kafka_s(kind: str) -> None:
    rows = kafka_rows(kind)
    ours, expected = {}, {}
    for key in KEYS[kind]:
        type_, default, _, is_required = rows[key.name]
        ours[key.name] = (key.type.name, render(key.default))
        expected[key.name] = (type_, OUR_DEFAULTS.get(key.name, (default,))[0])
        if is_required:  # here servers are missed by an error of their own, and serializers are a help, not a need
            assert not key.default
            expected[key.name] = (type_, render(key.default))

    assert expected == ours


@pytest.mark.parametrize("kind", KEYS)
def test_limits_are_kafka_s(kind: str) -> None:
    rows = kafka_rows(kind)
    keys = [key for key in KEYS[kind] if key.name not in OUR_LIMITS]

    ours = {key.name: limits("" if key.validator is None else key.validator.describe()) for key in keys}
    expected = {key.name: limits(rows[key.name][2]) for key in keys}

    assert expected == ours


@pytest.mark.parametrize("kind", KEYS)
def test_a_refused_key_says_why_and_what_to_do_instead(kind: str) -> None:
    for name, refusal in REFUSALS[kind].items():
        assert refusal.reason
        assert refusal.instead
        with pytest.raises(ConfigError) as caught:
            READERS[kind]({**HERE, name: "7"})

        assert f"{name} is refused: {refusal.reason}" in str(caught.value)
        assert refusal.instead in str(caught.value)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("empty", ["", None, []], ids=repr)
def test_a_refused_key_that_is_given_empty_is_not_given(kind: str, empty: object) -> None:
    given = dict.fromkeys(REFUSALS[kind], empty)

    assert READERS[kind](HERE) == READERS[kind]({**HERE, **given})


@pytest.mark.parametrize(
    ("name", "hint"),
    [("batch.sise", "batch.size"), ("ssl.trustore.password", "ssl.truststore.password"), ("sasl.mechanims", "sasl.")],
)
def test_an_unknown_key_names_the_nearest_one_that_is_read_or_refused(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown producer setting '{name}'.*did you mean '{hint}"):
        ProducerSettings.read({**HERE, name: 1})


def test_what_is_said_to_differ_does() -> None:
    defaults, bounds = set(), set()
    for kind, keys in KEYS.items():
        for key in keys:
            _, default, valid, _ = kafka_rows(kind)[key.name]
            if render(key.default) != default:
                defaults.add(key.name)
            if limits("" if key.validator is None else key.validator.describe()) != limits(valid):
                bounds.add(key.name)

    assert set(OUR_DEFAULTS) - defaults == set()
    assert set(OUR_LIMITS) - bounds == set()
