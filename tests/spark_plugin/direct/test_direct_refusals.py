"""What must not be read, or cannot: brokers are asked, with one warning, or `readFrom=segments` says why not."""

from __future__ import annotations

import uuid
from pathlib import Path

import attrs
import pytest

from odradek.kernel.records.batch import CorruptRecordsError, iterate_batches
from odradek.spark_plugin.direct import BrokerPiece, DirectReadError, PartitionFacts, SegmentPiece, TierPiece
from odradek.spark_plugin.direct.batches import Visibility
from odradek.spark_plugin.direct.opening import open_piece
from odradek.spark_plugin.direct.pieces import Owner
from odradek.spark_plugin.direct.tier import store_of
from odradek.spark_plugin.ranges import OffsetRange
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault

from .log_kit import (
    CLUSTER_ID,
    NODE_ID,
    TOPIC_ID,
    TOPIC_PARTITION,
    Log,
    Tier,
    plan,
    read_pieces,
    settings_for,
    sources_for,
    write_data_dir,
)


@pytest.fixture
def data_dir(tmp_path: Path, log: Log) -> Path:
    write_data_dir(tmp_path / "data", log)
    return tmp_path / "data"


@pytest.fixture
def tier(log: Log) -> Tier:
    made = Tier(log)
    made.send([0, 1, 2])
    return made


def _told(data_dir: Path, facts: PartitionFacts, *, is_read_committed: bool = True) -> str:
    """Return the one warning that comes when brokers are asked for everything."""
    wanted = OffsetRange(*TOPIC_PARTITION, 0, facts.last_stable_offset)
    sources, warnings = sources_for(settings_for(data_dir))
    for _ in range(2):
        pieces = sources.plan_pieces([wanted], {TOPIC_PARTITION: facts}, is_read_committed=is_read_committed)

        assert pieces == [[BrokerPiece(wanted)]]
    strict, _ = sources_for(settings_for(data_dir, is_required=True))
    with pytest.raises(DirectReadError, match="readFrom=segments"):
        strict.plan_pieces([wanted], {TOPIC_PARTITION: facts}, is_read_committed=is_read_committed)
    [warning] = warnings
    return warning


def test_a_directory_of_another_cluster_is_not_read(data_dir: Path, log: Log) -> None:
    warning = _told(data_dir, attrs.evolve(log.facts(), owner=Owner("another", NODE_ID)))

    assert f"belongs to the cluster {CLUSTER_ID}, the brokers to another" in warning


def test_a_directory_of_a_follower_is_not_read(data_dir: Path, log: Log) -> None:
    warning = _told(data_dir, attrs.evolve(log.facts(), owner=Owner(CLUSTER_ID, 6)))

    assert f"belongs to node {NODE_ID}, and node 6 leads" in warning


def test_a_topic_made_anew_is_not_taken_for_the_old_one(data_dir: Path, log: Log) -> None:
    assert "is another topic of that name" in _told(data_dir, attrs.evolve(log.facts(), topic_id=uuid.UUID(int=8)))


def test_a_directory_that_is_none_is_told(tmp_path: Path, log: Log) -> None:
    assert "is no log directory of a broker" in _told(tmp_path, log.facts())


def test_a_copy_that_ends_before_the_high_watermark_says_not_how_transactions_ended(data_dir: Path, log: Log) -> None:
    later = attrs.evolve(log.facts(), high_watermark=log.end_offset + 1)

    assert f"ends at offset {log.end_offset}, and the high watermark is {log.end_offset + 1}" in _told(data_dir, later)


def test_a_copy_is_read_as_far_as_it_goes_when_everything_is_shown(data_dir: Path, log: Log) -> None:
    grown = attrs.evolve(log, last_stable_offset=log.end_offset + 5, end_offset=log.end_offset + 5)
    sources, warnings = sources_for(settings_for(data_dir))
    pieces = plan(sources, grown, 0, grown.end_offset, is_read_committed=False)

    assert warnings == []
    assert [type(piece) for piece in pieces] == [SegmentPiece] * 4 + [BrokerPiece]
    assert pieces[-1].range.start == log.end_offset


def test_a_swap_that_a_crash_left_is_waited_for_no_longer_than_some_looks(data_dir: Path, log: Log) -> None:
    (data_dir / "orders-3" / f"{0:020d}.log.swap").write_bytes(b"")

    assert "changes faster than it can be read" in _told(data_dir, log.facts())


