"""Pure core: what the options of a query say, read and checked as a whole.

`read_source_options` and `read_sink_options` take what Spark hands over: names in any case of letters, texts. They
refuse what Spark's Kafka connector refuses, and some of what it lets pass in silence; they warn of what nobody knows.
Single options stand in `option_table`, Kafka's own keys in `client.setting_keys`.

*Source:* Spark's Kafka integration guide; what its connector 4.2.0 refuses was seen by running it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..client.setting_keys import KNOWN_NAMES, unknown_keys
from ..direct.settings import TIERED_STORE
from ..errors import OptionError
from ..offsets import parse_offsets, parse_partitions, parse_timestamps
from ..ranges import EARLIEST, LATEST
from ..reading.planner import Assigned, Pattern, Subscription, Topics
from ..reading.rate_limit import TriggerLimits
from .option_table import BOOTSTRAP, OPTIONS, Kind, Use, by_lower_name, read_value
from .positions import AtTimestamp, EachOffset, EachTimestamp, Everywhere, Position

__all__ = ["REFUSED_KAFKA_KEYS", "SinkOptions", "SourceOptions", "read_sink_options", "read_source_options"]

_OF_SPARK: Final = frozenset({"checkpointlocation", "path", "paths", "queryname", "outputmode", "provider"})
"""What Spark itself puts among the options, or users for Spark."""

_OF_STORE: Final = f"{TIERED_STORE.lower()}."
"""How options of the object store begin; `direct.settings` reads them, and knows them all."""

_WAYS: Final = ("subscribe", "subscribePattern", "assign")
_DOCS: Final = "See docs/reference/spark-options.md."

REFUSED_KAFKA_KEYS: Final[Mapping[str, tuple[Use, str]]] = {
    "auto.offset.reset": (
        Use.SOURCE,
        "set the option 'startingOffsets' to earliest or latest instead: a query keeps its offsets itself, and"
        " 'startingOffsets' only counts where it first begins",
    ),
    "key.deserializer": (Use.SOURCE, "keys are binary; turn them into values with DataFrame operations"),
    "value.deserializer": (Use.SOURCE, "values are binary; turn them into what they are with DataFrame operations"),
    "enable.auto.commit": (
        Use.SOURCE,
        "a query keeps its offsets; 'commitOffsetsTo' names a group to copy them to",
    ),
    "interceptor.classes": (Use.EVERYWHERE, "interceptors are Java classes, and may change records"),
    "key.serializer": (Use.SINK, "keys are written as they are, binary or text; use DataFrame operations"),
    "value.serializer": (Use.SINK, "values are written as they are, binary or text; use DataFrame operations"),
    "transactional.id": (Use.SINK, "the option 'exactlyOnce' writes in transactions, and names them itself"),
}
"""Kafka's keys that are refused: where, and what to do instead."""

_PARTITIONERS: Final = {
    "org.apache.kafka.clients.producer.roundrobinpartitioner": "roundrobin",
    "org.apache.kafka.clients.producer.internals.defaultpartitioner": "murmur2",
}
"""Java's partitioners that one of ours stands for."""


@attrs.frozen(kw_only=True)
class SourceOptions:
    """What to read, and how. Can be pickled; holds passwords in `kafka`, and prints none.

    Attributes:
        is_stream: Whether this is a stream.
        subscription: Which partitions.
        starting: Where it begins.
        starting_option: The name of the option that said so, for errors.
        ending: Where a batch ends.
        ending_option: The name of the option that said so.
        fails_without_match: Whether a starting timestamp that nothing matches is an error.
        fail_on_data_loss: As the option; so are the others.
        max_bytes_per_partition: None in a stream, whatever the option says: its cut has to be repeatable.
        limits: Of a micro-batch.
        kafka: Kafka's keys, without their prefix, in small letters.
        warnings: What to tell the user once.
    """

    is_stream: bool
    subscription: Subscription
    starting: Position
    starting_option: str
    ending: Position
    ending_option: str
    fails_without_match: bool
    fail_on_data_loss: bool
    include_headers: bool
    columns: tuple[str, ...] | None
    strips_wire_format: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_bytes_per_partition: int | None
    limits: TriggerLimits
    poll_timeout_ms: int
    offset_attempts: int
    offset_retry_interval_ms: int
    commit_offsets_to: str | None
    read_from: str
    data_dir: str | None
    tiered_store: str | None
    gc_freeze: bool
    kafka: Mapping[str, str] = attrs.field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def max_offsets_per_trigger(self) -> int | None:
        """As the option."""
        return self.limits.max_offsets

    @property
    def min_offsets_per_trigger(self) -> int | None:
        """As the option."""
        return self.limits.min_offsets


