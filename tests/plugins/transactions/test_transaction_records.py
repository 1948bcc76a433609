"""Records of `__transaction_state`: byte for byte Kafka's, and refused when they are not."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import CorruptionError, ProducerIdentity, TopicPartition
from odradek.plugins.transactions.metadata import (
    TransactionMetadata,
    TransactionRecord,
    decode_record,
    encode_record,
)
from odradek.plugins.transactions.states import PREVIOUS_STATES, TransactionState

from .driven import DrivenShard

GOLDEN = [
    tuple(bytes.fromhex(word) for word in line.split())
    for line in (Path(__file__).parent / "golden/transaction_state.txt").read_text().splitlines()
    if not line.startswith("#")
]
T0 = TopicPartition("t", 0)


def life(transactional_id: str) -> list[TransactionMetadata]:
    """Return what Kafka wrote about an id, timestamps, names and ids left out."""
    found = []
    for key, value in GOLDEN:
        record = decode_record(key, value)
        if record is not None and record.transactional_id == transactional_id and record.metadata is not None:
            found.append(bare(record.metadata))
    return found


def bare(metadata: TransactionMetadata) -> TransactionMetadata:
    return attrs.evolve(
        metadata,
        transactional_id="",
        producer_id=0,
        previous_producer_id=min(metadata.previous_producer_id, 0),
        start_timestamp=min(metadata.start_timestamp, 0),
        last_update_timestamp=0,
        partitions=frozenset(T0._replace(partition=partition.partition) for partition in metadata.partitions),
    )


@pytest.mark.parametrize(("key", "value"), GOLDEN)
def test_kafkas_records_are_read_and_written_again_byte_for_byte(key: bytes, value: bytes) -> None:
    record = decode_record(memoryview(key), memoryview(value))
    assert record is not None

    assert record.metadata is not None
    if TopicPartition("transaction_v1_life-t", 2) in record.metadata.partitions:
        # Kafka writes partitions in the order of a hash table: the same, in another order.
        again = decode_record(*encode_record(record, 2))
        assert again == record
        return
    version = 0 if value.startswith(b"\0\0") else 2

    assert (key, value) == encode_record(record, version)


def test_a_life_by_version_2_writes_what_kafka_wrote() -> None:
    driven = DrivenShard()
    driven.init("a")
    for is_commit in (False, True, False, False):
        epoch = driven.metadata("a").producer_epoch
        producer = ProducerIdentity(driven.metadata("a").producer_id, epoch)
        if epoch in (1, 2):
            driven.add("a", producer, T0)
        driven.end("a", producer, is_commit=is_commit)
        driven.write_all()
    metadata = driven.metadata("a")
    driven.init("a", expected=ProducerIdentity(metadata.producer_id, metadata.producer_epoch))
    written = [bare(record.metadata) for record in driven.harness.records if record.metadata is not None]

    assert life("transaction_v2_life-id") == written


def test_a_life_under_transaction_version_0_writes_what_kafka_wrote() -> None:
    driven = DrivenShard(version=0)
    driven.init("a")
    producer = ProducerIdentity(driven.metadata("a").producer_id, 0)
    driven.add("a", producer, T0, version=0)
    driven.end("a", producer, is_commit=True, version=0)
    driven.write_all()
    driven.add("a", producer, T0, version=0)
    driven.init("a")
    driven.write_all()
    written = [bare(record.metadata) for record in driven.harness.records if record.metadata is not None]

    assert life("tv0-id") == written


METADATA = st.builds(
    TransactionMetadata,
    transactional_id=st.text(min_size=1),
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
    previous_producer_id=st.integers(-1, 2**63 - 1),
    next_producer_id=st.integers(-1, 2**63 - 1),
    timeout_ms=st.integers(1, 2**31 - 1),
    state=st.sampled_from([state for state in PREVIOUS_STATES if state is not TransactionState.EMPTY]),
    partitions=st.frozensets(st.builds(TopicPartition, st.text(min_size=1, max_size=5), st.integers(0, 99))),
    start_timestamp=st.integers(-1, 2**63 - 1),
    last_update_timestamp=st.integers(-1, 2**63 - 1),
    client_version=st.sampled_from([0, 2]),
)


@given(metadata=METADATA)
def test_what_is_written_is_read(metadata: TransactionMetadata) -> None:
    record = TransactionRecord(metadata.transactional_id, metadata)

    assert record == decode_record(*encode_record(record, 2))


def test_a_tombstone_removes() -> None:
    key, value = encode_record(TransactionRecord("a", None), 2)
    assert value is None

    assert TransactionRecord("a", None) == decode_record(key, value)


def test_records_of_later_versions_are_left_alone() -> None:
    key, value = GOLDEN[0]
    assert decode_record(b"\0\1" + key[2:], value) is None
    assert decode_record(key, b"\0\2" + value[2:]) is None


KEY, VALUE = GOLDEN[0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", VALUE),
        (KEY[:1], VALUE),
        (KEY[:-1], VALUE),
        (KEY + b"\0", VALUE),
        (KEY, b""),
        (KEY, VALUE[:-1]),
        (KEY, VALUE + b"\0"),
        (KEY, VALUE[:16] + b"\x06" + VALUE[17:]),
        (KEY, VALUE[:16] + b"\x09" + VALUE[17:]),
    ],
)
def test_what_is_no_record_is_told_as_corrupt(key: bytes, value: bytes) -> None:
    with pytest.raises(CorruptionError):
        decode_record(key, value)


@given(golden=st.sampled_from(GOLDEN), data=st.data())
def test_whatever_a_disk_gives_is_a_record_or_corrupt(golden: tuple[bytes, bytes], data: st.DataObject) -> None:
    key, value = (bytearray(part) for part in golden)
    for part in (key, value):
        for position in data.draw(st.lists(st.integers(0, len(part) - 1), max_size=3)):
            part[position] = data.draw(st.integers(0, 255))
    try:
        record = decode_record(memoryview(key), memoryview(value))
    except CorruptionError:
        return

    assert record is None or record.metadata is not None