def test_a_damaged_transaction_index_is_told(data_dir: Path, log: Log) -> None:
    path = next(iter(sorted((data_dir / "orders-3").glob("*.txnindex"))))
    path.write_bytes(bytes(34))

    assert "a transaction from 0 to 0" in _told(data_dir, log.facts())


def test_partitions_that_nobody_knows_are_brokers_business(data_dir: Path, log: Log) -> None:
    sources, _ = sources_for(settings_for(data_dir))
    wanted = OffsetRange(*TOPIC_PARTITION, 0, 5)

    assert sources.plan_pieces([wanted], {}, is_read_committed=True) == [[BrokerPiece(wanted)]]


def test_what_is_deleted_is_not_read_though_it_is_in_the_file(data_dir: Path, log: Log) -> None:
    wanted = OffsetRange(*TOPIC_PARTITION, 0, log.last_stable_offset)
    sources, _ = sources_for(settings_for(data_dir))
    facts = {TOPIC_PARTITION: attrs.evolve(log.facts(), log_start_offset=3)}
    [pieces] = sources.plan_pieces([wanted], facts, is_read_committed=True)

    assert pieces[0] == BrokerPiece(OffsetRange(*TOPIC_PARTITION, 0, 3))
    assert isinstance(pieces[1], SegmentPiece)


# -- the store ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [StoreFault.UNREACHABLE, StoreFault.WRONG_CREDENTIALS, StoreFault.NO_BUCKET])
def test_a_store_that_fails_is_told_once(tier: Tier, log: Log, fault: StoreFault) -> None:
    store = FaultyObjectStore(tier.store, fail_at=1, fault=fault)
    store.fault = fault
    sources, warnings = sources_for(settings_for(has_store=True), store)
    for _ in range(2):
        pieces = plan(sources, log, 0, log.last_stable_offset)

        assert {type(piece) for piece in pieces} == {BrokerPiece}
    assert len(warnings) == 1
    assert "brokers are asked for what the tiered store may have" in warnings[0]


def test_a_store_of_another_cluster_is_not_read(tier: Tier, log: Log) -> None:
    sources, warnings = sources_for(settings_for(has_store=True), tier.store)
    wanted = OffsetRange(*TOPIC_PARTITION, 0, log.last_stable_offset)
    facts = {TOPIC_PARTITION: attrs.evolve(log.facts(), owner=Owner("another", NODE_ID))}

    assert sources.plan_pieces([wanted], facts, is_read_committed=True) == [[BrokerPiece(wanted)]]
    assert f"holds the tiers of the cluster {CLUSTER_ID}, the brokers belong to another" in warnings[0]


def test_an_empty_bucket_is_told(log: Log) -> None:
    sources, warnings = sources_for(settings_for(has_store=True), MemoryObjectStore())

    assert {type(piece) for piece in plan(sources, log, 0, log.last_stable_offset)} == {BrokerPiece}
    assert "is the prefix right?" in warnings[0]


def test_a_tier_that_knows_more_than_the_brokers_is_not_theirs(tier: Tier, log: Log) -> None:
    sources, warnings = sources_for(settings_for(has_store=True), tier.store)
    wanted = OffsetRange(*TOPIC_PARTITION, 0, 2)
    facts = {TOPIC_PARTITION: PartitionFacts(TOPIC_ID, 2, 2, 0, Owner(CLUSTER_ID, NODE_ID))}

    assert sources.plan_pieces([wanted], facts, is_read_committed=True) == [[BrokerPiece(wanted)]]
    assert "beyond the high watermark 2" in warnings[0]


def test_a_first_object_that_is_none_is_met_by_the_planner(tier: Tier, log: Log) -> None:
    tier.store.put(tier.name_of(0), b"<html>please log in</html>" * 10)
    sources, warnings = sources_for(settings_for(has_store=True), tier.store)

    assert {type(piece) for piece in plan(sources, log, 0, log.last_stable_offset)} == {BrokerPiece}
    assert "does not begin with a batch of records" in warnings[0]


def test_a_damaged_index_is_met_by_the_planner(tier: Tier, log: Log) -> None:
    tier.store.put(tier.name_of(0, "index"), b"\1" * 16)
    sources, warnings = sources_for(settings_for(has_store=True), tier.store)

    assert {type(piece) for piece in plan(sources, log, 1, log.last_stable_offset)} == {BrokerPiece}
    assert "it was damaged" in warnings[0]