@attrs.frozen(kw_only=True)
class SinkOptions:
    """Where to write, and how. Can be pickled; holds passwords in `kafka`, and prints none.

    Attributes:
        topic: For all rows; None when a column names it.
        partitioner: `murmur2`, `roundrobin` or `crc32`.
        exactly_once: As the option.
        exactly_once_topic: As the option.
        dead_letter_topic: As the option.
        dead_letter_group: As the option.
        gc_freeze: As the option.
        kafka: Kafka's keys, without their prefix, in small letters.
        warnings: What to tell the user once.
    """

    topic: str | None
    partitioner: str
    exactly_once: bool
    exactly_once_topic: str | None
    dead_letter_topic: str | None
    dead_letter_group: str | None
    gc_freeze: bool
    kafka: Mapping[str, str] = attrs.field(repr=False)
    warnings: tuple[str, ...] = ()


def read_source_options(options: Mapping[str, str | None], *, is_stream: bool | None) -> SourceOptions:
    """Read what a source is to do.

    Args:
        options: As Spark hands them over.
        is_stream: None when Spark has not said yet (it asks for the schema first): what only one of the two refuses is
            then let pass.

    Raises:
        OptionError: An option is missing, wrong, or contradicts another.
    """
    use = Use.SOURCE if is_stream is None else Use.STREAM if is_stream else Use.BATCH
    given, kafka, strange = _sorted_out(options)
    values = _values(given, Use.SOURCE)
    warnings = _told(strange, is_strict=values["strictOptions"])
    if is_stream:
        _refuse_ends(given)
    ways = _subscription(given, values)
    _check_kafka(kafka, use, "Kafka consumer")
    starting_option, starting = _position(given, values, "starting", LATEST if is_stream else EARLIEST)
    ending_option, ending = _position(given, values, "ending", LATEST)
    if is_stream is False:
        _check_batch(starting, starting_option, ending, ending_option)
    warnings += _warnings(given, is_stream)
    if values["readFrom"] == "segments" and not (values["dataDir"] or values["tieredStore"]):
        raise OptionError("readFrom", "option 'readFrom' is 'segments': give 'dataDir' or 'tieredStore', to read from")
    return SourceOptions(
        is_stream=bool(is_stream),
        subscription=ways,
        starting=starting,
        starting_option=starting_option,
        ending=ending,
        ending_option=ending_option,
        fails_without_match=values["startingOffsetsByTimestampStrategy"] == "error",
        fail_on_data_loss=values["failOnDataLoss"],
        include_headers=values["includeHeaders"],
        columns=values["columns"],
        strips_wire_format=values["confluentWireFormat"] == "strip",
        min_partitions=values["minPartitions"],
        max_records_per_partition=values["maxRecordsPerPartition"],
        max_bytes_per_partition=None if is_stream else values["maxBytesPerPartition"],
        limits=_limits(values),
        poll_timeout_ms=values["kafkaConsumer.pollTimeoutMs"],
        offset_attempts=values["fetchOffset.numRetries"],
        offset_retry_interval_ms=values["fetchOffset.retryIntervalMs"],
        commit_offsets_to=values["commitOffsetsTo"] or None,
        read_from=values["readFrom"],
        data_dir=values["dataDir"] or None,
        tiered_store=values["tieredStore"] or None,
        gc_freeze=values["gcFreeze"],
        kafka=kafka,
        warnings=tuple(warnings),
    )


