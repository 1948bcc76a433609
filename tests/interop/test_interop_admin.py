"""Clients administer the broker with the calls that they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.kernel.errors import ErrorCode

from .clients import those_that
from .driver import ClientError
from .records import FIRST_TIMESTAMP, PRODUCE, create_topic, plain_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("client", those_that("create_topic"))
def test_a_topic_is_created_listed_grown_and_deleted(
    client: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    driver = driver_of(client)

    driver.do("create_topic", topic=topic, partitions=2, configs={"retention.ms": "123456"})
    assert topic in driver.do("list_topics")
    assert driver.do("describe_topic", topic=topic) == 2
    driver.do("create_partitions", topic=topic, partitions=5)
    assert driver.do("describe_topic", topic=topic) == 5
    driver.do("delete_topic", topic=topic)

    assert topic not in driver.do("list_topics")


@pytest.mark.parametrize("client", those_that("create_topic"))
def test_errors_keep_their_codes(client: str, topic: str, driver_of: Callable[[str], Driver]) -> None:
    driver = driver_of(client)
    driver.do("create_topic", topic=topic, partitions=1, configs={})

    refusals = [
        ({"topic": topic, "partitions": 1, "configs": {}}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"topic": "a name", "partitions": 1, "configs": {}}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"topic": f"{topic}-2", "partitions": 1, "configs": {"retention.ms": "x"}}, ErrorCode.INVALID_CONFIG),
    ]
    for arguments, code in refusals:
        with pytest.raises(ClientError) as refused:
            driver.do("create_topic", **arguments)
        assert refused.value.code == code


@pytest.mark.parametrize("client", those_that("topic_configs"))
def test_configs_are_shown_and_changed(client: str, topic: str, driver_of: Callable[[str], Driver]) -> None:
    driver = driver_of(client)
    driver.do("create_topic", topic=topic, partitions=1, configs={"retention.ms": "123456"})

    configs = driver.do("topic_configs", topic=topic)
    assert (configs["retention.ms"], configs["segment.bytes"]) == ("123456", "1073741824")
    driver.do("set_topic_config", topic=topic, key="retention.ms", value="654321")

    assert driver.do("topic_configs", topic=topic)["retention.ms"] == "654321"


@pytest.mark.parametrize("client", those_that("offsets"))
def test_offsets_are_looked_up(client: str, address: str, topic: str, driver_of: Callable[[str], Driver]) -> None:
    create_topic(address, topic)
    driver_of("librdkafka").do("produce", topic=topic, records=plain_records(30), **PRODUCE)
    wanted = {"earliest": 0, "latest": 30, FIRST_TIMESTAMP + 55: 6}
    if client in those_that("max_timestamp"):
        wanted["max_timestamp"] = 29

    assert {at: driver_of(client).do("offsets", topic=topic, at=at) for at in wanted} == wanted


@pytest.mark.parametrize("client", those_that("delete_records"))
def test_records_are_deleted_up_to_an_offset(
    client: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic)
    driver = driver_of(client)
    driver_of("librdkafka").do("produce", topic=topic, records=plain_records(30), **PRODUCE)

    assert driver.do("delete_records", topic=topic, before=12) in (12, None)
    assert driver_of("librdkafka").do("offsets", topic=topic, at="earliest") == 12


@pytest.mark.parametrize("client", those_that("describe_cluster"))
def test_the_cluster_is_one_broker_that_is_its_controller(client: str, driver_of: Callable[[str], Driver]) -> None:
    assert driver_of(client).do("describe_cluster") == {"brokers": [1], "controller": 1}
