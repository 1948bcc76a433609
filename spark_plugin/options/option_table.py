"""Pure core: the table of options: name, type, default, where it counts, what it does.

Names are Spark's connector's where it has one, in any case of letters; those that are ours alone say so. What a value
means is read by `options`; the reference page is printed from here.

*Source:* Spark's Kafka integration guide.
"""

from __future__ import annotations

import re
from enum import Enum, Flag
from typing import Any, Final

import attrs

from ..errors import OptionError

__all__ = ["OPTIONS", "Kind", "Option", "Use", "by_lower_name", "read_value"]


class Use(Flag):
    """Where an option counts."""

    BATCH = 1
    STREAM = 2
    SINK = 4
    SOURCE = BATCH | STREAM
    EVERYWHERE = SOURCE | SINK


class Kind(Enum):
    """How a text is read; the value is what the reference calls it."""

    TEXT = "text"
    NAMES = "names, separated by commas"
    JSON = "JSON"
    WORD_OR_JSON = "word or JSON"
    BOOLEAN = "boolean"
    NUMBER = "whole number"
    DURATION = "duration"
    WORD = "word"


@attrs.frozen(kw_only=True)
class Option:
    """One option.

    Attributes:
        name: As the reference writes it.
        kind: How its text is read.
        default: What counts when it is not given, as read; None when nothing does.
        shown_default: How the reference writes the default, where that is not plain.
        use: Where it counts; elsewhere it is let pass.
        doc: What it does.
        words: What is allowed, for WORD.
        least: The smallest number that is allowed.
        most: The largest.
        is_ours: Whether Spark's connector does not have it.
    """

    name: str
    kind: Kind
    default: Any = None
    shown_default: str = ""
    use: Use
    doc: str
    words: tuple[str, ...] = ()
    least: int = 0
    most: int = 2**63 - 1
    is_ours: bool = False


_INT_MAX: Final = 2**31 - 1

OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        name="subscribe",
        kind=Kind.NAMES,
        use=Use.SOURCE,
        doc="The topics to read. Exactly one of `subscribe`, `subscribePattern` and `assign` has to be given.",
    ),
    Option(
        name="subscribePattern",
        kind=Kind.TEXT,
        use=Use.SOURCE,
        doc="A regular expression of Java's: every topic in whose name it is found is read, but for Kafka's internal"
        " ones; `^` and `$` bind it to the whole name. What Python reads in another way is refused.",
    ),
    Option(
        name="assign",
        kind=Kind.JSON,
        use=Use.SOURCE,
        doc='The partitions to read, for instance `{"orders":[0,1]}`.',
    ),
    Option(
        name="startingOffsets",
        kind=Kind.WORD_OR_JSON,
        shown_default="`earliest` for a batch, `latest` for a stream",
        use=Use.SOURCE,
        doc="Where a query begins: `earliest`, `latest` (streams), or an offset for every partition,"
        ' `{"orders":{"0":23,"1":-2}}`, where -2 stands for earliest and -1 for latest (streams). A stream with a'
        " checkpoint goes on where that ends.",
    ),
    Option(
        name="endingOffsets",
        kind=Kind.WORD_OR_JSON,
        shown_default="`latest`",
        use=Use.BATCH,
        doc="Where a batch ends: `latest`, or an offset for every partition as in `startingOffsets`, -1 for latest. A"
        " stream refuses it.",
    ),
    Option(
        name="startingTimestamp",
        kind=Kind.NUMBER,
        use=Use.SOURCE,
        doc="Every partition begins with the first record of this time or later, in milliseconds since the Unix epoch."
        " Counts before `startingOffsetsByTimestamp`, and that before `startingOffsets`.",
    ),
    Option(
        name="endingTimestamp",
        kind=Kind.NUMBER,
        use=Use.BATCH,
        doc="Every partition ends before the first record of this time or later; at its end when there is none. A"
        " stream refuses it.",
    ),
    Option(
        name="startingOffsetsByTimestamp",
        kind=Kind.JSON,
        use=Use.SOURCE,
        doc='The same with a time for every partition: `{"orders":{"0":1700000000000}}`.',
    ),
    Option(
        name="endingOffsetsByTimestamp",
        kind=Kind.JSON,
        use=Use.BATCH,
        doc="The same for the end. A stream refuses it.",
    ),
    Option(
        name="startingOffsetsByTimestampStrategy",
        kind=Kind.WORD,
        default="error",
        words=("error", "latest"),
        use=Use.SOURCE,
        doc="What to do when a partition has no record of the starting time or later.",
    ),
    Option(
        name="failOnDataLoss",
        kind=Kind.BOOLEAN,
        default=True,
        use=Use.SOURCE,
        doc="Whether a query fails when records that it was to read are gone: see the table below.",
    ),
    Option(
        name="includeHeaders",
        kind=Kind.BOOLEAN,
        default=False,
        use=Use.SOURCE,
        doc="Whether there is a column `headers`; null for a record without any.",
    ),
    Option(
        name="columns",
        kind=Kind.NAMES,
        use=Use.SOURCE,
        is_ours=True,
        doc="The columns to read, in this order, for instance `value,offset`: what is not named is neither decoded nor"
        " sent to the JVM. The same as a schema of such columns.",
    ),
    Option(
        name="confluentWireFormat",
        kind=Kind.WORD,
        words=("strip",),
        use=Use.SOURCE,
        is_ours=True,
        doc="`strip` takes the 5 bytes of a schema registry off each value and puts the schema's id into a column"
        " `schemaId`, so that `from_avro` can read the value. Other values stay as they are, with a null id.",
    ),
    Option(
        name="minPartitions",
        kind=Kind.NUMBER,
        least=1,
        most=_INT_MAX,
        use=Use.SOURCE,
        doc="Into about how many tasks to cut a read when there are fewer partitions than that, larger ones more often."
        " Counts offsets, as the next one does.",
    ),
    Option(
        name="maxRecordsPerPartition",
        kind=Kind.NUMBER,
        least=1,
        use=Use.SOURCE,
        doc="The most offsets that one task reads. Applied before `minPartitions`.",
    ),
    Option(
        name="maxBytesPerPartition",
        kind=Kind.NUMBER,
        least=1,
        use=Use.BATCH,
        is_ours=True,
        doc="About how many bytes of the log one task reads at most: as indexes and manifests tell where files are"
        " read, else as if the bytes of a log were spread evenly. Applied before `maxRecordsPerPartition` and"
        " `minPartitions` where brokers are read, after them where files are. A stream ignores it, with a warning: a"
        " micro-batch that is repeated has to be cut as it was, and how many bytes it has depends on when that is"
        " asked.",
    ),
    Option(
        name="maxOffsetsPerTrigger",
        kind=Kind.NUMBER,
        least=1,
        use=Use.STREAM,
        doc="About how many offsets a micro-batch takes at most, shared among the partitions by how much waits in each;"
        " each that has something gets at least one.",
    ),
    Option(
        name="minOffsetsPerTrigger",
        kind=Kind.NUMBER,
        least=1,
        use=Use.STREAM,
        doc="How many offsets a micro-batch waits for; not with AvailableNow.",
    ),
    Option(
        name="maxTriggerDelay",
        kind=Kind.DURATION,
        default=15 * 60_000,
        shown_default="`15m`",
        use=Use.STREAM,
        doc="How long `minOffsetsPerTrigger` may hold a micro-batch back: a number with us, ms, s, m, min, h or d;"
        " without one in milliseconds.",
    ),
    Option(
        name="kafkaConsumer.pollTimeoutMs",
        kind=Kind.NUMBER,
        default=120_000,
        least=1,
        use=Use.SOURCE,
        doc="How long a task waits for records that should be there before it fails.",
    ),
    Option(
        name="fetchOffset.numRetries",
        kind=Kind.NUMBER,
        default=3,
        least=1,
        most=_INT_MAX,
        use=Use.SOURCE,
        doc="How often the driver asks for offsets at most before it gives up.",
    ),
    Option(
        name="fetchOffset.retryIntervalMs",
        kind=Kind.NUMBER,
        default=1_000,
        use=Use.SOURCE,
        doc="The pause between such attempts; Spark's guide says 10 for its connector, whose code has 1000.",
    ),
    Option(
        name="groupIdPrefix",
        kind=Kind.TEXT,
        use=Use.SOURCE,
        doc="Accepted without effect: reading needs no consumer group here.",
    ),
    Option(
        name="commitOffsetsTo",
        kind=Kind.TEXT,
        use=Use.STREAM,
        is_ours=True,
        doc="A consumer group to which the offsets of finished micro-batches are committed, so that tools for lag see"
        " them: one batch late, when Spark says that they are finished.",
    ),
    Option(
        name="readFrom",
        kind=Kind.WORD,
        default="auto",
        words=("auto", "broker", "segments"),
        use=Use.SOURCE,
        is_ours=True,
        doc="`auto` reads files where `dataDir` or `tieredStore` is given and has them, and brokers for the rest;"
        " `broker` never reads files; `segments` fails where `auto` would ask a broker for records.",
    ),
    Option(
        name="dataDir",
        kind=Kind.TEXT,
        use=Use.SOURCE,
        is_ours=True,
        doc="Data directories of brokers that driver and workers can read, absolute, separated by commas: segments are"
        " read from their files, up to the last stable offset.",
    ),
    Option(
        name="tieredStore",
        kind=Kind.TEXT,
        use=Use.SOURCE,
        is_ours=True,
        doc="The object store of tiered storage, as the broker's `odradek.tiered.store` writes it: cold segments are"
        " read from there. Its own settings are `tieredStore.region` and so on, as the broker's.",
    ),
    Option(
        name="strictOptions",
        kind=Kind.BOOLEAN,
        default=False,
        use=Use.EVERYWHERE,
        is_ours=True,
        doc="Whether a name that nobody knows, a misspelt one for instance, is an error instead of a warning.",
    ),
    Option(
        name="gcFreeze",
        kind=Kind.BOOLEAN,
        default=True,
        use=Use.EVERYWHERE,
        is_ours=True,
        doc="Whether a Python worker sets its modules aside from the garbage collector, which saves tens of"
        " milliseconds a task.",
    ),
    Option(
        name="topic",
        kind=Kind.TEXT,
        use=Use.SINK,
        doc="The topic that all rows are written to; a column `topic` is then not looked at.",
    ),
    Option(
        name="deadLetterTopic",
        kind=Kind.TEXT,
        use=Use.SINK,
        is_ours=True,
        doc="Where rows go that the query could not make sense of: those whose column `deadLetterReason` (string) is"
        " not null. They get the headers of a dead letter; a column `deadLetterOrigin`, a struct of `topic`,"
        " `partition` and `offset`, says where they were read.",
    ),
    Option(
        name="deadLetterGroup",
        kind=Kind.TEXT,
        use=Use.SINK,
        is_ours=True,
        doc="The group that dead letters are said to be of: with that of `odradek retry enable`, `odradek dlq` lists"
        " and replays them.",
    ),
    Option(
        name="partitioner",
        kind=Kind.WORD,
        default="murmur2",
        words=("murmur2", "roundrobin", "crc32"),
        use=Use.SINK,
        is_ours=True,
        doc="Where rows go that name no partition: `murmur2` as Kafka's clients for Java, `crc32` as librdkafka,"
        " `roundrobin` in turns.",
    ),
    Option(
        name="exactlyOnce",
        kind=Kind.BOOLEAN,
        default=False,
        use=Use.SINK,
        is_ours=True,
        doc="Whether rows are written in transactions that the driver commits: each row of a stream once, a batch as a"
        " whole or not at all. Readers have to read committed records.",
    ),
    Option(
        name="exactlyOnceTopic",
        kind=Kind.TEXT,
        use=Use.SINK,
        is_ours=True,
        doc="Under which existing topic `exactlyOnce` keeps its offsets: by default the option `topic`, or, where a"
        " column names topics, `__consumer_offsets`. The same for the whole life of a query.",
    ),
)
"""Every option but Kafka's own, `kafka.*`."""