def read_sink_options(options: Mapping[str, str | None]) -> SinkOptions:
    """Read where a sink is to write.

    Args:
        options: As Spark hands them over.

    Raises:
        OptionError: An option is missing, wrong, or contradicts another.
    """
    given, kafka, strange = _sorted_out(options)
    values = _values(given, Use.SINK)
    warnings = _told(strange, is_strict=values["strictOptions"])
    _check_kafka(kafka, Use.SINK, "Kafka producer")
    partitioner = values["partitioner"]
    java = kafka.get("partitioner.class", "").strip()
    if java and "partitioner" not in given:
        partitioner = _PARTITIONERS.get(java.lower())
        if partitioner is None:
            raise OptionError(
                "kafka.partitioner.class",
                f"option 'kafka.partitioner.class' is '{java}', a class of Java's: the option 'partitioner' takes"
                " murmur2, roundrobin or crc32, and a column 'partition' names a partition for each row",
            )
    topic = values["topic"]
    if topic == "":
        raise OptionError("topic", "option 'topic' is empty: name a topic, or leave it out for a column 'topic'")
    if values["deadLetterGroup"] and not values["deadLetterTopic"]:
        raise OptionError(
            "deadLetterGroup",
            "option 'deadLetterGroup' says whose dead letters are: name their topic, with the option 'deadLetterTopic'",
        )
    return SinkOptions(
        topic=topic,
        partitioner=partitioner,
        exactly_once=values["exactlyOnce"],
        exactly_once_topic=values["exactlyOnceTopic"] or None,
        dead_letter_topic=values["deadLetterTopic"] or None,
        dead_letter_group=values["deadLetterGroup"] or None,
        gc_freeze=values["gcFreeze"],
        kafka=kafka,
        warnings=tuple(warnings),
    )


def _sorted_out(options: Mapping[str, str | None]) -> tuple[dict[str, str], dict[str, str], list[tuple[str, str]]]:
    """Return our options and Kafka's keys, in small letters, and faults: names that nobody knows, each with a hint."""
    known = by_lower_name()
    given: dict[str, str] = {}
    kafka: dict[str, str] = {}
    strange: list[str] = []
    for name, text in options.items():
        lower = name.lower()
        if text is None:
            continue
        if lower.startswith("kafka."):
            kafka[lower.removeprefix("kafka.")] = text
        elif lower in known:
            given[lower] = text
        elif lower not in _OF_SPARK and not lower.startswith(_OF_STORE):
            strange.append(name)
    unknown = [(f"no such option: '{name}'", _nearest(name)) for name in strange]
    for name, hint in unknown_keys(kafka).items():
        meant = f" ({hint.replace(chr(39), chr(39) + 'kafka.', 1)})" if hint else ""
        unknown.append((f"no client of Kafka has the option 'kafka.{name}'", meant))
    return given, kafka, unknown


def _told(unknown: list[tuple[str, str]], *, is_strict: bool) -> list[str]:
    """Return warnings of the names that nobody knows.

    Raises:
        OptionError: There are some, and this query is to have none.
    """
    if unknown and is_strict:
        said = "; ".join(fault + hint for fault, hint in unknown)
        raise OptionError("strictOptions", f"option 'strictOptions' is true: {said}")
    return [f"{fault}; it has no effect{hint}" for fault, hint in unknown]


def _nearest(name: str) -> str:
    import difflib  # on the way to a warning only

    if name.lower() in KNOWN_NAMES:
        return f" (did you mean 'kafka.{name.lower()}'?)"
    known = {option.name.lower(): option.name for option in OPTIONS} | {BOOTSTRAP: BOOTSTRAP}
    found = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return f" (did you mean '{known[found[0]]}'?)" if found else ""


def _values(given: Mapping[str, str], use: Use) -> dict[str, Any]:
    """Return the value of every option that counts here, given or default."""
    found = {}
    for option in OPTIONS:
        if option.use & use:
            text = given.get(option.name.lower())
            found[option.name] = option.default if text is None else read_value(option, text)
    return found


def _subscription(given: Mapping[str, str], values: Mapping[str, Any]) -> Subscription:
    ways = [name for name in _WAYS if name.lower() in given]
    if len(ways) != 1:
        which = "Only one" if ways else "One"
        said = f" Given are {' and '.join(ways)}." if ways else ""
        raise OptionError(
            ways[0] if ways else "subscribe",
            f"{which} of the following options must be specified for the source: {', '.join(_WAYS)}.{said} {_DOCS}",
        )
    (way,) = ways
    text = given[way.lower()]
    if way == "assign":
        return Assigned(parse_partitions("assign", text))
    if way == "subscribe":
        if not values["subscribe"]:
            raise OptionError(
                "subscribe",
                f"No topics to subscribe to: option 'subscribe' is '{text}'; expected e.g. topicA,topicB",
            )
        return Topics(values["subscribe"])
    from .topic_pattern import compile_pattern  # its own expressions take long to compile

    compile_pattern(text)
    return Pattern(text.strip())


