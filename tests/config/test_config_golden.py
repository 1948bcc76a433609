"""Our definitions, values and answers against what a real Apache Kafka 4.3.1 says (each file tells its origin)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.config.alter import Alteration, alter_broker, alter_group, alter_topic
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.definitions import UNLISTED_KEYS
from odradek.kernel.config.definitions.synonyms import broker_synonyms, group_synonyms, topic_synonyms
from odradek.kernel.config.describe import (
    ConfigRow,
    describe_broker,
    describe_client_metrics,
    describe_cluster,
    describe_group,
    describe_topic,
)
from odradek.kernel.config.keys import ConfigKey, Scope
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.config.values import InvalidValueError, render
from odradek.kernel.errors import KafkaError

GOLDEN = Path(__file__).parent / "golden"
SCOPES = {"broker": Scope.BROKER, "topic": Scope.TOPIC, "group": Scope.GROUP}
REGISTRY = builtin_registry()

OUR_DEFAULTS = {
    # Kafka demands these three, and one machine's broker needs none of them said.
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "",
    # A broker without configuration serves this machine only, and keeps its data with the user's.
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dir": None,
}
"""Defaults that differ from Kafka's on purpose."""


def golden(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / name).read_text(encoding="utf-8"))
    return content


def kafka_keys(scope: Scope) -> dict[str, ConfigKey]:
    return {
        name: key
        for name, key in REGISTRY.keys[scope].items()
        if not name.startswith("odradek.") and key not in UNLISTED_KEYS
    }


@pytest.mark.parametrize("scope", SCOPES)
def test_every_key_of_kafka_is_known_with_its_facts(scope: str) -> None:
    expected = {row[0]: row[1:] for row in golden("definitions.json")[scope]}
    actual = {
        name: [key.type.name, key.default_text, key.valid_values, key.importance.name, key.is_internal]
        for name, key in kafka_keys(SCOPES[scope]).items()
    }
    for name, default in OUR_DEFAULTS.items() if scope == "broker" else ():
        assert actual[name][1] == default
        expected[name][1] = default
    if scope == "broker":
        expected["authorizer.class.name"][2] = ""  # Kafka refuses null there, which no text can be

    assert expected == actual


def test_update_modes_are_those_of_kafka() -> None:
    modes = golden("definitions.json")["update_modes"]

    expected = {name: modes.get(name, "read-only") for name in kafka_keys(Scope.BROKER)}
    actual = {name: key.update_mode.value for name, key in kafka_keys(Scope.BROKER).items()}

    assert expected == actual


def test_keys_that_only_a_running_broker_takes_are_known() -> None:
    modes = golden("definitions.json")["update_modes"]
    unlisted = set(modes) - set(kafka_keys(Scope.BROKER))

    assert {name: modes[name] for name in unlisted} == {
        name: REGISTRY.get(Scope.BROKER, name).update_mode.value for name in unlisted
    }


def test_synonyms_are_those_of_kafka() -> None:
    facts = golden("definitions.json")
    topics = {name: list(topic_synonyms(name)) for name in facts["topic_synonyms"]}
    groups = {name: (group_synonyms(name) or (None,))[0] for name in facts["group_synonyms"]}
    brokers = {name: list(broker_synonyms(name)) for name in facts["broker_synonyms"]}

    assert facts["topic_synonyms"] == topics
    assert facts["group_synonyms"] == groups
    assert facts["broker_synonyms"] == brokers


@pytest.mark.parametrize("scope", SCOPES)
def test_texts_are_taken_and_refused_as_kafka_does(scope: str) -> None:
    for name, facts in golden("values.json")[scope].items():
        key = REGISTRY.get(SCOPES[scope], name)
        for text, expected in facts["taken"].items():
            actual = "hidden" if key.is_sensitive else render(key.parse(text))

            assert (name, text, expected) == (name, text, actual)
        for message, texts in facts["refused"].items():
            for text in texts:
                with pytest.raises(InvalidValueError) as refusal:
                    key.parse(text)
                expected = message.replace("{name}", name).replace("{text}", text).replace("{trimmed}", text.strip())

                assert expected == str(refusal.value)


