"""What clients see of a topic, whatever keeps it and whatever cleans it."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException

from odradek.kernel.machine.clock import SystemClock

from .conftest import Houses, opened
from .house import CODECS, SPEC, House, Record, numbered, send, values_of
from .table import COMBINATIONS, Combination

SMALL = "1000"
"""As `internal.segment.bytes`: a handful of records each."""


def test_records_of_every_codec_are_read_hot_and_cold(house: House, combination: Combination) -> None:
    topic = house.topic(combination, internal_segment_bytes="5000")
    written: list[Record] = []
    for codec in CODECS:
        records = numbered(20, len(written), size_bytes=200)
        house.produce(topic, records, compression_type=codec, linger_ms=20)
        written += records
    hot = house.consume(topic)
    house.cool(topic)

    first = combination.first_offset
    assert list(enumerate(written, first)) == hot
    assert house.consume(topic) == hot
    assert house.consume(topic, first + 33) == hot[33:]


@pytest.mark.parametrize("refused", [each for each in COMBINATIONS if not each.is_served], ids=str)
def test_replicas_vote_only_where_directories_can_be_told_apart(refused: Combination, houses: Houses) -> None:
    house = opened(refused.election, refused.storage, houses)
    with pytest.raises(KafkaException) as caught:
        house.topic(refused)

    assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG
    assert f"odradek.storage is '{refused.storage.name}', which has none" in caught.value.args[0].str()


def test_transactions_hide_what_was_aborted(house: House, combination: Combination) -> None:
    topic = house.topic(combination)
    producer = house.producer(transactional_id=topic)
    producer.init_transactions()
    for number, is_kept in enumerate((True, False, True)):
        producer.begin_transaction()
        send(producer, topic, numbered(3, number * 3))
        if is_kept:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.begin_transaction()
    send(producer, topic, numbered(1, 9))
    committed, all_there = house.consume(topic, is_committed=True), house.consume(topic)
    producer.abort_transaction()

    first = combination.first_offset
    assert [offset - first for offset, _ in committed] == [0, 1, 2, 8, 9, 10]
    assert values_of(all_there) == [record.value for record in numbered(10)]
    assert house.consume(topic, is_committed=True) == committed


def test_what_was_acknowledged_is_there_after_a_restart(house: House, combination: Combination) -> None:
    topic = house.topic(combination, internal_segment_bytes="2000")
    records = numbered(30, size_bytes=100)
    house.produce(topic, records[:20], batch_size=1)
    before = house.consume(topic)
    house.restart()
    kept = before if combination.storage.survives else []
    house.produce(topic, records[20:])
    found = house.consume(topic)

    assert found[: len(kept)] == kept
    assert values_of(found[len(kept) :]) == [record.value for record in records[20:]]
    start, end = house.bounds(topic)
    assert [offset for offset, _ in found[len(kept) :]] == [*range(end - 10, end)]
    # Each leader that is voted for begins with a record of its own; at least one was, after the restart.
    terms = end - len(kept) - 10
    assert (start, terms > 1) == (0, True) if combination.first_offset else (start, terms) == (0, 0)


def test_records_are_deleted_up_to_an_offset_where_the_policy_deletes(house: House, combination: Combination) -> None:
    topic = house.topic(combination)
    house.produce(topic, numbered(20), batch_size=1)
    seventh, end = combination.first_offset + 7, combination.first_offset + 20
    if not combination.deletes:
        with pytest.raises(KafkaException) as caught:
            house.delete_records(topic, seventh)
        assert caught.value.args[0].code() == KafkaError.POLICY_VIOLATION
        assert house.bounds(topic) == (0, end)
        return
    assert house.delete_records(topic, seventh) == seventh
    found = house.consume(topic, seventh)

    assert [offset for offset, _ in found] == list(range(seventh, end))
    assert house.bounds(topic) == (seventh, end)
    with pytest.raises(KafkaException) as refused:
        house.consume(topic, 3)
    assert refused.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


def test_old_segments_go_by_size_where_the_policy_deletes(house: House, combination: Combination) -> None:
    topic = house.topic(combination, internal_segment_bytes=SMALL, retention_bytes="3000")
    house.produce(topic, numbered(60, size_bytes=100), batch_size=1)
    if combination.deletes:
        house.until(lambda: house.bounds(topic)[0] > 0)
    before, _ = house.bounds(topic)
    offsets = [offset for offset, _ in house.consume(topic, OFFSET_BEGINNING)]
    start, end = house.bounds(topic)

    first = combination.first_offset
    assert (end, before > 0) == (first + 60, combination.deletes)
    assert max(before, first) <= offsets[0] <= max(start, first)  # more may go while it is read
    assert offsets == list(range(offsets[0], end))


def test_of_each_key_the_newest_record_stays_where_the_policy_compacts(house: House, combination: Combination) -> None:
    topic = house.topic(combination, internal_segment_bytes=SMALL, min_cleanable_dirty_ratio="0.01", flush_messages="1")
    records = [Record(b"key %d" % (n % 5), b"%d " % n + b"x" * 100, 1_700_000_000_000 + n) for n in range(60)]
    house.produce(topic, records, batch_size=1)
    everything = list(enumerate(records, combination.first_offset))
    if combination.compacts:
        house.until(lambda: len(house.consume(topic, OFFSET_BEGINNING)) < 20)
    found = house.consume(topic, OFFSET_BEGINNING)
    newest = {record.key: record.value for record in records}

    assert {record.key: record.value for _, record in found} == newest
    assert set(found) <= set(everything)
    assert [offset for offset, _ in found] == sorted(offset for offset, _ in found)
    assert (len(found) < 20) == combination.compacts
    assert house.bounds(topic) == (0, combination.first_offset + 60)


def test_times_find_offsets(house: House, combination: Combination) -> None:
    topic = house.topic(combination, internal_segment_bytes=SMALL)
    begin_ms = SystemClock().now_ms() + 10_000  # later than what a leader writes itself
    house.produce(topic, numbered(30, size_bytes=100, begin_ms=begin_ms), batch_size=1)
    house.cool(topic)
    first = combination.first_offset
    asked = {
        0: 0,
        begin_ms: first,
        begin_ms + 1: first + 1,
        begin_ms + 12_000: first + 12,
        begin_ms + 28_999: first + 29,
        begin_ms + 29_001: -1,
    }
    found = {at_ms: house.offset_of(topic, SPEC.for_timestamp(at_ms)) for at_ms in asked}

    assert asked == found
    assert house.offset_of(topic, SPEC.max_timestamp()) == first + 29


def test_new_settings_act_on_a_living_topic(house: House, combination: Combination) -> None:
    topic = house.topic(combination)
    house.produce(topic, numbered(10), batch_size=1)
    house.alter(topic, max_message_bytes="1000", internal_segment_bytes="5000")
    with pytest.raises(KafkaException) as refused:
        house.produce(topic, [Record(b"large", b"x" * 2000)])
    house.alter(topic, max_message_bytes="100000")
    house.produce(topic, [Record(b"large", b"x" * 2000)])

    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    first = combination.first_offset
    assert values_of(house.consume(topic, first + 10)) == [b"x" * 2000]
    if combination.deletes:
        house.alter(topic, retention_ms="1")
        house.until(lambda: house.bounds(topic) == (first + 11, first + 11))