def _check_kafka(kafka: Mapping[str, str], use: Use, whom: str) -> None:
    for name, (where, instead) in REFUSED_KAFKA_KEYS.items():
        if name in kafka and where & use:
            raise OptionError(f"kafka.{name}", f"Kafka option 'kafka.{name}' is not supported: {instead}.")
    if not kafka.get("bootstrap.servers", "").strip():
        raise OptionError(
            BOOTSTRAP, f"Option '{BOOTSTRAP}' must be specified for configuring {whom}, e.g. broker1:9092,broker2:9092"
        )


def _refuse_ends(given: Mapping[str, str]) -> None:
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        if name.lower() in given:
            raise OptionError(
                name,
                f"option '{name}': an ending offset or timestamp is not valid in streaming queries;"
                " Trigger.AvailableNow ends a stream at what there is when it starts",
            )


def _position(given: Mapping[str, str], values: Mapping[str, Any], side: str, default: int) -> tuple[str, Position]:
    """Return where a query begins or ends, and the option that said so: the first that is given."""
    at, each, offsets = f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"
    if at.lower() in given:
        return at, AtTimestamp(values[at])
    if each.lower() in given:
        return each, EachTimestamp(parse_timestamps(each, values[each]))
    if offsets.lower() not in given:
        return offsets, Everywhere(default)
    words = {"earliest": EARLIEST, "latest": LATEST}
    word = values[offsets].lower()
    return offsets, Everywhere(words[word]) if word in words else EachOffset(parse_offsets(offsets, values[offsets]))


def _check_batch(starting: Position, starting_option: str, ending: Position, ending_option: str) -> None:
    for position, option, limit, text in (
        (starting, starting_option, LATEST, "starting offset can't be latest for batch queries"),
        (ending, ending_option, EARLIEST, "ending offset can't be earliest for batch queries"),
    ):
        if position == Everywhere(limit):
            raise OptionError(option, f"option '{option}': {text}: there would be nothing to read")
        if isinstance(position, EachOffset):
            wrong = [str(one) for one, offset in sorted(position.offsets.items()) if offset == limit]
            if wrong:
                raise OptionError(option, f"option '{option}' for {', '.join(wrong)} is {limit}: {text}")
    if isinstance(starting, EachOffset) and isinstance(ending, EachOffset):
        _check_order(starting.offsets, ending.offsets, "offset")
    if isinstance(starting, EachTimestamp) and isinstance(ending, EachTimestamp):
        _check_order(starting.timestamps_ms, ending.timestamps_ms, "timestamp")
    if isinstance(starting, AtTimestamp) and isinstance(ending, AtTimestamp):
        _check_order({"every partition": starting.timestamp_ms}, {"every partition": ending.timestamp_ms}, "timestamp")


def _check_order(start: Mapping[Any, int], end: Mapping[Any, int], what: str) -> None:
    for one in sorted(start.keys() & end.keys()):
        if start[one] > end[one] >= 0:
            raise OptionError(
                "startingOffsets",
                f"The specified start {what} {start[one]} is greater than the end {what} {end[one]} for {one}",
            )


def _limits(values: Mapping[str, Any]) -> TriggerLimits:
    least, most = values["minOffsetsPerTrigger"], values["maxOffsetsPerTrigger"]
    if least is not None and most is not None and least > most:
        raise OptionError(
            "minOffsetsPerTrigger",
            f"The value of minOffsetsPerTrigger({least}) is higher than the maxOffsetsPerTrigger({most})",
        )
    return TriggerLimits(max_offsets=most, min_offsets=least, max_delay_ms=values["maxTriggerDelay"])


def _warnings(given: Mapping[str, str], is_stream: bool | None) -> list[str]:
    warnings = []
    for side in ("starting", "ending"):
        order = (f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets")
        both = [name for name in order if name.lower() in given]
        warnings += [f"option '{name}' is ignored: '{both[0]}' is given, which counts first" for name in both[1:]]
    if is_stream is False:
        streams = [option.name for option in OPTIONS if option.use is Use.STREAM and option.name.lower() in given]
        warnings += [f"option '{name}' is ignored in batch queries" for name in streams]
    if is_stream and "maxBytesPerPartition".lower() in given:
        # A sink that remembers what it wrote remembers it for each task: the offsets and the options have to say all.
        warnings.append(
            "option 'maxBytesPerPartition' is ignored in streaming queries: a micro-batch that is repeated has to be"
            " cut as it was, and the bytes of a log change meanwhile; 'maxRecordsPerPartition' and 'minPartitions' cut"
            " streams"
        )
    return warnings


assert all(option.kind is not Kind.WORD or option.words for option in OPTIONS), "a word is one of some words"
