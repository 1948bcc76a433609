"""What Spark calls, called without a session: signatures, pickles, Arrow's types."""

from __future__ import annotations

import inspect
import io
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceReader,
    EqualTo,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType, TimestampType

from odradek.spark_plugin import first_contact, worker
from odradek.spark_plugin.arrow import schema_of
from odradek.spark_plugin.client.errors import ConnectionFailedError
from odradek.spark_plugin.errors import OptionError, SchemaError
from odradek.spark_plugin.source import DefaultSource
from tests.spark_plugin.client.scripted import Network
from tests.spark_plugin.topic_kit import Kit

PROJECTED = StructType([StructField("offset", LongType()), StructField("value", BinaryType())])


@pytest.fixture
def topic(kit: Kit) -> str:
    """Return a topic of two partitions with 20 records in the first and 10 in the second."""
    topic = kit.new_topic(2)
    kit.fill(topic, 20)
    kit.fill(topic, 10, partition=1)
    return topic


def source_of(kit: Kit, topic: str, **options: str) -> DefaultSource:
    given = CaseInsensitiveDict({"kafka.bootstrap.servers": kit.bootstrap, "subscribe": topic, **options})
    source: DefaultSource = through_pickle(DefaultSource(given))
    return source


def through_pickle(value: Any) -> Any:
    """Hand a value over as Spark does."""
    pickler: Any = cloudpickle  # without types
    return pickler.loads(pickler.dumps(value))


def offsets_of(reader: Any, partitions: Sequence[InputPartition]) -> list[int]:
    reader = through_pickle(reader)
    batches = [batch for partition in partitions for batch in reader.read(through_pickle(partition))]
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]


def test_sparks_own_search_finds_the_format() -> None:
    from pyspark import serializers
    from pyspark.sql.worker import lookup_data_sources

    read_int: Any = serializers.read_int
    found = io.BytesIO()
    lookup_data_sources._main(io.BytesIO(), found)
    found.seek(0)
    sources = {}
    for _ in range(read_int(found)):
        name = found.read(read_int(found)).decode()
        sources[name] = cloudpickle.loads(found.read(read_int(found)))

    assert sources["odradek"] is DefaultSource


def test_arrows_types_are_those_that_spark_compares_with(kit: Kit) -> None:
    from pyspark.sql.types import ArrayType, IntegerType, StringType

    binary, integer = BinaryType(), IntegerType()
    header = StructType([StructField("key", StringType()), StructField("value", binary)])
    types = [binary, binary, StringType(), integer, LongType(), TimestampType(), integer, ArrayType(header)]
    names = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
    fields = [StructField(name, data_type) for name, data_type in zip(names, types, strict=True)]

    assert to_arrow_schema(StructType(fields), timezone="UTC").equals(schema_of(names))


@pytest.mark.parametrize(("method", "parameters"), [("writer", ["schema", "overwrite"]), ("reader", ["schema"])])
def test_parameters_are_named_as_spark_names_them(method: str, parameters: list[str]) -> None:
    for kind in (method, f"stream{method.title()}"):
        ours = inspect.signature(getattr(DefaultSource, kind)).parameters
        assert list(ours) == ["self", *parameters]
        assert list(ours) == list(inspect.signature(getattr(DataSource, kind)).parameters)


def test_a_batch_is_read_through_pickles(kit: Kit, topic: str) -> None:
    reader = source_of(kit, topic).reader(PROJECTED)

    assert offsets_of(reader, reader.partitions()) == [*range(20), *range(10)]


def test_a_partition_of_nothing_is_read_as_nothing(kit: Kit) -> None:
    reader = source_of(kit, kit.new_topic()).reader(PROJECTED)

    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


