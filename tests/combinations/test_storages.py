"""What all storages have in common, whatever cleans them: the same bytes, and the same end after a truncation."""

from __future__ import annotations

import itertools
import random
import tomllib
from pathlib import Path

import pytest

from odradek.kernel.api import NO_LIMIT, LogConfig, PartitionLog, read_header
from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.partitions.recovery import rebuild_producers, replay
from odradek.kernel.records.batch import assign_offset_and_epoch
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.testing.contracts.storage_base import PARTITION, make_context, read_bytes

from ..broker.broker_process import Client
from ..broker.test_process import produce
from .conftest import Houses, opened
from .house import House, Record, numbered, send
from .table import COMBINATIONS, ELECTIONS, STORAGES, Combination, Storage

ALONE = ELECTIONS[0]

EXPIRATION_MS = 86_400_000
CONFIG = LogConfig(segment_bytes=2_000, segment_index_bytes=240, index_interval_bytes=200)


def test_tox_has_an_environment_for_each_combination() -> None:
    base = tomllib.loads((Path(__file__).parents[2] / "tox.toml").read_text())["env_base"]["combination"]
    named = ["-".join(("combination", *chosen)) for chosen in itertools.product(*base["factors"])]

    assert [str(each) for each in COMBINATIONS] == named


def batches_of_every_kind() -> list[bytes]:
    """Return batches of all codecs, every second one of an idempotent producer."""
    source, made, sequence = random.Random(7), [], 0
    for number in range(40):
        codec = list(CompressionType)[number % len(CompressionType)]
        builder = BatchBuilder(compression=codec)
        if number % 2:
            builder = BatchBuilder(compression=codec, producer_id=5, producer_epoch=0, base_sequence=sequence)
            sequence += 3
        for each in range(3):
            value = bytes(source.choices(b"abc", k=100))
            builder.append(b"%d-%d" % (number, each), value, timestamp=1_700_000_000_000 + number * 10 + each)
        made.append(bytes(builder.build()))
    return made


def fetch_bytes(client: Client, topic: str) -> bytes:
    """Read a whole topic as the broker sends it."""
    found, offset = b"", 0
    while True:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[part])])
        response = client.ask(request, 11)
        assert isinstance(response, FetchResponse)
        records = response.responses[0].partitions[0].records
        if not records:
            return found
        assert type(records) is memoryview
        position = 0
        while position < len(records):
            header = read_header(records, position)
            position, offset = position + header.length_bytes, header.next_offset
        found += bytes(records)


def filled(storage: Storage, houses: Houses) -> tuple[House, str]:
    """Return a topic with batches of every kind, and one with transactions behind them."""
    house = opened(ALONE, storage, houses)
    topic = house.topic(Combination(ALONE, storage, "delete"), internal_segment_bytes="3000")
    with Client(house.leader_of(topic)) as client:
        for batch in batches_of_every_kind():
            assert produce(client, topic, batch)[0] == 0
    producer = house.producer(transactional_id=topic)
    producer.init_transactions()
    for number, is_kept in enumerate((False, True, False)):
        producer.begin_transaction()
        send(producer, topic, numbered(2, number * 2))
        (producer.commit_transaction if is_kept else producer.abort_transaction)()
    return house, topic


def test_every_storage_gives_the_same_bytes_hot_and_cold(houses: Houses) -> None:
    sent: dict[str, tuple[bytes, bytes]] = {}
    for storage in STORAGES:
        house, topic = filled(storage, houses)
        with Client(house.leader_of(topic)) as client:
            hot = fetch_bytes(client, topic)
            house.cool(topic)
            assert fetch_bytes(client, topic) == hot
        ends = 0
        for batch in batches_of_every_kind():
            assert hot[ends + 16 : ends + len(batch)] == batch[16:]  # behind offset, length and epoch: as it came
            ends += len(batch)
        sent[storage.name] = hot[:ends], hot[ends:]
    expected, transactions = sent["segment"]

    assert {name: plain == expected for name, (plain, _) in sent.items()} == dict.fromkeys(sent, True)
    assert {name: len(rest) for name, (_, rest) in sent.items()} == dict.fromkeys(sent, len(transactions))


@pytest.mark.parametrize("is_committed", [False, True], ids=["read_uncommitted", "read_committed"])
def test_librdkafka_reads_the_same_records_from_every_storage(houses: Houses, is_committed: bool) -> None:
    read: dict[str, list[tuple[int, Record]]] = {}
    for storage in STORAGES:
        house, topic = filled(storage, houses)
        read[storage.name] = house.consume(topic, is_committed=is_committed)
        house.cool(topic)
        assert house.consume(topic, is_committed=is_committed) == read[storage.name]

    assert {name: found == read["segment"] for name, found in read.items()} == dict.fromkeys(read, True)
    assert len(read["segment"]) == 3 * 40 + (2 if is_committed else 6)


def append_all(log: PartitionLog, batches: list[bytes]) -> list[bytes]:
    """Append batches as a leader does; return them with their offsets."""
    written = []
    for batch in map(bytearray, batches):
        header = read_header(batch)
        start = log.log_end_offset
        assign_offset_and_epoch(batch, header, start, 1)
        log.append(batch, start, start + header.last_offset_delta, header.max_timestamp)
        log.write_pending()
        written.append(bytes(batch))
    return written


@pytest.mark.parametrize("storage", [each for each in STORAGES if each.make_engine], ids=lambda each: each.name)
def test_a_truncated_log_goes_on_as_if_the_rest_had_never_been(storage: Storage, tmp_path: Path) -> None:
    assert storage.make_engine is not None
    for cut in (0, 1, 50, 60, 119, 120):
        engine = storage.make_engine(make_context(tmp_path / str(cut)))
        engine.start()
        log = engine.open_log(PARTITION, CONFIG)
        log.assign_epoch(1, 0)
        written = append_all(log, batches_of_every_kind())
        log.truncate_to(cut)
        kept = cut // 3
        producers, expected = ProducerStateTable(EXPIRATION_MS), ProducerStateTable(EXPIRATION_MS)
        rebuild_producers(log, producers, 0)
        replay(log, expected, 0)

        assert producers.snapshot() == expected.snapshot()
        assert [bytes(batch) for batch in log.batches(0)] == written[:kept]
        assert log.log_end_offset == kept * 3
        assert log.batch_for_timestamp(1_700_000_000_000 + kept * 10, 0) is None
        again = append_all(log, batches_of_every_kind()[:2])
        assert read_bytes(log.read(kept * 3, NO_LIMIT >> 1)) == b"".join(again)
        engine.close({})
