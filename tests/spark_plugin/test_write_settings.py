"""What the producer's keys of Kafka mean for the sink."""

from __future__ import annotations

import pytest

from odradek.kernel.errors import ConfigError
from odradek.kernel.records.compression import CompressionType
from odradek.spark_plugin.writing.write_settings import WriteSettings

BOOTSTRAP = {"bootstrap.servers": "127.0.0.1:9092"}


def read(**keys: str) -> WriteSettings:
    return WriteSettings.of(kafka_keys(keys), exactly_once=False)


def kafka_keys(keys: dict[str, str]) -> dict[str, str]:
    """Return them as Kafka writes them, with a broker."""
    return {**BOOTSTRAP, **{key.replace("_", "."): value for key, value in keys.items()}}


def test_without_keys_batches_are_large_and_everything_is_acknowledged() -> None:
    found = read()

    assert (found.acks, found.is_idempotent, found.compression) == (-1, True, CompressionType.NONE)
    assert (found.batch_bytes, found.request_bytes, found.in_flight_max) == (1_048_576, 1_048_576, 5)
    assert (found.delivery_timeout_ms, found.transaction_timeout_ms) == (120_000, 900_000)


@pytest.mark.parametrize(
    ("keys", "batch_bytes"),
    [
        ({"batch_size": "16384"}, 16_384),
        ({"batch_size": "0"}, 1),
        ({"batch_size": "5000000"}, 1_048_576),
        ({"batch_size": "2000000000", "max_request_size": "2000000000"}, 2**30),
        ({"max_request_size": "5000000"}, 1_048_576),
        ({"max_request_size": "1000"}, 1_000),
    ],
)
def test_a_batch_is_no_larger_than_a_request(keys: dict[str, str], batch_bytes: int) -> None:
    assert read(**keys).batch_bytes == batch_bytes


@pytest.mark.parametrize(("acks", "meant"), [("all", -1), ("-1", -1), ("1", 1), ("0", 1)])
def test_nothing_is_written_without_an_answer(acks: str, meant: int) -> None:
    found = read(acks=acks)

    assert (found.acks, found.is_idempotent) == (meant, meant == -1)


def test_what_is_given_counts() -> None:
    found = read(
        compression_type="zstd",
        compression_zstd_level="7",
        transaction_timeout_ms="5000",
        delivery_timeout_ms="40000",
        request_timeout_ms="1000",
        max_in_flight_requests_per_connection="2",
    )

    assert (found.compression, found.compression_level) == (CompressionType.ZSTD, 7)
    assert (found.transaction_timeout_ms, found.delivery_timeout_ms) == (5_000, 40_000)
    assert (found.request_timeout_ms, found.in_flight_max) == (1_000, 2)


@pytest.mark.parametrize(
    "keys",
    [{"acks": "1"}, {"retries": "0"}, {"enable_idempotence": "false"}, {"max_in_flight_requests_per_connection": "6"}],
)
def test_exactly_once_does_without_nothing(keys: dict[str, str]) -> None:
    assert not read(**keys).is_idempotent

    with pytest.raises(ConfigError, match="exactlyOnce=true needs"):
        WriteSettings.of(kafka_keys(keys), exactly_once=True)


def test_keys_of_consumers_and_of_others_are_let_pass() -> None:
    assert read(fetch_min_bytes="7", strange_key="x") == read()
