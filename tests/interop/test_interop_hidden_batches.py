"""A log's end that consists of what no consumer sees: each client reads past it, and waits at the log's end."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import Consumer
from odradek.kernel.partitions.delay_withdrawal import Looks, withdraw_below
from tests.partitions.delayed_partition import DelayedPartition, Sent
from tests.waiting import until, until_async

from ..kafka_tools import damage_that_kafka_sees, kafka_command, kafka_says
from .clients import those_that
from .drivers.json_lines import to_text
from .hidden_batches import KEYS, HiddenBroker, hidden_broker
from .records import create_topic
from .test_interop_disk import driver_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from odradek.client import ConsumerRecord

    from .driver import Driver

pytestmark = pytest.mark.interop

FORM = os.environ.get("ODRADEK_HIDDEN_FORM", "a commit marker")
KEY = KEYS.get(FORM)
TAIL_COUNT = 3_000
LIVE_COUNT = 30
FETCHES_MAX = 200
"""Of about 13 MB, by a client that asks for a mebibyte at most and does not ask for the same again and again."""


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiddenBroker]:
    """Run the broker of these tests."""
    with hidden_broker(tmp_path_factory.mktemp("hidden") / "data") as broker:
        yield broker


@pytest.fixture(scope="module")
def reader_of(hidden: HiddenBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Driver]]:
    """Return a function from a client's name to its driver, one at a time."""
    folder = tmp_path_factory.mktemp("readers")
    with contextlib.ExitStack() as stack:
        drivers: dict[str, Driver] = {}

        def reader(name: str) -> Driver:
            if name not in drivers:
                drivers[name] = stack.enter_context(driver_at(name, hidden.address, folder))
            return drivers[name]

        yield reader


@pytest.fixture(scope="module")
def tail(hidden: HiddenBroker) -> str:
    """Return a topic: a record, then thousands of hidden batches in many answers, aborted transactions among them."""
    create_topic(hidden.address, "tail")
    log = hidden.log_of("tail")
    log.append_visible(b"before")
    for _ in range(10):
        log.append_aborted(key=KEYS["a commit marker"] if KEY is None else KEY)
        log.append_hidden(TAIL_COUNT // 10, key=KEY, size_bytes=4_096)
    return "tail"


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("client", those_that("consume"))
def test_a_client_reads_past_a_long_tail_of_hidden_batches(
    client: str, isolation: str, tail: str, hidden: HiddenBroker, reader_of: Callable[[str], Driver]
) -> None:
    driver, log = reader_of(client), hidden.log_of(tail)
    until(lambda: not log.is_awaited_at_end())  # whoever read before has left
    before_count, fetches_count = log.visible_count, log.fetches_count

    driver.begin("consume", topic=tail, position="beginning", count=before_count + 1, isolation=isolation)
    until(log.is_awaited_at_end)
    asked_count = log.fetches_count - fetches_count
    log.append_visible(client.encode())
    found = driver.finish()

    assert found[0]["value"] == to_text(b"before")
    assert (found[-1]["value"], found[-1]["offset"]) == (to_text(client.encode()), log.end_offset - 1)
    assert asked_count <= FETCHES_MAX


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("client", those_that("consume"))
def test_a_client_that_waits_at_the_end_passes_hidden_batches_as_they_come(
    client: str, isolation: str, hidden: HiddenBroker, reader_of: Callable[[str], Driver]
) -> None:
    topic = f"live-{client}-{isolation}"
    create_topic(hidden.address, topic)
    driver, log = reader_of(client), hidden.log_of(topic)
    log.append_visible(b"before")
    driver.begin("consume", topic=topic, position="end", count=1, isolation=isolation)
    driver.wait_positioned()
    until(log.is_awaited_at_end, pause_s=0.002)
    fetches_count = log.fetches_count

    for _ in range(LIVE_COUNT):
        asked_count = log.fetches_count
        log.append_hidden(1, key=KEY)
        until(lambda: log.fetches_count > asked_count and log.is_awaited_at_end(), pause_s=0.002)  # noqa: B023
    asked_count = log.fetches_count - fetches_count
    log.append_visible(b"after")
    (found,) = driver.finish()

    assert (found["value"], found["offset"]) == (to_text(b"after"), log.end_offset - 1)
    assert asked_count <= 2 * LIVE_COUNT


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_our_own_client_reads_past_a_long_tail_of_hidden_batches(
    isolation: str, tail: str, hidden: HiddenBroker
) -> None:
    log = hidden.log_of(tail)
    until(lambda: not log.is_awaited_at_end())
    before_count, fetches_count = log.visible_count, log.fetches_count

    async def read() -> list[ConsumerRecord]:
        settings = {"bootstrap.servers": hidden.address, "auto.offset.reset": "earliest", "isolation.level": isolation}
        found: list[ConsumerRecord] = []
        async with Consumer(settings) as consumer, trio.open_nursery() as nursery:
            consumer.assign([(tail, 0)])
            nursery.start_soon(append_when_awaited)
            while len(found) <= before_count:
                found += await consumer.poll()
        return found

    async def append_when_awaited() -> None:
        await until_async(log.is_awaited_at_end)
        log.append_visible(b"ours")

    found = trio.run(read)

    assert (found[-1].value, found[-1].offset) == (b"ours", log.end_offset - 1)
    assert log.fetches_count - fetches_count <= FETCHES_MAX


def test_kafkas_tool_reads_hidden_batches(tmp_path: Path) -> None:
    kafka_command()
    with hidden_broker(tmp_path / "data") as broker:
        create_topic(broker.address, "hidden")
        log = broker.log_of("hidden")
        log.append_visible(b"before")
        log.append_hidden(20, key=KEY)
        log.append_aborted(key=KEYS[FORM])
        log.append_visible(b"after")

    assert damage_that_kafka_sees(tmp_path / "data") == []
    segment = tmp_path / "data" / "hidden-0" / f"{0:020}.log"
    dump = kafka_says("tool", "DumpLogSegments", "--print-data-log", "--files", str(segment))
    assert dump.count("isvalid: true") == 3 * 20 + 5 + 2
    assert dump.count("endTxnMarker: COMMIT coordinatorEpoch: 0") == 2 * 20 + 2


def test_kafkas_tool_reads_what_was_carried_forward(tmp_path: Path) -> None:
    """Two that wait and are carried, one of them is delivered, the other one withdrawn by a DeleteRecords."""
    kafka_command()
    partition = DelayedPartition(tmp_path)
    partition.produce([Sent(b"waits", 1_000), Sent(b"is withdrawn", 5_000)])
    assert partition.carry(partition.replica.high_watermark) == 2
    partition.pass_time(1_000)
    withdraw_below(partition.replica, partition.replica.high_watermark, Looks())
    partition.write()
    count = len(partition.batches())
    partition.close()

    (segment,) = tmp_path.glob(f"*/t-0/{0:020}.log")
    dump = kafka_says("tool", "DumpLogSegments", "--print-data-log", "--files", str(segment))
    assert dump.count("isvalid: true") == count
    assert dump.count("endTxnMarker: COMMIT coordinatorEpoch: 0") == 5
