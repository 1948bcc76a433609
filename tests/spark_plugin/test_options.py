"""Options: each one's value, what is refused at once, what is only warned of."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from odradek.spark_plugin.client.setting_keys import KNOWN_NAMES
from odradek.spark_plugin.errors import OptionError
from odradek.spark_plugin.options.option_table import OPTIONS, Kind, by_lower_name, read_value
from odradek.spark_plugin.options.options import REFUSED_KAFKA_KEYS, read_sink_options, read_source_options
from odradek.spark_plugin.options.positions import AtTimestamp, EachOffset, EachTimestamp, Everywhere
from odradek.spark_plugin.ranges import EARLIEST, LATEST, TopicPartition
from odradek.spark_plugin.reading.planner import Assigned, Pattern, Topics

BROKERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
SOURCE = {**BROKERS, "subscribe": "orders"}
SINK = {**BROKERS, "topic": "orders"}
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)

# Of spark.md's section 8, "refused at load()": what Spark's connector refuses, with the heart of what it says.
REFUSED_BY_BOTH = [
    ({"subscribe": None}, "One of the following options must be specified for the source: subscribe, subscribePattern"),
    ({"assign": '{"a":[0]}'}, "Only one of the following options must be specified"),
    ({"subscribePattern": "a"}, "Only one of the following options must be specified"),
    (
        {"kafka.bootstrap.servers": None},
        "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka con",
    ),
    ({"kafka.bootstrap.servers": " "}, "Option 'kafka.bootstrap.servers' must be specified"),
    ({"subscribe": ""}, "No topics to subscribe to: option 'subscribe' is ''"),
    ({"subscribe": ","}, "No topics to subscribe to: option 'subscribe' is ','"),
    ({"subscribe": None, "assign": "nope"}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got nope'),
    ({"subscribe": None, "assign": ""}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got '),
    ({"subscribe": None, "subscribePattern": " "}, "Pattern to subscribe is empty"),
    ({"startingOffsets": "word"}, 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got word'),
    ({"startingOffsets": "{"}, 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got {'),
    ({"startingOffsetsByTimestamp": "5"}, "Expected e.g. "),
    ({"startingTimestamp": "abc"}, "Expected a single whole number, got 'abc'"),
    ({"startingOffsetsByTimestampStrategy": "word"}, "Expected one of error, latest, got 'word'"),
    ({"failOnDataLoss": "maybe"}, "option 'failOnDataLoss': Expected true or false, got 'maybe'"),
    ({"includeHeaders": "maybe"}, "option 'includeHeaders': Expected true or false, got 'maybe'"),
    ({"minPartitions": "0"}, "it must be positive"),
    ({"minPartitions": "abc"}, "got 'abc'"),
    ({"minPartitions": "2147483648"}, "1 to 2147483647"),
    ({"maxRecordsPerPartition": "0"}, "it must be positive"),
    ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "The value of minOffsetsPerTrigger(9) is higher than"),
    *[
        ({f"kafka.{name}": "x"}, f"Kafka option 'kafka.{name}' is not supported")
        for name in (
            "auto.offset.reset",
            "key.deserializer",
            "value.deserializer",
            "enable.auto.commit",
            "interceptor.classes",
        )
    ],
]

# What the connector finds only when a query runs, or lets pass in silence; each is in the reference's list.
REFUSED_BY_US = [
    ({"maxOffsetsPerTrigger": "abc"}, "got 'abc'"),
    ({"maxOffsetsPerTrigger": "0"}, "it must be positive"),
    ({"maxOffsetsPerTrigger": "-1"}, "it must be positive"),
    ({"minOffsetsPerTrigger": "-1"}, "it must be positive"),
    ({"maxTriggerDelay": "abc"}, "Expected a duration, for instance 15m"),
    ({"maxTriggerDelay": "-1s"}, "Expected a duration"),
    ({"maxTriggerDelay": "5 parsecs"}, "Expected a duration"),
    ({"startingTimestamp": "-1"}, "got '-1'"),
    ({"startingOffsets": '{"orders":{"0":-3}}'}, "-3 of orders-0 is out of range"),
    ({"startingOffsetsByTimestamp": '{"orders":{"0":-1}}'}, "-1 of orders-0 is out of range"),
    ({"kafkaConsumer.pollTimeoutMs": "soon"}, "got 'soon'"),
    ({"fetchOffset.numRetries": "0"}, "it must be positive"),
    ({"fetchOffset.retryIntervalMs": "-5"}, "got '-5'"),
    ({"maxBytesPerPartition": "1k"}, "got '1k'"),
    ({"readFrom": "disk"}, "Expected one of auto, broker, segments, got 'disk'"),
    ({"readFrom": "segments"}, "give 'dataDir' or 'tieredStore'"),
    ({"confluentWireFormat": "keep"}, "Expected one of strip, got 'keep'"),
    ({"gcFreeze": "1"}, "Expected true or false, got '1'"),
    ({"subscribe": None, "subscribePattern": r"\p{Alpha}+"}, "'\\p' is Java's alone"),
]

BATCH_ONLY = [
    ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries"),
    (
        {"startingOffsets": '{"orders":{"0":-1}}'},
        "option 'startingOffsets' for orders-0 is -1: starting offset can't",
    ),
    ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries"),
    ({"endingOffsets": '{"orders":{"0":-2}}'}, "option 'endingOffsets' for orders-0 is -2: ending offset can't"),
    (
        {"startingOffsets": '{"orders":{"0":7}}', "endingOffsets": '{"orders":{"0":6}}'},
        "The specified start offset 7 is greater than the end offset 6 for orders-0",
    ),
    ({"startingTimestamp": "7", "endingTimestamp": "6"}, "start timestamp 7 is greater than the end timestamp 6"),
    (
        {"startingOffsetsByTimestamp": '{"orders":{"0":7}}', "endingOffsetsByTimestamp": '{"orders":{"0":6}}'},
        "The specified start timestamp 7 is greater than the end timestamp 6 for orders-0",
    ),
    ({"endingOffsets": "word"}, "Expected e.g. "),
    ({"endingOffsetsByTimestamp": "word"}, "Expected e.g. "),
    ({"endingTimestamp": "word"}, "Expected a single whole number"),
]

STREAM_ONLY = [
    ({"endingOffsets": "latest"}, "not valid in streaming queries"),
    ({"endingOffsetsByTimestamp": '{"orders":{"0":7}}'}, "not valid in streaming queries"),
    ({"endingTimestamp": "7"}, "not valid in streaming queries"),  # the connector lets this one pass
]


def with_changes(options: dict[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in {**options, **changes}.items() if text is not None}


@pytest.mark.parametrize("is_stream", [False, True, None])
@pytest.mark.parametrize(("changes", "message"), REFUSED_BY_BOTH + REFUSED_BY_US)
def test_what_is_wrong_is_refused_at_once(changes: dict[str, str | None], message: str, is_stream: bool | None) -> None:
    with pytest.raises(OptionError) as refused:
        read_source_options(with_changes(SOURCE, changes), is_stream=is_stream)

    assert message in str(refused.value)
    assert refused.value.option in {option.name for option in OPTIONS} | {f"kafka.{name}" for name in KNOWN_NAMES}


@pytest.mark.parametrize(("changes", "message"), BATCH_ONLY)
def test_a_batch_refuses_what_makes_no_sense_for_it(changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(OptionError) as refused:
        read_source_options(with_changes(SOURCE, changes), is_stream=False)

    assert message in str(refused.value)


@pytest.mark.parametrize(("changes", "message"), STREAM_ONLY)
def test_a_stream_refuses_an_end(changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(OptionError) as refused:
        read_source_options(with_changes(SOURCE, changes), is_stream=True)

    assert message in str(refused.value)
    for is_stream in (False, None):
        read_source_options(with_changes(SOURCE, changes), is_stream=is_stream)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kafka.bootstrap.servers": None},
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka",
        ),
        ({"topic": " "}, "option 'topic' is empty"),
        ({"partitioner": "random"}, "Expected one of murmur2, roundrobin, crc32, got 'random'"),
        ({"exactlyOnce": "maybe"}, "option 'exactlyOnce': Expected true or false, got 'maybe'"),
        (
            {"kafka.partitioner.class": "com.acme.Mine"},
            "option 'kafka.partitioner.class' is 'com.acme.Mine', a class",
        ),
        ({"kafka.key.serializer": "x"}, "Kafka option 'kafka.key.serializer' is not supported"),
        ({"kafka.value.serializer": "x"}, "Kafka option 'kafka.value.serializer' is not supported"),
        ({"kafka.interceptor.classes": "x"}, "Kafka option 'kafka.interceptor.classes' is not supported"),
        ({"kafka.transactional.id": "x"}, "Kafka option 'kafka.transactional.id' is not supported"),
    ],
)
def test_a_sink_refuses_what_is_wrong(changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(OptionError) as refused:
        read_sink_options(with_changes(SINK, changes))

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "attribute", "expected"),
    [
        ({"subscribe": " b, a,,b "}, "subscription", Topics(("b", "a"))),
        ({"subscribe": None, "assign": '{"orders":[1,0]}'}, "subscription", Assigned((P0, P1))),
        ({"subscribe": None, "subscribePattern": " ord.* "}, "subscription", Pattern("ord.*")),
        ({}, "starting", Everywhere(EARLIEST)),
        ({"startingOffsets": " Earliest "}, "starting", Everywhere(EARLIEST)),
        ({"startingOffsets": '{"orders":{"0":5,"1":-2}}'}, "starting", EachOffset({P0: 5, P1: EARLIEST})),
        ({"startingTimestamp": " 17 "}, "starting", AtTimestamp(17)),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":5}}'}, "starting", EachTimestamp({P0: 5})),
        ({}, "ending", Everywhere(LATEST)),
        ({"endingOffsets": "LATEST"}, "ending", Everywhere(LATEST)),
        ({"endingOffsets": '{"orders":{"0":5,"1":-1}}'}, "ending", EachOffset({P0: 5, P1: LATEST})),
        ({"endingTimestamp": "0"}, "ending", AtTimestamp(0)),
        (
            {"startingOffsets": '{"orders":{"0":5,"1":7}}', "endingOffsets": '{"orders":{"0":5,"1":-1}}'},
            "ending",
            EachOffset({P0: 5, P1: LATEST}),
        ),
        ({}, "fails_without_match", True),
        ({"startingOffsetsByTimestampStrategy": "LATEST"}, "fails_without_match", False),
        ({}, "fail_on_data_loss", True),
        ({"failOnDataLoss": "False"}, "fail_on_data_loss", False),
        ({}, "include_headers", False),
        ({"includeHeaders": "TRUE"}, "include_headers", True),
        ({}, "columns", None),
        ({"columns": "value, offset"}, "columns", ("value", "offset")),
        ({}, "strips_wire_format", False),
        ({"confluentWireFormat": "strip"}, "strips_wire_format", True),
        ({}, "min_partitions", None),
        ({"minPartitions": "+8"}, "min_partitions", 8),
        ({"maxRecordsPerPartition": "30"}, "max_records_per_partition", 30),
        ({"maxBytesPerPartition": "30"}, "max_bytes_per_partition", 30),
        ({"kafkaConsumer.pollTimeoutMs": "512"}, "poll_timeout_ms", 512),
        ({}, "poll_timeout_ms", 120_000),
        ({}, "offset_attempts", 3),
        ({"fetchOffset.numRetries": "1"}, "offset_attempts", 1),
        ({}, "offset_retry_interval_ms", 1_000),
        ({"fetchOffset.retryIntervalMs": "0"}, "offset_retry_interval_ms", 0),
        ({"commitOffsetsTo": "lag"}, "commit_offsets_to", "lag"),
        ({"groupIdPrefix": "x"}, "commit_offsets_to", None),
        ({}, "read_from", "auto"),
        ({"readFrom": "segments", "dataDir": "/d"}, "read_from", "segments"),
        ({"dataDir": "/d"}, "data_dir", "/d"),
        ({"tieredStore": "s3://b/p"}, "tiered_store", "s3://b/p"),
        ({}, "gc_freeze", True),
        ({"gcFreeze": "false"}, "gc_freeze", False),
        ({"kafka.Client.ID": "me"}, "kafka", {"bootstrap.servers": "127.0.0.1:9092", "client.id": "me"}),
        ({"maxOffsetsPerTrigger": "5"}, "max_offsets_per_trigger", 5),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "5"}, "min_offsets_per_trigger", 5),
    ],
)
def test_an_option_means(changes: dict[str, str | None], attribute: str, expected: Any) -> None:
    given = with_changes(SOURCE, changes)

    assert getattr(read_source_options(given, is_stream=False), attribute) == expected
    lower = {name.lower(): text for name, text in given.items()}
    assert getattr(read_source_options(lower, is_stream=False), attribute) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("15m", 900_000), ("15 ", 15), ("2S", 2_000), ("3min", 180_000), ("1h", 3_600_000), ("7ms", 7), ("2500us", 2)],
)
def test_a_duration_is_read_as_spark_reads_it(text: str, expected: int) -> None:
    limits = read_source_options({**SOURCE, "maxTriggerDelay": text}, is_stream=True).limits

    assert limits.max_delay_ms == expected


def test_a_stream_begins_at_the_latest_offset_and_waits_a_quarter_of_an_hour_at_most() -> None:
    read = read_source_options(SOURCE, is_stream=True)

    assert (read.starting, read.limits.max_delay_ms, read.is_stream) == (Everywhere(LATEST), 900_000, True)


def test_a_stream_is_not_cut_by_bytes_and_says_so_once() -> None:
    read = read_source_options({**SOURCE, "maxBytesPerPartition": "30"}, is_stream=True)

    assert read.max_bytes_per_partition is None
    [warning] = read.warnings
    assert warning.startswith("option 'maxBytesPerPartition' is ignored in streaming queries: ")
    assert "maxRecordsPerPartition" in warning


def test_a_timestamp_counts_before_timestamps_and_they_before_offsets() -> None:
    each = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"orders":{"0":5}}'}
    read = read_source_options({**SOURCE, **each, "startingTimestamp": "9"}, is_stream=False)

    assert (read.starting, read.starting_option) == (AtTimestamp(9), "startingTimestamp")
    assert read_source_options({**SOURCE, **each}, is_stream=False).starting == EachTimestamp({P0: 5})
    assert read.warnings == (
        "option 'startingOffsetsByTimestamp' is ignored: 'startingTimestamp' is given, which counts first",
        "option 'startingOffsets' is ignored: 'startingTimestamp' is given, which counts first",
    )


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("fooBar", "no such option: 'fooBar'; it has no effect"),
        ("startingOffset", "no such option: 'startingOffset'; it has no effect (did you mean 'startingOffsets'?)"),
        ("kafkaBootstrapServers", "no such option: 'kafkaBootstrapServers'; it has no effect"),
        ("client.id", "no such option: 'client.id'; it has no effect (did you mean 'kafka.client.id'?)"),
        ("kafka.foo.bar", "no client of Kafka has the option 'kafka.foo.bar'; it has no effect"),
        (
            "kafka.fetch.min.byte",
            "no client of Kafka has the option 'kafka.fetch.min.byte'; it has no effect"
            " (did you mean 'kafka.fetch.min.bytes'?)",
        ),
    ],
)
def test_what_nobody_knows_is_warned_of_once_with_the_nearest_name(name: str, warning: str) -> None:
    source = read_source_options({**SOURCE, name: "1"}, is_stream=True)
    sink = read_sink_options({**SINK, name: "1"})

    assert [text.partition(" (did you mean 'kafka.bo")[0] for text in source.warnings] == [warning]
    assert source.warnings == sink.warnings


def test_strict_options_refuse_what_nobody_knows_before_anything_else() -> None:
    misspelt = {**BROKERS, "strictOptions": "true", "subscirbe": "orders", "kafka.fetch.min.byte": "1"}
    text = (
        "option 'strictOptions' is true: no such option: 'subscirbe' (did you mean 'subscribe'?); no client of Kafka"
        " has the option 'kafka.fetch.min.byte' (did you mean 'kafka.fetch.min.bytes'?)"
    )

    for is_stream in (None, False, True):
        with pytest.raises(OptionError) as source:
            read_source_options(misspelt, is_stream=is_stream)
        assert str(source.value) == text
    with pytest.raises(OptionError) as sink:
        read_sink_options(misspelt)
    assert (str(sink.value), sink.value.option) == (text, "strictOptions")


def test_strict_options_let_pass_what_is_known() -> None:
    read = {**SOURCE, "strictOptions": "True", "minPartitions": "2", "kafka.linger.ms": "1", "checkpointLocation": "/c"}
    written = {**SINK, "strictOptions": "true", "path": "/p", "kafka.acks": "all"}

    assert read_source_options(read, is_stream=True).warnings == ()
    assert read_sink_options(written).warnings == ()


@pytest.mark.parametrize("name", sorted(KNOWN_NAMES - REFUSED_KAFKA_KEYS.keys() - {"bootstrap.servers"}))
def test_every_key_of_kafka_s_clients_passes_in_silence(name: str) -> None:
    assert read_source_options({**SOURCE, f"kafka.{name}": "1"}, is_stream=False).warnings == ()
    if name != "partitioner.class":
        assert read_sink_options({**SINK, f"kafka.{name}": "1"}).warnings == ()


def test_options_of_spark_and_of_the_other_side_pass_in_silence() -> None:
    others = {
        "tieredStore": "s3://b",
        "tieredStore.region": "eu",
        "path": "x",
        "checkpointLocation": "/c",
        "topic": "t",
        "exactlyOnce": "maybe",
        "partitioner": "none",
    }

    assert read_source_options({**SOURCE, **others}, is_stream=True).warnings == ()
    assert read_sink_options({**SINK, **SOURCE, "startingOffsets": "word"}).warnings == ()


def test_limits_of_streams_are_ignored_by_a_batch_with_a_warning() -> None:
    read = read_source_options({**SOURCE, "maxOffsetsPerTrigger": "5", "maxTriggerDelay": "1m"}, is_stream=False)

    assert read.warnings == (
        "option 'maxOffsetsPerTrigger' is ignored in batch queries",
        "option 'maxTriggerDelay' is ignored in batch queries",
    )


def test_what_a_sink_is_told() -> None:
    java = "org.apache.kafka.clients.producer.RoundRobinPartitioner"

    assert read_sink_options({**SINK, "topic": " t "}).topic == "t"
    assert read_sink_options(BROKERS).topic is None
    assert read_sink_options(SINK).partitioner == "murmur2"
    assert read_sink_options({**SINK, "partitioner": "CRC32"}).partitioner == "crc32"
    assert read_sink_options({**SINK, "kafka.partitioner.class": java}).partitioner == "roundrobin"
    both = {**SINK, "kafka.partitioner.class": "com.acme.Mine", "partitioner": "murmur2"}
    assert read_sink_options(both).partitioner == "murmur2"
    assert (read_sink_options(SINK).exactly_once, read_sink_options({**SINK, "exactlyOnce": "true"}).exactly_once) == (
        False,
        True,
    )
    assert read_sink_options({**SINK, "gcFreeze": "false"}).gc_freeze is False


def test_what_is_read_can_be_pickled_and_prints_no_password() -> None:
    secret = {"kafka.sasl.jaas.config": "password=hunter2"}
    for read in (read_source_options({**SOURCE, **secret}, is_stream=True), read_sink_options({**SINK, **secret})):
        assert pickle.loads(pickle.dumps(read)) == read
        assert "hunter2" not in repr(read)


def test_every_option_has_a_name_of_its_own_a_place_and_a_sentence() -> None:
    assert len(by_lower_name()) == len(OPTIONS)
    assert all(option.use and option.doc.endswith(".") for option in OPTIONS)
    assert all(option.words for option in OPTIONS if option.kind is Kind.WORD)


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.default is not None])
def test_the_default_that_the_reference_shows_is_the_default(option: Any) -> None:
    shown = option.shown_default.strip("`") or str(option.default).lower()

    assert read_value(option, shown) == option.default


def test_an_option_without_a_value_is_none() -> None:
    assert read_source_options({**SOURCE, "minPartitions": None}, is_stream=False).min_partitions is None
