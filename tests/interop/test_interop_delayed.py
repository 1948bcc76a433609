"""Unmodified clients delay records, and see each when it is due, once, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.kernel.delay.headers import DELAY_CANCEL, DELAY_ID, DELAYED_FROM, DELIVER_AFTER

from .clients import those_that
from .drivers.json_lines import to_text
from .records import PRODUCE, create_topic, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("client", those_that("produce", "consume"))
def test_a_client_delays_records_and_sees_them_when_they_are_due(
    client: str, codec: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic, odradek_delay_enable="true")
    produced = [
        record(0, b"last", headers=((DELIVER_AFTER, b"1500"),)),
        record(1, b"withdrawn", headers=((DELIVER_AFTER, b"60000"), (DELAY_ID, b"name"))),
        record(2, b"second", b"key", headers=((DELIVER_AFTER, b"300"), ("own", b"stays"))),
        record(3, b"first"),
        record(4, b"", headers=((DELAY_CANCEL, b"name"),)),
    ]
    driver = driver_of(client)

    driver.do("produce", topic=topic, records=produced, **{**PRODUCE, "compression": codec})
    found = driver.do("consume", topic=topic, position="beginning", count=3, isolation="read_committed")

    assert [each["value"] for each in found] == [to_text(value) for value in (b"first", b"second", b"last")]
    first, second, last = found
    assert first["headers"] == []
    assert (second["key"], second["headers"][0]) == (to_text(b"key"), ["own", to_text(b"stays")])
    assert [name for name, _ in last["headers"]] == [DELAYED_FROM, "odradek.delayed.timestamp"]
    assert last["timestamp"] > second["timestamp"]
