"""Settings of clients: Kafka's names and defaults, and what is refused."""

from __future__ import annotations

import pytest

from odradek.client import Producer
from odradek.client.consumer_settings import ADMIN_KEYS, CONSUMER_KEYS, AdminSettings, ConsumerSettings, duration_ms
from odradek.client.partitioners import RoundRobinPartitioner
from odradek.client.producer_settings import PRODUCER_KEYS, ProducerSettings
from odradek.kernel.errors import ConfigError
from odradek.kernel.records.compression import CompressionType

HERE: dict[str, object] = {"bootstrap.servers": "127.0.0.1:9092"}


def test_every_key_says_what_it_does() -> None:
    assert [key.name for key in (*PRODUCER_KEYS, *CONSUMER_KEYS, *ADMIN_KEYS) if not key.doc] == []


def test_texts_and_python_values_mean_the_same() -> None:
    as_texts = ProducerSettings.read({**HERE, "linger.ms": "7", "enable.idempotence": "false", "acks": "1"})
    as_values = ProducerSettings.read(
        {"bootstrap.servers": ["127.0.0.1:9092"], "linger.ms": 7, "enable.idempotence": False, "acks": 1}
    )

    assert as_texts == as_values
    assert as_values.linger_ms == 7


def test_several_bootstrap_servers_and_ipv6() -> None:
    settings = ProducerSettings.read({"bootstrap.servers": "a:1, [::1]:9092,PLAINTEXT://b:2"})

    assert settings.connection.bootstrap == (("a", 1), ("::1", 9092), ("b", 2))


