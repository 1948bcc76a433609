"""What the readers give of a topic, without Spark: the rows that a consumer reads, whatever the topic holds."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client import TopicPartition
from odradek.kernel.errors import OdradekError
from odradek.spark_plugin.client.errors import UnsupportedVersionError
from odradek.spark_plugin.errors import AssignmentError, DataLossError, OptionError, SchemaError
from odradek.spark_plugin.reading import task_planning
from odradek.spark_plugin.reading.batch_reader import BatchReader
from odradek.spark_plugin.reading.read_task import ReadTask, read
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.spark_plugin.topic_kit import COLUMNS, QUIET, Kit, Record, Row, Write, cells, open_kit, writes
from tests.waiting import until

FULL = [
    ("key", "binary"),
    ("value", "binary"),
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
    ("timestamp", "timestamp"),
    ("timestampType", "int"),
    ("headers", "array<struct<key:string,value:binary>>"),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    cleaning = {"log.cleaner.backoff.ms": "50", "log.retention.check.interval.ms": "50"}
    with running_broker({**QUIET, "log.retention.ms": -1, **cleaning}) as broker:
        yield broker


@pytest.fixture(scope="module")
def kit(broker: RunningBroker) -> Iterator[Kit]:
    with open_kit(broker.bootstrap) as kit:
        yield kit


def reader_of(kit: Kit, topic: str, options: Mapping[str, Any] | None = None, names: Any = COLUMNS) -> BatchReader:
    given_options = {"kafka.bootstrap.servers": kit.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    given_options |= {key: str(value) for key, value in (options or {}).items()}
    return BatchReader.of(given_options, [field for field in FULL if field[0] in names])


def rows_of(tasks: list[ReadTask], names: Any = COLUMNS) -> list[Row]:
    """Read tasks as workers do: what they are is pickled on the way."""
    return [row for task in tasks for row in cells(list(read(pickle.loads(pickle.dumps(task)))), names)]


@settings(max_examples=30)
@given(
    all_writes=writes(2),
    is_read_committed=st.booleans(),
    time_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
    min_partitions=st.integers(1, 6),
)
def test_rows_are_what_a_consumer_reads(
    kit: Kit, all_writes: list[Write], is_read_committed: bool, time_type: str, min_partitions: int
) -> None:
    topic = kit.new_topic(2, message_timestamp_type=time_type)
    kit.write(topic, *all_writes)
    isolation = "read_committed" if is_read_committed else "read_uncommitted"
    reader = reader_of(kit, topic, {"kafka.isolation.level": isolation, "minPartitions": min_partitions})

    assert rows_of(reader.plan()) == kit.consumed(topic, is_read_committed=is_read_committed)


def test_gaps_that_compaction_leaves_are_no_loss(kit: Kit) -> None:
    topic = kit.new_topic(1, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    for number in range(60):
        kit.write(topic, Write(0, (Record(b"key %d" % (number % 3), b"%d " % number + b"x" * 50),)))
    until(lambda: len(kit.consumed(topic)) < 30)

    before, rows, after = kit.consumed(topic), [], None
    while before != after:  # compaction may go on between the two
        before, rows = kit.consumed(topic), rows_of(reader_of(kit, topic, {"maxRecordsPerPartition": 7}).plan())
        after = kit.consumed(topic)

    assert rows == after
    assert rows[-1][4] == 59


@pytest.mark.parametrize("places", [{}, {"dataDir": "/there/is/none"}], ids=["brokers", "files that are not there"])
def test_tasks_are_cut_by_bytes(kit: Kit, places: dict[str, str]) -> None:
    topic = kit.new_topic(2)
    for _ in range(40):
        kit.write(topic, Write(0, (Record(b"k", b"x" * 200),)))
    kit.write(topic, Write(1, (Record(b"k", b"x"),)))

    tasks = reader_of(kit, topic, {"maxBytesPerPartition": 2_500, **places}).plan()

    assert [len(task.pieces) for task in tasks] == [1] * 6  # 40 batches of about 270 bytes, and a small one
    assert rows_of(tasks) == kit.consumed(topic)


def test_where_no_broker_says_how_large_logs_are_a_warning_tells_what_is_not_cut(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 20)

    def refuse(*_: Any) -> Any:
        raise UnsupportedVersionError("the broker does not answer DescribeLogDirs")

    monkeypatch.setattr(task_planning, "log_marks", refuse)
    with caplog.at_level(logging.WARNING):
        tasks = reader_of(kit, topic, {"maxBytesPerPartition": 100, "dataDir": "/there/is/none"}).plan()

    assert len(tasks) == 1
    assert "maxBytesPerPartition does not cut what is read from brokers: none says how large" in caplog.text


def test_a_range_is_read_from_the_middle_of_a_batch_to_the_middle_of_another(kit: Kit) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 40)
    offsets = {"startingOffsets": f'{{"{topic}":{{"0":7}}}}', "endingOffsets": f'{{"{topic}":{{"0":33}}}}'}

    rows = rows_of(reader_of(kit, topic, offsets).plan())

    assert [row[4] for row in rows] == list(range(7, 33))


def test_a_task_that_is_not_read_to_its_end_leaves_the_next_one_alone(kit: Kit) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 60)
    options = {"kafka.max.partition.fetch.bytes": 200}  # many answers, the next one always under way
    (task,) = reader_of(kit, topic, options).plan()
    for _ in range(3):
        rows: Any = read(task)
        next(rows)
        rows.close()  # as Spark does for a LIMIT

    assert [row[4] for row in rows_of([task])] == list(range(60))


def test_timestamps_choose_the_range(kit: Kit) -> None:
    topic = kit.new_topic(2)
    for number in range(20):
        kit.write(topic, Write(number % 2, (Record(None, b"%d" % number, (), 1_000 + number),)))

    rows = rows_of(reader_of(kit, topic, {"startingTimestamp": 1_005, "endingTimestamp": 1_011}).plan())

    assert sorted(row[5] for row in rows) == [1_000_000 + 1_000 * number for number in range(5, 11)]


def test_only_the_columns_asked_for_are_made_in_their_order(kit: Kit) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 3)
    options = {"kafka.bootstrap.servers": kit.bootstrap, "subscribe": topic}
    reader = BatchReader.of(options, [("offset", "bigint"), ("value", "binary")])

    (batch,) = read(reader.plan()[0])

    assert batch.schema.names == ["offset", "value"]
    assert batch.to_pydict() == {"offset": [0, 1, 2], "value": [b"value 0", b"value 1", b"value 2"]}


def test_a_schema_registrys_prefix_becomes_a_column(kit: Kit) -> None:
    topic = kit.new_topic()
    kit.write(
        topic, Write(0, (Record(None, b"\x00\x00\x00\x00\x07payload"), Record(None, b"plain"), Record(None, None)))
    )
    options = {"kafka.bootstrap.servers": kit.bootstrap, "subscribe": topic, "confluentWireFormat": "strip"}
    reader = BatchReader.of(options, [("schemaId", "int"), ("value", "binary")])

    (batch,) = read(reader.plan()[0])

    assert batch.to_pydict() == {"schemaId": [7, None, None], "value": [b"payload", b"plain", None]}


def test_what_lies_in_an_open_transaction_is_not_read_as_committed(kit: Kit, broker: RunningBroker) -> None:
    from odradek.client.blocking_producer import BlockingProducer

    topic = kit.new_topic()
    kit.fill(topic, 5)
    with BlockingProducer({"bootstrap.servers": broker.bootstrap, "transactional.id": "open"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"undecided", partition=0)
        kit.fill(topic, 5)

        committed = rows_of(reader_of(kit, topic, {"kafka.isolation.level": "read_committed"}).plan())
        uncommitted = rows_of(reader_of(kit, topic).plan())
        producer.abort_transaction()

    assert len(committed) == 5
    assert len(uncommitted) == 11


# ------------------------------------------------------------------------------------------------------------ data loss


def test_a_start_below_the_log_start_is_an_error_or_a_warning(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 40)
    kit.admin.delete_records({TopicPartition(topic, 0): 20})
    start = {"startingOffsets": f'{{"{topic}":{{"0":10}}}}'}

    with pytest.raises(DataLossError, match="10 offsets"):
        reader_of(kit, topic, start).plan()
    with caplog.at_level(logging.WARNING):
        rows = rows_of(reader_of(kit, topic, {**start, "failOnDataLoss": "false"}).plan())

    assert [row[4] for row in rows] == list(range(20, 40))
    assert "data loss" in caplog.text


def test_a_range_that_vanishes_before_it_is_read_is_an_error_or_a_warning(kit: Kit) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 40)
    failing = reader_of(kit, topic).plan()
    lenient = reader_of(kit, topic, {"failOnDataLoss": "false"}).plan()
    kit.admin.delete_records({TopicPartition(topic, 0): 25})

    with pytest.raises(DataLossError, match=r"\[0, 40\).*does not help"):
        rows_of(failing)

    assert [row[4] for row in rows_of(lenient)] == list(range(25, 40))


def test_a_topic_that_was_made_again_is_not_taken_for_the_old_one(kit: Kit) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 30)
    failing = reader_of(kit, topic).plan()
    lenient = reader_of(kit, topic, {"failOnDataLoss": "false"}).plan()
    kit.make_again(topic)
    kit.fill(topic, 30)

    with pytest.raises(DataLossError, match="topic id changed"):
        rows_of(failing)

    assert rows_of(lenient) == []


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"startingOffsets": '{"TOPIC":{"0":99}}'}, OptionError, "99"),
        ({"startingOffsets": '{"TOPIC":{"0":0,"1":0}}'}, AssignmentError, "don't match what are assigned"),
        ({"startingOffsets": '{"other":{"0":0}}'}, AssignmentError, "don't match what are assigned"),
        ({"startingTimestamp": "1999999999999"}, OptionError, "No offset matched"),
        ({"subscribe": "TOPICS"}, AssignmentError, "similar: TOPIC"),
    ],
)
def test_what_does_not_fit_the_cluster_is_told(
    kit: Kit, options: dict[str, str], error: type[OdradekError], text: str
) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 5)
    named = {key: value.replace("TOPIC", topic) for key, value in options.items()}

    with pytest.raises(error, match=text.replace("TOPIC", topic)):
        reader_of(kit, topic, named).plan()


def test_an_unreachable_broker_is_named() -> None:
    options = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "subscribe": "t",
        "kafka.default.api.timeout.ms": "300",
    }

    with pytest.raises(OdradekError, match=r"127\.0\.0\.1:1"):
        BatchReader.of(options, FULL[:7]).plan()


def test_a_pattern_without_a_match_is_nothing_to_read(kit: Kit) -> None:
    options = {"kafka.bootstrap.servers": kit.bootstrap, "subscribePattern": "^there is none$"}

    assert BatchReader.of(options, FULL[:7]).plan() == []


@pytest.mark.parametrize(
    "schema", [[("valeu", "binary")], [("value", "string")], [("value", "binary"), ("value", "binary")]]
)
def test_a_schema_that_no_record_has_is_refused(schema: list[tuple[str, str]]) -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}

    with pytest.raises(SchemaError, match="val"):
        BatchReader.of(options, schema)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "One of the following options"),
        ({"subscribe": "t", "assign": '{"t":[0]}'}, "Only one of the following options"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "can't be latest"),
        ({"subscribe": "t", "endingOffsets": "earliest"}, "can't be earliest"),
        ({"subscribe": "t", "kafka.security.protocol": "NONSENSE"}, "NONSENSE"),
        ({"subscribe": "t", "readFrom": "segments"}, "dataDir"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_asked(options: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        BatchReader.of({"kafka.bootstrap.servers": "127.0.0.1:1", **options}, FULL[:7])


def test_a_damaged_batch_names_where_it_is(kit: Kit, broker: RunningBroker) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 10)
    tasks = reader_of(kit, topic).plan()
    (segment,) = (broker.data_dir / f"{topic}-0").glob("*.log")
    damaged = bytearray(segment.read_bytes())
    damaged[-1] ^= 0xFF
    segment.write_bytes(damaged)

    with pytest.raises(OdradekError, match=f"{topic}-0.*offset 0.*checksum") as raised:
        rows_of(tasks)
    assert str(raised.value).count("at byte") == 1
