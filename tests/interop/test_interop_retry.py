"""Unmodified clients fail records, see them again, and find dead letters, once each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.kernel.retry.headers import ATTEMPT, DEAD, DLQ_MESSAGE, DLQ_TOPIC, ORIGIN, REASON

from .clients import those_that
from .drivers.json_lines import to_text
from .records import PRODUCE, create_topic, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("client", those_that("produce", "consume"))
def test_a_client_fails_records_and_sees_them_again_or_as_dead_letters(
    client: str, codec: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    retry, letters = f"{topic}.g.retry", f"{topic}.g.dlq"
    create_topic(address, letters, odradek_retry_dead_letters_of=retry)
    create_topic(
        address,
        retry,
        odradek_retry_topic=topic,
        odradek_retry_group="g",
        odradek_retry_levels="200ms,400ms",
        odradek_retry_attempts="2",
    )
    failed = [
        record(0, b"once more", b"key", headers=(("own", b"stays"),)),
        record(1, b"hopeless", headers=((DEAD, b"1"), (REASON, b"why"), (ORIGIN, topic.encode() + b"/0/7"))),
        record(2, b"last attempt", headers=((ATTEMPT, b"1"),)),
        record(3, b"too often", headers=((ATTEMPT, b"2"),)),
    ]
    driver = driver_of(client)

    driver.do("produce", topic=retry, records=failed, **{**PRODUCE, "compression": codec})
    again = driver.do("consume", topic=retry, position="beginning", count=2, isolation="read_committed")
    dead = driver.do("consume", topic=letters, position="beginning", count=2, isolation="read_committed")

    assert [each["value"] for each in again] == [to_text(b"once more"), to_text(b"last attempt")]
    assert again[0]["key"] == to_text(b"key")
    assert again[0]["headers"][:2] == [["own", to_text(b"stays")], [ATTEMPT, to_text(b"1")]]
    assert dict(again[1]["headers"])[ATTEMPT] == to_text(b"2")
    assert [each["value"] for each in dead] == [to_text(b"hopeless"), to_text(b"too often")]
    said = dict(dead[0]["headers"])
    assert (said[DLQ_TOPIC], said[DLQ_MESSAGE]) == (to_text(topic.encode()), to_text(b"why"))