def test_a_hole_between_the_tier_and_the_disk_is_the_brokers(tmp_path: Path, log: Log, tier: Tier) -> None:
    write_data_dir(tmp_path / "data", log, first=3)
    del tier.stored[1:]
    tier.put_manifest()
    sources, _ = sources_for(settings_for(tmp_path / "data", has_store=True), tier.store)
    pieces = plan(sources, log, 0, log.last_stable_offset, is_read_committed=False)
    expected = [
        (TierPiece, log.segments[1].base_offset),
        (BrokerPiece, log.segments[3].base_offset),
        (SegmentPiece, log.last_stable_offset),
    ]

    assert [(type(piece), piece.range.end) for piece in pieces] == expected
    read = list(read_pieces(plan(sources, log, 0, log.last_stable_offset), log, tier.store))
    assert read == log.rows(0, log.last_stable_offset, is_read_committed=True)


def test_a_url_that_is_none_is_told(log: Log) -> None:
    sources, warnings = sources_for(settings_for())
    sources = type(sources)(settings_for(store_url="ftp://x"), open_store=store_of, warn=warnings.append)

    assert {type(piece) for piece in plan(sources, log, 0, log.last_stable_offset)} == {BrokerPiece}
    assert "is no URL of a store" in warnings[0]


# -- damage ------------------------------------------------------------------------------------------------------------


def _tier_pieces(tier: Tier, log: Log, start: int = 0) -> list[TierPiece]:
    sources, _ = sources_for(settings_for(has_store=True), tier.store)
    pieces = plan(sources, log, start, log.last_stable_offset, is_read_committed=False)
    return [piece for piece in pieces if isinstance(piece, TierPiece)]


def test_no_bit_of_a_small_object_may_change_unseen(tier: Tier, log: Log) -> None:
    piece = _tier_pieces(tier, log)[1]
    name = tier.name_of(1)
    data = tier.store.get(name)
    for number in range(0, len(data), 7):
        tier.store.put(name, data[:number] + bytes([data[number] ^ 4]) + data[number + 1 :])
        with pytest.raises(CorruptRecordsError):
            list(open_piece(piece, open_store=lambda _: tier.store))


def test_an_object_that_is_cut_off_is_damaged(tier: Tier, log: Log) -> None:
    name = tier.name_of(1)
    data = tier.store.get(name)
    whole = _tier_pieces(tier, log)[1]
    part = _tier_pieces(tier, log, whole.range.start + 1)[0]
    tier.store.put(name, data[:-1])
    for piece in (whole, part):
        with pytest.raises(CorruptRecordsError):
            list(open_piece(piece, open_store=lambda _: tier.store))


def test_a_batch_that_is_hidden_has_to_be_whole(data_dir: Path, log: Log) -> None:
    sources, _ = sources_for(settings_for(data_dir))
    piece = next(each for each in plan(sources, log, 0, log.last_stable_offset) if getattr(each, "aborted", ()))
    assert isinstance(piece, SegmentPiece)
    path = data_dir / "orders-3" / f"{piece.base_offset:020d}.log"
    data = bytearray(path.read_bytes())
    hidden = Visibility(piece.aborted)
    position, header = next(each for each in iterate_batches(data) if hidden.hides(each[1]))
    data[position + header.length_bytes - 1] ^= 1
    path.write_bytes(data)

    with pytest.raises(CorruptRecordsError, match=f"batch at offset {header.base_offset}.*checksum"):
        list(open_piece(piece))


def test_a_closed_segment_that_ends_within_a_batch_is_damaged(data_dir: Path, log: Log) -> None:
    sources, _ = sources_for(settings_for(data_dir))
    piece = plan(sources, log, 0, log.last_stable_offset)[1]
    path = data_dir / "orders-3" / f"{log.segments[1].base_offset:020d}.log"
    path.write_bytes(path.read_bytes()[:-3])

    assert isinstance(piece, SegmentPiece)
    with pytest.raises(CorruptRecordsError, match="ends within a batch"):
        list(open_piece(piece))


def test_an_index_that_lies_costs_time_and_no_record(data_dir: Path, log: Log) -> None:
    start = log.segments[1].base_offset + 4
    for path in (data_dir / "orders-3").glob("*.index"):
        data = bytearray(path.read_bytes())
        data[7::8] = bytes(byte ^ 1 for byte in data[7::8])
        path.write_bytes(data)
    sources, _ = sources_for(settings_for(data_dir))
    pieces = plan(sources, log, start, log.last_stable_offset)

    assert list(read_pieces(pieces, log)) == log.rows(start, log.last_stable_offset, is_read_committed=True)
