"""A broker dies while clients produce, and comes back: they go on, and every record is there once and in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..broker.broker_process import BrokerProcess
from ..broker.broker_process import Client as Connection
from ..waiting import until
from .clients import CLIENTS, MissingClientError, skip_or_fail
from .driver import Driver
from .records import PRODUCE, create_topic, end_offset, read_partition, record, without_offsets

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

COUNT = 10_000
SETTINGS = {**PRODUCE, "idempotent": True, "max_request_bytes": 16 << 10}
"""Many small requests, so that the broker dies among them."""


@pytest.mark.parametrize("client", ["librdkafka", "kafka-python", "franz-go", "java"])
def test_an_idempotent_producer_outlives_the_death_of_the_broker(client: str, tmp_path: Path) -> None:
    try:
        command = CLIENTS[client].command()
    except MissingClientError as error:
        skip_or_fail(f"{client} is not on this machine; needs {error}")
        raise
    records = [record(number, b"%d" % number * 20) for number in range(COUNT)]
    broker = BrokerProcess(tmp_path / "data")
    address = broker.wait_ready()
    driver = Driver(client, [*command, address], tmp_path / "driver.log")
    try:
        create_topic(address, "kept")
        with Connection(address) as connection:
            driver.begin("produce", topic="kept", records=records, **SETTINGS)
            until(lambda: end_offset(connection, "kept") > 0, pause_s=0)
            broker.kill()
        broker.close()
        broker = BrokerProcess(tmp_path / "data", listen=address)
        broker.wait_ready()

        assert driver.finish() == list(range(COUNT))
        assert without_offsets(read_partition(address, "kept").records) == records
    finally:
        driver.close()
        if broker.process.poll() is None:
            broker.terminate()
        broker.close()