BOOTSTRAP: Final = "kafka.bootstrap.servers"

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
_DURATION: Final = re.compile(r"(-?[0-9]{1,18})([a-z]*)", re.ASCII)
_MILLISECONDS: Final = {"": 1.0, "us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000}
_UNITS: Final = {**_MILLISECONDS, "d": 86_400_000}


def by_lower_name() -> dict[str, Option]:
    """Return the options by their names in small letters, as Spark hands them over."""
    return {option.name.lower(): option for option in OPTIONS}


def read_value(option: Option, text: str) -> Any:
    """Return what a text means, as far as its kind tells; JSON stays a text.

    Raises:
        OptionError: It is none.
    """
    trimmed = text.strip()
    match option.kind:
        case Kind.BOOLEAN:
            return _boolean(option, trimmed)
        case Kind.NUMBER:
            return _number(option, trimmed)
        case Kind.DURATION:
            return _duration(option, trimmed)
        case Kind.WORD:
            if trimmed.lower() not in option.words:
                raise _unexpected(option, text, f"one of {', '.join(option.words)}")
            return trimmed.lower()
        case Kind.NAMES:
            return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    return trimmed


def _boolean(option: Option, text: str) -> bool:
    words = {"true": True, "false": False}
    if text.lower() not in words:
        raise _unexpected(option, text, "true or false")
    return words[text.lower()]


def _number(option: Option, text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text):
        raise _unexpected(option, text, "a single whole number")
    number = int(text)
    if not option.least <= number <= option.most:
        limit = "it must be positive" if option.least == 1 and number < 1 else f"{option.least} to {option.most}"
        raise _unexpected(option, text, f"a whole number: {limit}")
    return number


def _duration(option: Option, text: str) -> int:
    found = _DURATION.fullmatch(text.lower())
    if found is None or found[2] not in _UNITS or int(found[1]) < 0:
        raise _unexpected(option, text, f"a duration, for instance 15m; units are {', '.join(filter(None, _UNITS))}")
    return int(int(found[1]) * _UNITS[found[2]])


def _unexpected(option: Option, text: str, expected: str) -> OptionError:
    return OptionError(option.name, f"option '{option.name}': Expected {expected}, got '{text}'")
