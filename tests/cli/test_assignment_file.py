"""The file of a reassignment: what is read of Kafka's, what is written, what is refused."""

from __future__ import annotations

import json

import pytest

from odradek.cli.placing.assignments import one_line, parse
from odradek.kernel.errors import ConfigError
from odradek.kernel.types import TopicPartition

OF_KAFKA = (
    '{"version":1,"partitions":[{"topic":"foo","partition":1,"replicas":[1,2],"log_dirs":["any","any"]},'
    '{"topic":"foo","partition":0,"replicas":[3,2],"log_dirs":["any","any"]}]}'
)
"""As kafka-reassign-partitions 4.3 --generate prints it."""


def item(**changes: object) -> str:
    partition = {"topic": "t", "partition": 0, "replicas": [1, 2], **changes}
    return json.dumps({"version": 1, "partitions": [partition]})


def test_what_kafkas_tool_writes_is_read() -> None:
    assert parse(OF_KAFKA, "f") == {TopicPartition("foo", 1): (1, 2), TopicPartition("foo", 0): (3, 2)}


def test_what_is_written_is_read_again_by_topic_and_number() -> None:
    text = one_line({TopicPartition("t", 10): (2, 1), TopicPartition("t", 9): (1,)})

    assert text == (
        '{"version":1,"partitions":[{"topic":"t","partition":9,"replicas":[1]},'
        '{"topic":"t","partition":10,"replicas":[2,1]}]}'
    )
    assert one_line(parse(text, "f")) == text


def test_a_file_that_names_nothing_is_one() -> None:
    assert parse('{"version":1,"partitions":[]}', "f") == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "no JSON"),
        ("[]", 'expected {"version":1'),
        ('{"version":2,"partitions":[]}', "version 2 is not known"),
        ('{"version":1,"partitions":[7]}', "partitions[0]"),
        (item(topic=""), '"topic" is no name'),
        (item(partition=-1), '"partition" is no number'),
        (item(partition=True), '"partition" is no number'),
        (item(replicas=[]), '"replicas" is no list'),
        (item(replicas=["1"]), '"replicas" is no list'),
        (item(replicas=[1, 1]), "a broker has one replica of a partition: [1, 1]"),
        (item(log_dirs=["any", "/data"]), "certain log directories cannot be asked for here"),
        (OF_KAFKA.replace('"partition":0', '"partition":1'), "foo-1 is named twice"),
    ],
)
def test_what_is_no_such_file_is_refused_with_the_place(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse(text, "plan.json")

    assert told in str(refusal.value)
    assert "plan.json" in str(refusal.value)
