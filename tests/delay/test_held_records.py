"""The records of a companion, one at a time: the same as all together, whatever their bytes are."""

from __future__ import annotations

import attrs
import pytest

from odradek.kernel.delay.companion import CANCELLER_DUE, Companion, WaitingEntry
from odradek.kernel.delay.held import ENTRY_BYTES, HeldRecords
from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.records.compression import CompressionType, compress
from odradek.kernel.records.record import encode_record

SIZES = (0, 60, 64, 20_000)
PAYLOAD = b"".join(encode_record(number, number, b"k", b"v" * size) for number, size in enumerate(SIZES))
ENTRIES = tuple(WaitingEntry(50, 10 + number) for number in range(len(SIZES)))
HELD = Companion(entries=(*ENTRIES, WaitingEntry(CANCELLER_DUE, 30)), payload=PAYLOAD, base_timestamp=1_000)


@pytest.mark.parametrize("codec", CompressionType)
def test_each_is_found_by_where_it_was_produced(codec: CompressionType) -> None:
    companion = attrs.evolve(HELD, payload=compress(codec, PAYLOAD), codec=codec)
    held = HeldRecords(companion)

    assert [held.find(entry.origin) for entry in ENTRIES] == list(companion.records())
    assert held.size_bytes == len(PAYLOAD) + 5 * ENTRY_BYTES


def test_the_brokers_time_is_every_records() -> None:
    held = HeldRecords(attrs.evolve(HELD, append_time_ms=7))

    assert held.find(11)[1].timestamp == 7


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(CorruptRecordsError, match="produced at offset 30"):
        HeldRecords(HELD).find(30)


@pytest.mark.parametrize("payload", [PAYLOAD[:-1], PAYLOAD + b"\2\0", b"", b"\x80", b"\1" + PAYLOAD])
def test_records_that_are_not_as_many_as_wait_are_refused(payload: bytes) -> None:
    with pytest.raises(CorruptRecordsError):
        HeldRecords(attrs.evolve(HELD, payload=payload))
