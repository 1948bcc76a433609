"""Clients in processes of their own with a broker on the portable loop; all other tests here have the system's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..broker.broker_process import broker_process
from .brokers import SETTINGS
from .clients import CLIENTS, MissingClientError, skip_or_fail
from .driver import Driver
from .records import MEBIBYTE, PRODUCE, create_topic, plain_records, record, without_offsets

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("client", ["librdkafka", "kafka-python"])
def test_what_a_client_writes_by_the_portable_loop_it_reads_by_it(client: str, tmp_path: Path) -> None:
    try:
        command = CLIENTS[client].command()
    except MissingClientError as error:
        skip_or_fail(f"{client} is not on this machine; needs {error}")
        raise
    records = [*plain_records(300), record(300, bytes(3 * MEBIBYTE))]
    written = {**PRODUCE, "compression": "lz4", "idempotent": True, "max_request_bytes": 4 * MEBIBYTE}
    with broker_process(tmp_path / "data", *SETTINGS, "odradek.network.loop=portable") as broker:
        create_topic(broker.address, "portable", max_message_bytes=str(4 * MEBIBYTE))
        driver = Driver(client, [*command, broker.address], tmp_path / "driver.log")
        try:
            driver.do("produce", topic="portable", records=records, **written)
            found = driver.do(
                "consume", topic="portable", position="beginning", count=len(records), isolation="read_committed"
            )
        finally:
            driver.close()

    assert without_offsets(found) == records