def rows(described: list[ConfigRow]) -> list[list[object]]:
    return [
        [
            row.name,
            row.value,
            row.read_only,
            int(row.source),
            row.is_sensitive,
            [[name, text, int(source)] for name, text, source in row.synonyms],
            row.type,
        ]
        for row in described
        if not row.name.startswith("odradek.")
    ]


PLAIN = {
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:21120",
    "listeners": "PLAINTEXT://127.0.0.1:21100,CONTROLLER://127.0.0.1:21120",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:21100",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/tmp/odradek-peer-cgytk6f8/data/1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "process.roles": "broker,controller",
    "broker.id": "1",
}
LAYERED = PLAIN | {
    "controller.quorum.voters": "1@127.0.0.1:27267",
    "listeners": "PLAINTEXT://127.0.0.1:21200,CONTROLLER://127.0.0.1:27267",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:21200",
    "log.dirs": "/tmp/odradek-peer-p8a2_civ/data/1",
    "log.retention.hours": "2",
    "log.retention.minutes": "10",
    "log.roll.ms": "500000",
    "log.roll.hours": "3",
    "ssl.keystore.password": "secret",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "group.consumer.session.timeout.ms": "45500",
    "listener.name.plaintext.ssl.client.auth": "required",
    "log.initial.task.delay.ms": "1000",
    "sasl.enabled.mechanisms": "PLAIN, GSSAPI",
}
KAFKA_DEFAULTS = {"listeners": "PLAINTEXT://:9092", "log.dir": "/tmp/kafka-logs"}


def config(static: dict[str, str]) -> BrokerConfig:
    settings = {name: Setting(text, "here") for name, text in static.items()}
    return BrokerConfig(REGISTRY, settings, cluster={"min.insync.replicas": "1"}, defaults=KAFKA_DEFAULTS)


def kept(name: str) -> list[list[Any]]:
    """Drop the defaults that differ on purpose from the golden rows."""
    file, _, resource = name.partition(":")
    expected: list[list[Any]] = golden(f"{file}.json")[resource]
    return expected


def same(expected: list[list[Any]], actual: list[list[Any]], *, but: frozenset[str] = frozenset()) -> None:
    assert [row[0] for row in expected] == [row[0] for row in actual]
    for theirs, ours in zip(expected, actual, strict=True):
        # A default of ours that Kafka does not have is one more synonym at the end.
        if theirs[0] in {"node.id", "process.roles", "controller.listener.names"}:
            ours = [*ours[:5], ours[5][:1], ours[6]]
        if theirs[0] not in but:
            assert theirs == ours


def test_a_plain_broker_is_described_as_kafka_does() -> None:
    same(kept("describe_plain:broker"), rows(describe_broker(config(PLAIN))))


def test_a_plain_topic_is_described_as_kafka_does() -> None:
    overrides = {"retention.ms": "1234567", "cleanup.policy": "compact,delete"}
    same(kept("describe_plain:topic"), rows(describe_topic(config(PLAIN), {})))
    same(kept("describe_plain:topic with overrides"), rows(describe_topic(config(PLAIN), overrides)))


def test_groups_and_client_metrics_are_described_as_kafka_does() -> None:
    same(kept("describe_plain:group"), rows(describe_group(config(PLAIN), {})))
    same(kept("describe_plain:client metrics"), rows(describe_client_metrics(config(PLAIN), {})))


