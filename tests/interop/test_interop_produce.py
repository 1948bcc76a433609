"""What clients produce lies in the log as they meant it; read back without a client, batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.compression import CompressionType

from ..waiting import until
from .clients import CLIENTS, CODECS, those_that
from .driver import ClientError
from .records import (
    MEBIBYTE,
    PRODUCE,
    are_as_sent,
    create_topic,
    odd_records,
    plain_records,
    read_partition,
    record,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .driver import Driver

pytestmark = pytest.mark.interop

CLIENTS_AND_CODECS = [
    pytest.param(name, codec) for name, client in CLIENTS.items() for codec in CODECS if codec not in client.cannot
]


@pytest.mark.parametrize(("client", "codec"), CLIENTS_AND_CODECS)
def test_every_codec_reaches_the_log(
    client: str, codec: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic)
    records = plain_records(60, seed=len(codec))

    driver_of(client).do("produce", topic=topic, records=records, **{**PRODUCE, "compression": codec})
    found = read_partition(address, topic)

    assert are_as_sent(found.records, records, CLIENTS[client].cannot)
    assert [each["offset"] for each in found.records] == list(range(60))
    # librdkafka sends a batch as it is when compression would not make it smaller.
    used = {header.compression_id for header in found.batches}
    assert {CompressionType[codec.upper()]} <= used <= {CompressionType[codec.upper()], CompressionType.NONE}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("client", CLIENTS)
def test_every_kind_of_acknowledgement_keeps_the_order(
    client: str, acks: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic)
    records = plain_records(40)

    offsets = driver_of(client).do("produce", topic=topic, records=records, **{**PRODUCE, "acks": acks})
    if acks == "0":
        until(lambda: len(read_partition(address, topic).records) >= len(records))
    found = read_partition(address, topic)

    assert are_as_sent(found.records, records, CLIENTS[client].cannot)
    assert acks == "0" or "produced_offsets" in CLIENTS[client].cannot or offsets == list(range(40))


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_null_or_empty_stays_so(
    client: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic)
    records = odd_records(frozenset(CLIENTS[client].cannot))

    driver_of(client).do("produce", topic=topic, records=records, **PRODUCE)

    assert are_as_sent(read_partition(address, topic).records, records, CLIENTS[client].cannot)


@pytest.mark.parametrize("client", those_that("idempotence"))
def test_an_idempotent_producer_numbers_its_records(
    client: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic)
    records = plain_records(40)

    driver_of(client).do("produce", topic=topic, records=records, **{**PRODUCE, "idempotent": True})
    found = read_partition(address, topic)

    assert are_as_sent(found.records, records, CLIENTS[client].cannot)
    assert all(header.producer_id >= 0 and header.producer_epoch >= 0 for header in found.batches)
    assert [header.base_sequence for header in found.batches] == [header.base_offset for header in found.batches]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_record_of_several_megabytes_passes_where_the_topic_allows_it(
    client: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic, max_message_bytes=str(6 * MEBIBYTE))
    records = [record(0, b"before"), record(1, b"0123456789abcdef" * (MEBIBYTE // 4)), record(2, b"after")]

    driver_of(client).do("produce", topic=topic, records=records, **{**PRODUCE, "max_request_bytes": 8 * MEBIBYTE})

    assert are_as_sent(read_partition(address, topic).records, records, CLIENTS[client].cannot)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_record_beyond_the_limit_is_refused(
    client: str, address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    create_topic(address, topic)

    with pytest.raises(ClientError) as refused:
        driver_of(client).do(
            "produce",
            topic=topic,
            records=[record(0, bytes(2 * MEBIBYTE))],
            **{**PRODUCE, "max_request_bytes": 8 * MEBIBYTE},
        )

    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert read_partition(address, topic).records == []
