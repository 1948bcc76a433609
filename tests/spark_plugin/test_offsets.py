"""Offsets as texts: every form, read and written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.spark_plugin.errors import OptionError
from odradek.spark_plugin.offsets import (
    compact_text,
    from_json_object,
    json_object,
    json_object_with_start,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
    start_in,
    text,
)
from odradek.spark_plugin.ranges import TopicPartition

TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=8)
PARTITIONS = st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1))
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 2**63 - 1), max_size=20)


def tp(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"orders":{"0":23,"1":-1},"b":{"0":-2}}', {"orders-0": 23, "orders-1": -1, "b-0": -2}),
        (' { "a" : { "10" : 0 } } ', {"a-10": 0}),
        ('{"a":{"0":"42"}}', {"a-0": 42}),
        ('{"a":{"0":9223372036854775807}}', {"a-0": 2**63 - 1}),
    ],
)
def test_offsets_are_read(value: str, expected: dict[str, int]) -> None:
    assert parse_offsets("startingOffsets", value) == {tp(name): offset for name, offset in expected.items()}


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("word", "no JSON"),
        ("", "no JSON"),
        ('{"a":{"0":1}', "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "no JSON object"),
        ("17", "no JSON object"),
        ("{}", "names no partition"),
        ('{"a":{}}', "names no partition"),
        ('{"a":17}', "no object"),
        ('{"a":[0,1]}', "no object"),
        ('{"a":{"x":1}}', "'x' is no partition"),
        ('{"a":{"-1":1}}', "'-1' is no partition"),
        ('{"a":{"2147483648":1}}', "is no partition"),
        ('{"a":{"0":1.5}}', "1.5 of a-0 is no whole number"),
        ('{"a":{"0":true}}', "true of a-0 is no whole number"),
        ('{"a":{"0":null}}', "null of a-0 is no whole number"),
        ('{"a":{"0":"1_0"}}', "is no whole number"),
        ('{"a":{"0":-3}}', "-3 of a-0 is out of range: allowed are 0 and more, -1 (latest) and -2 (earliest)"),
        ('{"a":{"0":9223372036854775808}}', "out of range"),
        ('{"a":{"0":1,"0":2}}', "is given twice"),
        ('{"a":{"0":1,"00":2}}', "a-0 is given twice"),
        ('{"a":{"0":1},"a":{"1":2}}', "is given twice"),
    ],
)
def test_bad_offsets_are_refused_with_the_form_and_the_value(value: str, what: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse_offsets("startingOffsets", value)

    message = str(refused.value)

    assert refused.value.option == "startingOffsets"
    assert 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got ' + value in message
    assert what in message


@pytest.mark.parametrize("value", ['{"a":{"0":-1}}', '{"a":{"0":-2}}'])
def test_a_timestamp_is_not_negative_for_kafka_would_take_it_for_an_offset(value: str) -> None:
    with pytest.raises(OptionError, match="out of range: allowed are 0 and more"):
        parse_timestamps("startingOffsetsByTimestamp", value)


def test_timestamps_are_read() -> None:
    assert parse_timestamps("x", '{"a":{"0":1700000000000}}') == {tp("a-0"): 1_700_000_000_000}


def test_partitions_are_read_in_order() -> None:
    assert parse_partitions("assign", '{"b":[1,0],"a":[2]}') == (tp("a-2"), tp("b-0"), tp("b-1"))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("nope", "no JSON"),
        ('{"a":"0"}', "no list"),
        ('{"a":{"0":1}}', "no list"),
        ('{"a":["0"]}', "'0' is no partition"),
        ('{"a":[-1]}', "-1 is no partition"),
        ('{"a":[true]}', "True is no partition"),
        ('{"a":[]}', "names no partition"),
        ("{}", "names no partition"),
        ('{"a":[0,0]}', "twice"),
    ],
)
def test_bad_partitions_are_refused_with_the_form_and_the_value(value: str, what: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse_partitions("assign", value)

    assert 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got ' + value in str(refused.value)
    assert what in str(refused.value)


def test_the_text_of_a_checkpoint_is_canonical() -> None:
    offsets = {tp("b-10"): 3, tp("b-9"): 1, tp("B-0"): 7, tp("a.x-0"): 0}

    assert text(offsets) == '{"B": {"0": 7}, "a.x": {"0": 0}, "b": {"9": 1, "10": 3}}'
    assert compact_text(offsets) == '{"B":{"0":7},"a.x":{"0":0},"b":{"9":1,"10":3}}'


def test_the_end_of_a_first_batch_carries_where_it_began() -> None:
    end, start = {tp("a-0"): 100, tp("a-1"): 5}, {tp("a-0"): 90, tp("a-1"): 5}
    value = json.loads(json.dumps(json_object_with_start(end, start)))

    assert json.dumps(value) == '{"a": {"0": 100, "1": 5}, "@start": {"a": {"0": 90, "1": 5}}}'
    assert (from_json_object(value), start_in(value)) == (end, start)
    assert start_in(json_object(end)) is None


def test_offsets_of_spark_s_kafka_connector_are_read() -> None:
    assert from_json_object(json.loads('{"T":{"0":300,"1":300}}')) == {tp("T-0"): 300, tp("T-1"): 300}


@pytest.mark.parametrize(
    "value",
    ['{"a":7}', '{"a":{"x":7}}', '{"a":{"0":-1}}', '{"a":{"0":"7"}}', '{"a":{"0":true}}', '{"offset":[]}'],
)
def test_offsets_of_another_source_are_refused(value: str) -> None:
    with pytest.raises(OptionError, match="the checkpoint holds offsets of another source"):
        from_json_object(json.loads(value))


@given(OFFSETS)
def test_what_is_written_is_read_again(offsets: dict[TopicPartition, int]) -> None:
    assert from_json_object(json.loads(text(offsets))) == offsets
    if offsets:
        assert parse_offsets("startingOffsets", compact_text(offsets)) == offsets


@given(OFFSETS, st.permutations(range(20)))
def test_the_text_does_not_depend_on_the_order_in_which_offsets_were_found(
    offsets: dict[TopicPartition, int], order: list[int]
) -> None:
    items = [list(offsets.items())[place] for place in order if place < len(offsets)]

    assert text(dict(items)) == text(offsets)
