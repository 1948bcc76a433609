"""Spark writes: a batch at least once, and as a whole; a stream exactly once, through a restart in the worst moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli import main
from odradek.client import BlockingAdmin, NewTopic
from odradek.client.blocking_producer import BlockingProducer
from odradek.testing.running_broker import RunningBroker
from tests.spark_plugin.topic_kit import Kit, Row, open_kit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@pytest.fixture(scope="module")
def kit(broker: RunningBroker) -> Iterator[Kit]:
    with open_kit(broker.bootstrap) as kit:
        yield kit


def values(rows: list[Row]) -> list[int]:
    return sorted(int(row[1]) for row in rows)


def test_a_batch_is_written_with_keys_headers_and_timestamps(spark: SparkSession, kit: Kit, topic: str) -> None:
    frame = spark.sql(
        "select cast(id as string) key, cast(id * 2 as string) value, timestamp_millis(id * 1000) timestamp,"
        " array(struct('h' key, cast('x' as binary) value)) headers, id ignored from range(0, 2000, 1, 3)"
    )
    frame.write.format("odradek").mode("append").option("kafka.bootstrap.servers", kit.bootstrap).option(
        "topic", topic
    ).save()
    found = kit.consumed(topic)

    assert values(found) == [number * 2 for number in range(2_000)]
    assert all(row[5] == int(row[0]) * 1_000_000 for row in found)
    assert all([header["key"] for header in row[7]] == ["h"] for row in found)


def test_a_batch_that_fails_leaves_nothing_where_it_was_to_be_written_as_a_whole(
    spark: SparkSession, kit: Kit, topic: str
) -> None:
    frame = spark.sql(
        "select cast(id as string) value, cast(if(id = 1999, 9, id % 2) as int) partition from range(0, 2000, 1, 2)"
    )
    writer = frame.write.format("odradek").mode("append").option("topic", topic).option("exactlyOnce", "true")

    with pytest.raises(Exception, match="row 999 names partition 9 of topic"):
        writer.option("kafka.bootstrap.servers", kit.bootstrap).save()
    assert kit.consumed(topic, is_read_committed=True) == []

    whole = frame.where("partition != 9")
    whole.write.format("odradek").mode("append").option("topic", topic).option("exactlyOnce", "true").option(
        "kafka.bootstrap.servers", kit.bootstrap
    ).save()
    assert values(kit.consumed(topic, is_read_committed=True)) == list(range(1_999))


@pytest.mark.parametrize("mode", ["overwrite"])
def test_other_save_modes_are_refused(spark: SparkSession, kit: Kit, topic: str, mode: str) -> None:
    writer = spark.range(1).selectExpr("cast(id as string) value").write.format("odradek").mode(mode)

    with pytest.raises(Exception, match="Save mode Overwrite not allowed"):
        writer.option("kafka.bootstrap.servers", kit.bootstrap).option("topic", topic).save()


def write_stream(frame: DataFrame, kit: Kit, topic: str, checkpoint: Path) -> StreamingQuery:
    writer = frame.selectExpr("key", "value").writeStream.format("odradek").option("topic", topic)
    writer = writer.option("kafka.bootstrap.servers", kit.bootstrap).option("exactlyOnce", "true")
    query: StreamingQuery = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination(60)
    return query


def test_a_stream_is_written_exactly_once_through_a_restart(
    read_stream: Callable[..., Any], kit: Kit, tmp_path: Path
) -> None:
    source, target = kit.new_topic(2), kit.new_topic(2)
    kit.fill(source, 60, 0)
    kit.fill(source, 40, 1)
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 50}
    write_stream(read_stream(source, options), kit, target, tmp_path)
    before = kit.consumed(target, is_read_committed=True)

    # The driver died after its last commit, and before Spark noted it: the batch is replayed.
    last = max((tmp_path / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink()
    kit.fill(source, 10, 1)
    write_stream(read_stream(source, options), kit, target, tmp_path)
    after = kit.consumed(target, is_read_committed=True)

    assert len(before) == 100
    assert len(after) == 110
    assert sorted(row[1] for row in after) == sorted(row[1] for row in kit.consumed(source))


def test_what_a_stream_cannot_parse_is_a_dead_letter_of_its_group_once(
    read_stream: Callable[..., Any], kit: Kit, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark.sql import functions

    source = kit.new_topic(1)
    retry, dead = f"{source}.spark.retry", f"{source}.spark.dlq"
    with BlockingAdmin({"bootstrap.servers": kit.bootstrap}) as admin:
        admin.create_topic(NewTopic(dead, configs={"odradek.retry.dead.letters.of": retry}))
        admin.create_topic(NewTopic(retry, configs={"odradek.retry.topic": source, "odradek.retry.group": "spark"}))
    with BlockingProducer({"bootstrap.servers": kit.bootstrap}) as producer:
        for value in (b'{"cents": 5}', b"{cents", b'{"cents": 7}'):
            producer.send(source, value, key=b"k")

    def write() -> None:
        read = read_stream(source, {"startingOffsets": "earliest"})
        text = functions.col("value").cast("string")
        cents = functions.get_json_object(text, "$.cents")
        rows = read.select(
            "key",
            functions.coalesce(cents, text).alias("value"),
            functions.when(cents.isNull(), "no JSON with cents").alias("deadLetterReason"),
            functions.struct("topic", "partition", "offset").alias("deadLetterOrigin"),
        )
        options = {
            "kafka.bootstrap.servers": kit.bootstrap,
            "topic": topic,
            "exactlyOnce": "true",
            "deadLetterTopic": dead,
            "deadLetterGroup": "spark",
            "checkpointLocation": str(tmp_path),
        }
        query = rows.writeStream.format("odradek").options(**options).trigger(availableNow=True).start()
        query.awaitTermination(60)

    write()
    last = max((tmp_path / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()  # the driver died after its last commit, and before Spark noted it: the batch is replayed
    (last.parent / f".{last.name}.crc").unlink()
    write()
    status = main(["dlq", "list", source, "--group", "spark", "--json", "--bootstrap", kit.bootstrap])
    (letter,) = json.loads(capsys.readouterr().out)

    assert status == 0
    assert values(kit.consumed(topic, is_read_committed=True)) == [5, 7]
    assert letter == {
        "topic": source,
        "partition": 0,
        "offset": 1,
        "attempts": 0,
        "reason": "no JSON with cents",
        "key": "k",
        "value": "{cents",
    }


def test_a_stream_to_brokers_that_all_refuse_fails_with_the_option_in_the_first_line(
    read_stream: Callable[..., Any], kit: Kit, tmp_path: Path
) -> None:
    source = kit.new_topic()
    kit.fill(source, 3)
    frame = read_stream(source, {"startingOffsets": "earliest"})
    sink = frame.select("value").writeStream.format("odradek").trigger(availableNow=True)
    options = {"topic": "t", "kafka.bootstrap.servers": "127.0.0.1:1", "checkpointLocation": str(tmp_path)}

    with pytest.raises(Exception, match=r"127\.0\.0\.1:1") as caught:
        sink.options(**options).start().awaitTermination(120)

    first = str(caught.value).splitlines()[0]
    assert "option 'kafka.bootstrap.servers': no broker answered" in first
