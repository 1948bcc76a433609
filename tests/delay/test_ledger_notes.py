"""The ledger keeps the last note of a dead-letter partition apart from deliveries of what waited there itself."""

from __future__ import annotations

import struct
import zlib

import pytest

from odradek.kernel.delay.companion import Companion, WaitingEntry, build_companion
from odradek.kernel.delay.ledger import DelayLedger
from odradek.kernel.records.batch import assign_offset_and_epoch, read_header
from odradek.plugins.delay_wheel.factory import WheelFactory

NOTE = WaitingEntry(70, 69, 0, b"t" * 16)


def told(*entries: WaitingEntry) -> DelayLedger:
    """Return a ledger that saw deliveries, settled, from offset 0 on."""
    ledger = DelayLedger(WheelFactory(), on_due=lambda due_ms: None, on_unreadable=lambda offset, error: None)
    for offset, entry in enumerate(entries):
        batch = build_companion(Companion((entry,), b"", is_delivery=True), timestamp=1)
        assign_offset_and_epoch(batch, read_header(batch), offset, 0)
        ledger.saw(batch, read_header(batch))
    return ledger


def test_a_delivery_leaves_the_last_note_alone() -> None:
    ledger = told(NOTE, WaitingEntry(1_000, 5, 0))

    assert (ledger.last_delivery, ledger.last_delivery_offset) == (NOTE, 0)


def test_what_is_kept_has_the_last_note_and_is_of_version_4() -> None:
    kept = b"".join(told(NOTE, WaitingEntry(1_000, 5, 0)).encode())
    ledger = told()
    ledger.restore(kept)
    assert (ledger.last_delivery, ledger.last_delivery_offset) == (NOTE, 0)

    old = bytearray(b"".join(told().encode()))
    head = struct.calcsize(">4sbqqqqqqqiiiiiq")
    assert old[4] == 4
    old[4] = 3
    old[head : head + 4] = struct.pack(">I", zlib.crc32(old[:head]))
    with pytest.raises(ValueError, match="another version"):
        ledger.restore(bytes(old))