def test_layers_are_described_as_kafka_does() -> None:
    layered = config(LAYERED).with_dynamic(
        cluster={"min.insync.replicas": "1", "log.retention.ms": "200000"}, broker={"log.roll.ms": "300000"}
    )
    # Kafka takes unknown names; we do not. Once a dynamic synonym is set, it shows the static ones at their defaults,
    # though they stay what they were: we show what they are.
    unknown = {"foo.bar"}
    but = frozenset({"log.retention.hours", "log.retention.minutes", "log.roll.hours"})

    broker = [row for row in kept("describe_layers:broker") if row[0] not in unknown]
    ours = [row for row in rows(describe_broker(layered)) if row[0] not in unknown]
    same(broker, ours, but=but)
    cluster = [row for row in kept("describe_layers:cluster") if row[0] not in unknown]
    same(cluster, rows(describe_cluster(layered)))
    same(kept("describe_layers:topic"), rows(describe_topic(layered, {})))
    overrides = {"cleanup.policy": "compact , delete", "retention.ms": " 7 "}
    ours = rows(describe_topic(layered, overrides))
    for row in ours:  # Kafka's controller keeps the trimmed text
        row[5] = [[n, row[1] if s == 1 else t, s] for n, t, s in row[5]]  # type: ignore[attr-defined]
    same(kept("describe_layers:topic with overrides"), ours)
    internal = {"internal.segment.bytes": "5000"}
    same(kept("describe_layers:topic with internal"), rows(describe_topic(layered, internal)))
    same(kept("describe_layers:group"), rows(describe_group(layered, {})))


def test_a_question_for_some_keys_is_answered_with_those() -> None:
    names = ["nope", "node.id", "num.partitions", "log.retention.ms"]

    assert [r.name for r in describe_broker(config(PLAIN), names)] == ["node.id", "log.retention.ms", "num.partitions"]


ALTER_DIFFERENCES = {
    ("plain", "retention.ms", 9): "an unknown operation is an invalid request, not an unknown server error",
    ("plain", "nope", 0): "the nearest name is hinted at, where there is one",
    ("1", "nope", 0): "Kafka keeps any name that it does not know as a secret",
    ("1", "listeners", 0): "a running broker keeps its listeners",
    ("1", "listener.name.plaintext.ssl.keystore.password", 0): "a running broker keeps its keys",
    ("", "num.io.threads", 0): "no thread pools here that could not grow as fast",
    ("", "min.insync.replicas", 1): "eligible leader replicas are not built",
    ("1", "min.insync.replicas", 0): "eligible leader replicas are not built",
    ("1", "max.connections.per.ip.overrides", 0): "the message says what is expected",
    ("1", "log.retention.ms", 0): "the message does not begin with 'requirement failed'",
    ("1", "internal.segment.bytes", 0): "a topic's key is not taken for a broker's",
    ("g1", "nope", 0): "the nearest name is hinted at, where there is one",
}


@pytest.mark.parametrize("kind", [2, 4, 32])
def test_alterations_are_taken_and_refused_as_kafka_does(kind: int) -> None:
    overrides: dict[str, str] = {}
    broker = config(PLAIN)
    for case in golden("alter.json")["cases"]:
        name, ops = case["name"], [Alteration(*op) for op in case["ops"]]
        if (
            case["type"] != kind
            or not ops
            or (name in {"missing", "7", "x", "__consumer_offsets"})
            or (kind != 4 and not name)
        ):
            continue
        code, message = 0, None
        try:
            if kind == 2:
                overrides = alter_topic(broker, overrides, ops)
            elif kind == 32:
                alter_group(broker, {}, ops)
            else:
                after = alter_broker(broker, ops, whole_cluster=not name)
                dynamic = {"cluster": broker.cluster, "broker": broker.broker} | {
                    "broker" if name else "cluster": after
                }
                broker = broker.with_dynamic(**dynamic)
        except KafkaError as error:
            code, message = int(error.code), error.detail
        if (name, ops[0].name, ops[0].operation) in ALTER_DIFFERENCES:
            continue

        assert (ops, case["code"], case["message"]) == (ops, code, message)
        if case["after"] and kind == 2:
            described = {row.name: row for row in describe_topic(broker, overrides, [op.name for op in ops])}
            for key, value, source, _, _ in case["after"]:
                assert (key, value, source) == (key, described[key].value, int(described[key].source))
