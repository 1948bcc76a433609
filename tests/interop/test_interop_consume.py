"""Clients read from every position, without a group: what comes back is what went in, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .clients import CLIENTS, those_that
from .records import (
    FIRST_TIMESTAMP,
    MEBIBYTE,
    PRODUCE,
    create_topic,
    odd_records,
    plain_records,
    read_partition,
    record,
    without_offsets,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

pytestmark = pytest.mark.interop

READERS = those_that("consume")
COUNT = 50


@pytest.fixture(scope="session")
def filled_topic(address: str, driver_of: Callable[[str], Driver]) -> str:
    """Return a topic with `COUNT` records in several batches, every codec among them."""
    create_topic(address, "filled")
    records = plain_records(COUNT)
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        some = records[number * 10 : number * 10 + 10]
        driver_of("librdkafka").do("produce", topic="filled", records=some, **{**PRODUCE, "compression": codec})
    return "filled"


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize(
    ("position", "first"),
    [
        pytest.param("beginning", 0, id="beginning"),
        pytest.param({"offset": 17}, 17, id="offset-inside-a-batch"),
        pytest.param({"offset": COUNT - 1}, COUNT - 1, id="last-offset"),
        pytest.param({"timestamp": FIRST_TIMESTAMP + 230}, 23, id="timestamp"),
        pytest.param({"timestamp": FIRST_TIMESTAMP + 231}, 24, id="timestamp-between-records"),
    ],
)
@pytest.mark.parametrize("client", READERS)
def test_reading_begins_where_it_was_asked_to(
    client: str, position: Any, first: int, isolation: str, filled_topic: str, driver_of: Callable[[str], Driver]
) -> None:
    found = driver_of(client).do(
        "consume", topic=filled_topic, position=position, count=COUNT - first, isolation=isolation
    )

    assert [each["offset"] for each in found] == list(range(first, COUNT))
    assert without_offsets(found) == plain_records(COUNT)[first:]


@pytest.mark.parametrize("client", READERS)
def test_one_who_reads_from_the_end_gets_what_comes_after(
    client: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic)
    before, after = plain_records(10), plain_records(10, seed=1)
    writer = driver_of("kafka-python" if client == "librdkafka" else "librdkafka")
    writer.do("produce", topic=topic, records=before, **PRODUCE)

    reader = driver_of(client)
    reader.begin("consume", topic=topic, position="end", count=10, isolation="read_uncommitted")
    reader.wait_positioned()
    writer.do("produce", topic=topic, records=after, **PRODUCE)

    assert without_offsets(reader.finish()) == after


@pytest.fixture(scope="session")
def trimmed_topic(address: str, driver_of: Callable[[str], Driver]) -> str:
    """Return a topic of three batches of 10 records, whose first 12 records are gone."""
    create_topic(address, "trimmed")
    writer = driver_of("librdkafka")
    records = plain_records(30)
    for start in range(0, 30, 10):
        writer.do("produce", topic="trimmed", records=records[start : start + 10], **PRODUCE)
    writer.do("delete_records", topic="trimmed", before=12)
    return "trimmed"


@pytest.mark.parametrize("client", READERS)
def test_one_who_reads_what_was_deleted_goes_on_with_what_is_there(
    client: str, trimmed_topic: str, driver_of: Callable[[str], Driver]
) -> None:
    position = {"offset": 3, "reset": "earliest"}
    found = driver_of(client).do(
        "consume", topic=trimmed_topic, position=position, count=18, isolation="read_committed"
    )

    assert [each["offset"] for each in found] == list(range(12, 30))
    assert without_offsets(found) == plain_records(30)[12:]


@pytest.mark.parametrize("client", READERS)
def test_a_record_larger_than_any_fetch_limit_is_read(
    client: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic, max_message_bytes=str(6 * MEBIBYTE))
    records = [record(0, b"before"), record(1, b"0123456789abcdef" * (MEBIBYTE // 4)), record(2, b"after")]
    settings = {**PRODUCE, "max_request_bytes": 8 * MEBIBYTE}
    driver_of("librdkafka").do("produce", topic=topic, records=records, **settings)

    found = driver_of(client).do("consume", topic=topic, position="beginning", count=3, isolation="read_committed")

    assert without_offsets(found) == records


@pytest.fixture(scope="session")
def written_by(address: str, driver_of: Callable[[str], Driver]) -> Callable[[str], str]:
    """Return a function that has a client write, once, all it can; returns the topic."""
    topics: dict[str, str] = {}

    def write(writer: str) -> str:
        if writer not in topics:
            cannot = CLIENTS[writer].cannot
            driver = driver_of(writer)
            create_topic(address, f"written-by-{writer}")
            for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
                if codec not in cannot:
                    settings = {**PRODUCE, "compression": codec, "idempotent": "idempotence" not in cannot}
                    records = odd_records(frozenset(cannot)) + plain_records(20)
                    driver.do("produce", topic=f"written-by-{writer}", records=records, **settings)
            topics[writer] = f"written-by-{writer}"
        return topics[writer]

    return write


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("writer", CLIENTS)
def test_what_one_client_writes_another_reads(
    writer: str, reader: str, address: str, written_by: Callable[[str], str], driver_of: Callable[[str], Driver]
) -> None:
    driver = driver_of(reader)
    topic = written_by(writer)
    expected = read_partition(address, topic).records

    found = driver.do("consume", topic=topic, position="beginning", count=len(expected), isolation="read_uncommitted")

    assert found == expected
