import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.errors import CorruptionError
from odradek.kernel.partitions.producer_snapshot import ProducerSnapshotEntry, decode_snapshot, encode_snapshot
from odradek.kernel.partitions.transaction_index import (
    AbortedTransaction,
    decode_transaction_index,
    encode_transaction_index,
)
from tests.kafka_tools import kafka_says

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
ENTRIES = st.builds(
    ProducerSnapshotEntry, INT64, st.integers(-(2**15), 2**15 - 1), INT32, INT64, INT32, INT64, INT32, INT64
)


def test_a_snapshot_that_kafka_wrote_is_read_and_written_the_same(golden_bytes: Callable[[str], bytes]) -> None:
    data = golden_bytes("transactions.snapshot")
    entries = decode_snapshot(data)

    assert encode_snapshot(entries) == data
    assert entries[0] == ProducerSnapshotEntry(10, 0, 4, 15, 2, 1795271416050, 1, 13)
    assert entries[2] == ProducerSnapshotEntry(12, 3, 101, 4, 1, 1795271416008, -1, -1)


@given(st.lists(ENTRIES, max_size=5))
def test_what_is_encoded_is_decoded(entries: list[ProducerSnapshotEntry]) -> None:
    assert decode_snapshot(encode_snapshot(entries)) == entries


def test_a_snapshot_with_any_byte_changed_or_cut_off_is_refused(golden_bytes: Callable[[str], bytes]) -> None:
    data = golden_bytes("transactions.snapshot")
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        with pytest.raises(CorruptionError):
            decode_snapshot(damaged)
        with pytest.raises(CorruptionError):
            decode_snapshot(data[:position])


def test_a_snapshot_whose_count_is_not_its_length_is_refused() -> None:
    data = bytearray(encode_snapshot([]))
    struct.pack_into(">i", data, 6, 1)
    struct.pack_into(">I", data, 2, crc32c(data[6:]))

    with pytest.raises(CorruptionError, match="cannot hold 1 producers"):
        decode_snapshot(data)


def test_a_transaction_index_that_kafka_wrote_is_read_and_written_the_same(
    golden_bytes: Callable[[str], bytes],
) -> None:
    data = golden_bytes("transactions.txnindex")
    aborted = decode_transaction_index(data)

    assert encode_transaction_index(aborted) == data
    assert aborted == [
        AbortedTransaction(10, 0, 5, 2),
        AbortedTransaction(11, 11, 12, 13),
        AbortedTransaction(14, 16, 17, 13),
    ]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x00" * 35, "cut off"),
        (b"\x00\x01" + b"\x00" * 32, "version 1"),
        (encode_transaction_index([AbortedTransaction(1, 0, 9, 0), AbortedTransaction(2, 0, 9, 0)]), "9 follows 9"),
    ],
)
def test_a_damaged_transaction_index_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(CorruptionError, match=complaint):
        decode_transaction_index(data)


@pytest.mark.interop
def test_kafkas_own_tool_reads_our_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000042.snapshot"
    path.write_bytes(
        encode_snapshot(
            [
                ProducerSnapshotEntry(7, 2, 2, 41, 4, 1_700_000_000_123, -1, -1),
                ProducerSnapshotEntry(2**40, 32767, 2**31 - 1, 12, 0, 5, 3, 10),
                ProducerSnapshotEntry(9, 1, -1, -1, 0, 6, 4, -1),
            ]
        )
    )
    output = kafka_says("tool", "DumpLogSegments", "--files", str(path))
    lines = [line for line in output.splitlines() if line.startswith("producerId")]

    assert len(lines) == 3
    assert lines[0].startswith(
        "producerId: 7 producerEpoch: 2 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty "
        "lastTimestamp: 1700000000123 firstSequence: 2147483646 lastSequence: 2 lastOffset: 41 offsetDelta: 4"
    )
    assert "currentTxnFirstOffset: OptionalLong[10]" in lines[1]
    assert "coordinatorEpoch: 4" in lines[2]
