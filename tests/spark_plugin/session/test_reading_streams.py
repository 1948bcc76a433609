"""Spark reads topics as streams: limits, checkpoints, restarts, and a first batch that is replayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark_plugin.topic_kit import Kit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

EARLIEST = {"startingOffsets": "earliest"}


class Batches:
    """Keeps the offsets that each micro-batch brought; fails the batches that it is told to."""

    def __init__(self, *failing: int) -> None:
        self.by_number: dict[int, list[int]] = {}
        self._failing = failing

    def __call__(self, frame: DataFrame, number: int) -> None:
        if number in self._failing:
            raise RuntimeError("this batch is to fail")
        self.by_number[number] = [row.offset for row in frame.select("offset").orderBy("offset").collect()]

    @property
    def offsets(self) -> list[int]:
        return [offset for number in sorted(self.by_number) for offset in self.by_number[number]]


def logged_offsets(checkpoint: Path, number: int) -> str:
    return (checkpoint / "offsets" / str(number)).read_text().splitlines()[-1]


def test_a_stream_goes_on_where_its_checkpoint_ends(
    read_stream: Callable[..., DataFrame], run: Callable[..., StreamingQuery], kit: Kit, tmp_path: Path
) -> None:
    topic = kit.new_topic(2)
    kit.fill(topic, 30, partition=0)
    kit.fill(topic, 10, partition=1)
    first = Batches()
    query = run(read_stream(topic, {**EARLIEST, "maxOffsetsPerTrigger": 20}), first)

    assert [len(offsets) for offsets in first.by_number.values()] == [20, 20]
    assert logged_offsets(tmp_path / "checkpoint", 1) == json.dumps({topic: {"0": 30, "1": 10}})
    progress = json.loads(query.recentProgress[-1].json)["sources"][0]
    assert progress["latestOffset"] == {topic: {"0": 30, "1": 10}}

    kit.fill(topic, 5, partition=1)
    second = Batches()
    run(read_stream(topic, EARLIEST), second)

    assert second.by_number == {2: [10, 11, 12, 13, 14]}


def test_a_first_batch_from_the_latest_offset_is_replayed_as_it_was(
    read_stream: Callable[..., DataFrame], run: Callable[..., StreamingQuery], kit: Kit, tmp_path: Path
) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 40)
    starting = {"startingTimestamp": "1500000000000", "startingOffsetsByTimestampStrategy": "latest"}
    with pytest.raises(Exception, match="this batch is to fail"):
        run(read_stream(topic, starting), Batches(0))
    # What the options say now is another place: retention has taken the first records meanwhile.
    assert json.loads(logged_offsets(tmp_path / "checkpoint", 0)) == {topic: {"0": 40}, "@start": {topic: {"0": 0}}}
    kit.fill(topic, 10)

    batches = Batches()
    run(read_stream(topic, {"startingOffsets": "latest"}), batches)

    assert batches.by_number == {0: list(range(40)), 1: list(range(40, 50))}
    assert logged_offsets(tmp_path / "checkpoint", 1) == json.dumps({topic: {"0": 50}})


def test_a_first_batch_is_replayed_where_the_start_that_was_given_lacks_a_partition_by_now(
    read_stream: Callable[..., DataFrame], run: Callable[..., StreamingQuery], kit: Kit, tmp_path: Path
) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 40)
    starting = {"startingOffsets": json.dumps({topic: {"0": 10}})}
    with pytest.raises(Exception, match="this batch is to fail"):
        run(read_stream(topic, starting), Batches(0))
    kit.admin.create_partitions(topic, 2)
    kit.fill(topic, 5, partition=1)

    batches = Batches()
    run(read_stream(topic, starting), batches)

    assert batches.by_number == {0: list(range(10, 40)), 1: list(range(5))}


def test_a_start_that_lacks_a_partition_is_refused_before_the_query_has_a_batch(
    read_stream: Callable[..., DataFrame], run: Callable[..., StreamingQuery], kit: Kit, tmp_path: Path
) -> None:
    topic = kit.new_topic(2)
    with pytest.raises(Exception, match="don't match what are assigned") as caught:
        run(read_stream(topic, {"startingOffsets": json.dumps({topic: {"0": 10}})}), Batches())

    assert "Traceback" not in str(caught.value)
    assert not (tmp_path / "checkpoint" / "offsets" / "0").exists()


def test_a_stream_without_news_ends_without_a_batch(
    read_stream: Callable[..., DataFrame], run: Callable[..., StreamingQuery], kit: Kit
) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 10)
    run(read_stream(topic, EARLIEST), Batches())
    again = Batches()

    run(read_stream(topic, EARLIEST), again)

    assert again.by_number == {}


def test_ending_options_are_refused_when_a_stream_starts(
    read_stream: Callable[..., DataFrame], run: Callable[..., StreamingQuery], kit: Kit
) -> None:
    with pytest.raises(Exception, match="not valid in streaming queries") as caught:
        run(read_stream(kit.new_topic(), {"endingOffsets": "latest"}), Batches())

    text = str(caught.value)
    assert "not valid in streaming queries" in text.splitlines()[0]
    assert "Traceback" not in text
    assert "UnboundLocalError" not in text  # Spark's own, where no reader is made