def test_only_a_planner_that_asks_gets_a_reader_that_takes_filters(
    kit: Kit, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = source_of(kit, topic).reader(PROJECTED)
    monkeypatch.setattr(worker, "PUSHDOWN_MODULE", __name__)
    filtering = source_of(kit, topic).reader(PROJECTED)
    filters = [EqualTo(("partition",), 0), GreaterThanOrEqual(("offset",), 5), LessThan(("offset",), 8)]

    assert type(plain).pushFilters is DataSourceReader.pushFilters
    assert list(filtering.pushFilters(filters)) == filters
    assert offsets_of(filtering, filtering.partitions()) == [5, 6, 7]


def test_a_filter_of_time_begins_at_the_first_record_that_late(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime

    from tests.spark_plugin.topic_kit import Record, Write

    topic = kit.new_topic()
    for number in range(10):
        kit.write(topic, Write(0, (Record(None, b"v", (), 1_600_000_000_000 + 1_000 * number),)))
    monkeypatch.setattr(worker, "PUSHDOWN_MODULE", __name__)
    reader = source_of(kit, topic).reader(PROJECTED)
    reader.pushFilters([GreaterThanOrEqual(("timestamp",), datetime.fromtimestamp(1_600_000_007, UTC))])

    assert offsets_of(reader, reader.partitions()) == [7, 8, 9]


def test_a_stream_is_read_through_pickles(kit: Kit, topic: str) -> None:
    reader = through_pickle(source_of(kit, topic, startingOffsets="earliest").streamReader(PROJECTED))
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    end = reader.latestOffset(start, limit)
    partitions = reader.partitions(start, json.loads(json.dumps(end)))

    assert isinstance(limit, ReadAllAvailable)
    assert offsets_of(reader, partitions) == [*range(20), *range(10)]
    assert reader.reportLatestOffset() == {topic: {"0": 20, "1": 10}}
    reader.commit(end)


def test_limits_are_those_of_the_options(kit: Kit, topic: str) -> None:
    def limit(**options: str) -> object:
        return source_of(kit, topic, **options).streamReader(PROJECTED).getDefaultReadLimit()

    assert limit(maxOffsetsPerTrigger="7") == ReadMaxRows(7)
    assert limit(minOffsetsPerTrigger="3") == ReadMinRows(3)
    assert limit(minOffsetsPerTrigger="3", maxOffsetsPerTrigger="7") == ReadMaxRows(7)


def test_a_column_that_is_said_to_be_never_null_is_refused(kit: Kit, topic: str) -> None:
    with pytest.raises(SchemaError, match="offset is never null"):
        source_of(kit, topic).reader(StructType([StructField("offset", LongType(), nullable=False)]))


@pytest.mark.parametrize(
    "call",
    [
        lambda reader: reader.initialOffset(),
        lambda reader: reader.getDefaultReadLimit(),
        lambda reader: reader.latestOffset({}, ReadAllAvailable()),
        lambda reader: reader.partitions({}, {}),
        lambda reader: reader.prepareForTriggerAvailableNow(),
    ],
)
def test_what_is_wrong_with_a_stream_is_told_by_the_first_call_whichever_it_is(
    kit: Kit, topic: str, monkeypatch: pytest.MonkeyPatch, call: Callable[[Any], object]
) -> None:
    monkeypatch.setenv(worker.HIDE_TRACEBACK, "0")
    reader = through_pickle(source_of(kit, topic, endingOffsets="latest").streamReader(PROJECTED))

    with pytest.raises(OptionError, match="not valid in streaming queries"):
        call(reader)

    assert os.environ[worker.HIDE_TRACEBACK] == "1"


@pytest.mark.parametrize("is_ending", [False, True])
def test_a_planner_of_micro_batches_meets_the_brokers_and_who_ends_them_does_not(
    monkeypatch: pytest.MonkeyPatch, is_ending: bool
) -> None:
    monkeypatch.setattr(worker, "ENDING_MODULE", __name__ if is_ending else "not.loaded")
    client = Network().client(bootstrap_servers="dead:1")
    monkeypatch.setattr(first_contact, "client_for", lambda _settings: client)
    options = CaseInsensitiveDict({"kafka.bootstrap.servers": "dead:1", "topic": "t"})
    schema = StructType([StructField("value", StringType())])

    def opened() -> object:
        return DefaultSource(options).streamWriter(schema, False)

    if is_ending:
        assert opened()
    else:
        with pytest.raises(ConnectionFailedError, match=r"option 'kafka\.bootstrap\.servers': .*dead:1"):
            opened()


def test_what_is_wrong_is_told_when_spark_asks_for_the_schema(kit: Kit) -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        DefaultSource(CaseInsensitiveDict({"subscribe": "t"})).schema()