@pytest.mark.parametrize(
    ("given", "part_of_the_error"),
    [
        ({"batch.sise": 1}, "did you mean 'batch.size'?"),
        ({"request.required.acks": 1}, "today that is acks"),
        ({"linger.size": 1}, "today that is linger.ms"),
        ({"batch.size": "many"}, "Not a number of type INT"),
        ({"acks": 2}, "String must be one of: all, -1, 0, 1"),
        ({"compression.type": "rar"}, "String must be one of"),
        ({"compression.type": "gzip", "compression.gzip.level": 0}, "1 to 9"),
        ({"transactional.id": "t", "enable.idempotence": False}, "transactional.id needs enable.idempotence=true"),
        ({"transactional.id": "t", "acks": 1}, "transactional.id needs acks=all"),
        ({"transactional.id": ""}, "transactional.id: String must be non-empty"),
        ({"transaction.two.phase.commit.enable": True}, "KIP-939"),
        ({"security.protocol": "SASL_SSL"}, "SASL is not built yet"),
        ({"enable.metrics.push": True}, "telemetry is not built yet"),
        ({"bootstrap.servers": "localhost"}, "is not host:port"),
        ({"bootstrap.servers": ""}, "bootstrap.servers is missing"),
        ({"enable.idempotence": True, "acks": 1}, "enable.idempotence=true needs acks=all"),
        ({"enable.idempotence": True, "retries": 0}, "needs retries > 0"),
        ({"enable.idempotence": True, "max.in.flight.requests.per.connection": 6}, "at most 5"),
        ({"delivery.timeout.ms": 100}, "less than linger.ms + request.timeout.ms"),
        ({"partitioner.class": "no.such:Thing"}, "cannot import"),
        ({"interceptor.classes": [object()]}, "has no method on_send or on_acknowledgement"),
        ({"value.serializer": 5}, "neither callable"),
        ({"security.protocol": "sasl_ssl"}, "SASL is not built yet"),
        ({"ssl.truststore.type": "JCEKS"}, "one of (case insensitive): JKS, PKCS12, PEM"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(given: dict[str, object], part_of_the_error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ProducerSettings.read({**HERE, **given})

    assert part_of_the_error in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [{"acks": "1"}, {"retries": 0}, {"max.in.flight.requests.per.connection": 6}, {"enable.idempotence": False}],
)
def test_idempotence_that_nobody_asked_for_gives_way(given: dict[str, object]) -> None:
    assert not ProducerSettings.read({**HERE, **given}).is_idempotent


def test_idempotence_is_the_default() -> None:
    assert ProducerSettings.read(HERE).is_idempotent


@pytest.mark.parametrize(("protocol", "strategy"), [("SSL", "NONE"), ("ssl", "None")])
def test_words_that_kafka_reads_in_any_case(protocol: str, strategy: str) -> None:
    words = {"security.protocol": protocol, "metadata.recovery.strategy": strategy}
    connection = ProducerSettings.read({**HERE, **words}).connection
    group = ConsumerSettings.read({**HERE, "group.id": "g", "group.protocol": "Consumer"}).group

    assert (connection.tls is not None, connection.rebootstraps) == (True, False)
    assert group is not None
    assert group.is_consumer_protocol


def test_a_delivery_timeout_that_nobody_set_grows_with_the_request_timeout() -> None:
    settings = ProducerSettings.read({**HERE, "request.timeout.ms": 200_000})

    assert settings.delivery_timeout_ms == 200_005


@pytest.mark.parametrize(
    ("given", "codec", "level"),
    [
        ({}, CompressionType.NONE, None),
        ({"compression.type": "gzip"}, CompressionType.GZIP, None),
        ({"compression.type": "gzip", "compression.gzip.level": 4}, CompressionType.GZIP, 4),
        ({"compression.type": "zstd"}, CompressionType.ZSTD, 3),
        ({"compression.type": "snappy"}, CompressionType.SNAPPY, None),
    ],
)
def test_codecs_and_levels(given: dict[str, object], codec: CompressionType, level: int | None) -> None:
    settings = ProducerSettings.read({**HERE, **given})

    assert (codec, level) == (settings.compression, settings.compression_level)


def test_a_class_may_be_named_by_its_path() -> None:
    settings = ProducerSettings.read({**HERE, "partitioner.class": "odradek.client.partitioners:RoundRobinPartitioner"})

    assert isinstance(settings.partitioner, RoundRobinPartitioner)


class Doubling:
    """A serializer and an interceptor."""

    def serialize(self, _topic: str, value: bytes) -> bytes:
        """Return the value twice."""
        return value * 2

    def on_send(self, record: object) -> object:
        """Return the record as it is."""
        return record


def test_classes_are_taken_for_their_instances() -> None:
    settings = ProducerSettings.read({**HERE, "value.serializer": Doubling, "interceptor.classes": [Doubling]})

    assert settings.value_serializer is not None
    assert settings.value_serializer("t", b"ab") == b"abab"
    assert isinstance(settings.interceptors[0], Doubling)
    Producer({**HERE, "partitioner.class": RoundRobinPartitioner})


def test_a_partitioner_has_its_method() -> None:
    with pytest.raises(ConfigError, match=r"partitioner\.class: .* has no method partition"):
        Producer({**HERE, "partitioner.class": object()})


@pytest.mark.parametrize(
    ("given", "part_of_the_error"),
    [
        ({"group.protocol": "consumer", "session.timeout.ms": 1}, "session.timeout.ms cannot be set"),
        ({"group.protocol": "consumer", "heartbeat.interval.ms": 1}, "heartbeat.interval.ms cannot be set"),
        ({"group.protocol": "consumer", "partition.assignment.strategy": "range"}, "strategy cannot be set"),
        ({"group.remote.assignor": "uniform"}, "needs group.protocol=consumer"),
        ({"heartbeat.interval.ms": 10, "session.timeout.ms": 10}, "must be less than session.timeout.ms"),
        ({"group.id": " "}, "group.id is empty"),
        ({"group.id": None, "enable.auto.commit": True}, "enable.auto.commit=true needs a group.id"),
        ({"group.protocol": "share"}, "String must be one of"),
        ({"group.instance.id": ""}, "group.instance.id: String must be non-empty"),
        ({"fetch.max.bytes": -1}, "Value must be at least 0"),
        ({"interceptor.classes": [object()]}, "has no method on_consume"),
    ],
)
def test_what_a_group_cannot_be_is_refused(given: dict[str, object], part_of_the_error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ConsumerSettings.read({**HERE, "group.id": "g", **given})

    assert part_of_the_error in str(caught.value)


def test_without_a_group_id_there_is_no_group() -> None:
    assert ConsumerSettings.read(HERE).group is None


def test_consumer_and_admin_defaults() -> None:
    consumer, admin = ConsumerSettings.read(HERE), AdminSettings.read(HERE)

    assert (
        consumer.fetch_min_bytes,
        consumer.fetch_bytes_max,
        consumer.fetch_wait_ms_max,
        consumer.partition_fetch_bytes_max,
        consumer.poll_records_max,
    ) == (1, 52_428_800, 500, 1_048_576, 500)
    assert (consumer.reset, consumer.checks_crcs, admin.api_timeout_ms) == ("latest", True, 60_000)
    assert (consumer.connection.connections_max_idle_ms, admin.connection.connections_max_idle_ms) == (540_000, 300_000)


def test_an_admin_call_lasts_as_long_as_one_request_of_it_unless_it_is_told_otherwise() -> None:
    assert AdminSettings.read({**HERE, "request.timeout.ms": 90_000}).api_timeout_ms == 90_000
    assert AdminSettings.read({**HERE, "default.api.timeout.ms": 10}).api_timeout_ms == 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT5S", 5_000), ("P1DT1M", 86_460_000), ("PT0.5S", 500), ("P", None), ("1D", None), ("", None)],
)
def test_durations(text: str, expected: int | None) -> None:
    assert expected == duration_ms(text)


def test_auto_offset_reset_by_duration() -> None:
    settings = ConsumerSettings.read({**HERE, "auto.offset.reset": "by_duration:PT1H"})

    assert (settings.reset, settings.reset_duration_ms) == ("by_duration", 3_600_000)
    with pytest.raises(ConfigError, match="by_duration"):
        ConsumerSettings.read({**HERE, "auto.offset.reset": "by_duration:soon"})
