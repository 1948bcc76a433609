"""Pure core: renders the reference of the options: the page in docs, from the tables that the source reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..client.setting_keys import EFFECTIVE_KEYS, KNOWN_NAMES
from ..direct.settings import STORE_OPTIONS
from ..reading.data_loss import EVENTS
from ..schema import FIELDS, SINK_TYPES
from .option_table import BOOTSTRAP, OPTIONS, Kind, Option, Use
from .options import REFUSED_KAFKA_KEYS

__all__ = ["MOVED", "WRITE_KEYS", "render_page"]

WRITE_KEYS: Final = {
    "acks": "`all` (the default) or 1; with 0 the sink waits for answers all the same, as with 1.",
    "batch.size": "The size of a batch before compression: 1 MiB unless it is given.",
    "compression.type": "The codec: none (the default), gzip, snappy, lz4 or zstd.",
    "compression.gzip.level": "gzip's level.",
    "compression.lz4.level": "lz4's level.",
    "compression.zstd.level": "zstd's level.",
    "delivery.timeout.ms": "How long a batch may take with its repetitions.",
    "enable.idempotence": "Whether repetitions are recognised by the broker, so that they double nothing; true.",
    "max.in.flight.requests.per.connection": "Unanswered requests of one broker, at most 5.",
    "max.request.size": "The most bytes of a request, and of a record.",
    "retries": "How often a batch is sent again.",
    "partitioner.class": "Kafka's `RoundRobinPartitioner` and `DefaultPartitioner` stand for `roundrobin` and"
    " `murmur2`, unless the option `partitioner` is given; any other is refused.",
    "transaction.timeout.ms": "With `exactlyOnce`: when brokers abort what was not ended; 15 minutes unless it is"
    " given. It has to be longer than a micro-batch.",
}
"""Kafka's keys that a sink reads beside those of the client."""

MOVED: Final = {
    "subscribe": "the same; internal topics that it names are read, where the connector gives no rows",
    "subscribePattern": "the same, but for what only Java's expressions have: refused, with what to write",
    "assign": "the same; a partition that is not there is refused, where the connector gives no rows",
    "startingOffsets": "the same; a name twice in the JSON is refused",
    "endingOffsets": "the same; a name twice in the JSON is refused",
    "startingTimestamp": "the same; below 0 is refused",
    "endingTimestamp": "the same for a batch; a stream refuses it, where the connector does not look at it",
    "startingOffsetsByTimestamp": "the same; below 0 is refused",
    "endingOffsetsByTimestamp": "the same; below 0 is refused",
    "failOnDataLoss": "the same, and notices a topic made anew; with `false` a topic that is gone ends no stream",
    "maxRecordsPerPartition": "the same for a stream; cuts the tasks of a batch too, where the connector does not",
    "maxOffsetsPerTrigger": "the same; 0 or less is refused, where the connector ends the query without a word",
    "minOffsetsPerTrigger": "the same; not looked at with AvailableNow",
    "fetchOffset.numRetries": "the same; below 1 is refused",
    "groupIdPrefix": "without effect: reading needs no consumer group",
}
"""Options of the connector that do not do all as there."""

_MOVED_HEAD: Final = """
## A job that moves from the connector

What happens here to each option of Spark's Kafka connector (4.2). With `strictOptions=true` a job fails on a name that
neither knows; the connector passes over it in silence.

| option there | here |
| --- | --- |"""

_MOVED_REST: Final = (
    ("`kafka.*`", "[Kafka's keys](#kafkas-keys): read, refused, or accepted without effect"),
    ("`kafka.group.id`", "without effect: reading needs no consumer group; `commitOffsetsTo` names one for tools"),
    ("`spark.kafka.consumer.*`, `spark.kafka.producer.*` of the session", "without effect: caches are in the workers"),
    (
        "`spark.kafka.clusters.*` of the session",
        "without effect: there are no delegation tokens; SASL by `kafka.sasl.*`",
    ),
)

_OTHER_DOCS: Final = {
    "client.rack": "Where the client is; brokers may then name a nearer replica to fetch from.",
    "max.partition.fetch.bytes": "What one fetch asks for; a larger batch comes whole.",
    "security.protocol": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    "send.buffer.bytes": "The system's send buffer of a connection; -1 leaves it to the system.",
    "receive.buffer.bytes": "The system's receive buffer of a connection; -1 leaves it to the system.",
}
"""What is better said for this client than for those that share the key."""

_HEAD: Final = f"""\
# Options of the Spark source and sink

Generated from the tables in `spark_plugin` by `python -m tools.render_spark_options`; a test fails when this page is
stale. How to use them: [Read and write topics with Spark](../how-to/spark.md).

Names are taken in any case of letters. `{BOOTSTRAP}` has to be given, and for reading exactly one of `subscribe`,
`subscribePattern` and `assign`. Spark's Kafka connector has no options marked *ours*; the others mean here what they
mean there, except for [what differs](../how-to/spark.md#what-differs-from-the-connector). A wrong value is refused when
the query is made, with the option, the value and the form that is expected. An unknown name earns a warning with the
nearest known one, and the query runs; with `strictOptions` it fails.
"""

_SECTIONS: Final = (
    ("Reading", "Batch and streaming.", Use.SOURCE),
    ("Reading: batches alone", "", Use.BATCH),
    ("Reading: streams alone", "A batch ignores them, with a warning.", Use.STREAM),
    ("Writing", "Batch and streaming.", Use.SINK),
    ("Reading and writing", "", Use.EVERYWHERE),
)

_KEYS_HEAD: Final = """
## Kafka's keys

Options `kafka.*` are keys of Kafka's clients. These have an effect:
"""

_ROW: Final = "| option | type | default | what it does |\n| --- | --- | --- | --- |"


def render_page() -> str:
    """Return the whole reference as Markdown."""
    return _HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for title, text, use in _SECTIONS:
        yield f"\n## {title}\n"
        if text:
            yield f"{text}\n"
        yield _ROW
        yield from (_option(option) for option in OPTIONS if option.use is use)
        if use is Use.SOURCE:
            names = ", ".join(f"`tieredStore.{name}`" for name in STORE_OPTIONS)
            yield f"\nSettings of the store, as the broker's `odradek.tiered.store.*`: {names}."
    yield from _data_loss()
    yield from _columns()
    yield from _moved()
    yield from _kafka_keys()


def _option(option: Option) -> str:
    default = option.shown_default
    if not default and option.default is not None:
        default = f"`{str(option.default).lower()}`"
    kind = " or ".join(f"`{word}`" for word in option.words) if option.kind is Kind.WORD else option.kind.value
    ours = "*ours* " if option.is_ours else ""
    return f"| `{option.name}` | {kind} | {default} | {ours}{option.doc} |"


def _moved() -> Iterator[str]:
    yield _MOVED_HEAD
    yield from (f"| `{each.name}` | {MOVED.get(each.name, 'the same')} |" for each in OPTIONS if not each.is_ours)
    yield from (f"| {name} | {what} |" for name, what in _MOVED_REST)


def _data_loss() -> Iterator[str]:
    yield "\n## failOnDataLoss\n"
    yield "What happens when records that were to be read are gone; when it is false a warning says so.\n"
    yield "| what happened | true | false |\n| --- | --- | --- |"
    yield from (f"| {event.value} | {texts.true} | {texts.false} |" for event, texts in EVENTS.items())
    yield "\nGaps that compaction, aborted transactions and control records leave are no loss. A start beyond the end"
    yield "of a log that a user gave is an error in both cases."


def _columns() -> Iterator[str]:
    yield "\n## Columns\n"
    yield "Those of the source, each nullable. A schema, or the option `columns`, may name any of them, in any order.\n"
    yield "| column | type |\n| --- | --- |"
    yield from (f"| `{field.name}` | {field.type} |" for field in FIELDS.values())
    yield "\n`headers` is there with `includeHeaders` or when it is named, `schemaId` with `confluentWireFormat=strip`."
    yield "\nThose of the sink; `value` has to be there, and `topic` where no option says it. Others are not written.\n"
    yield "| column | type |\n| --- | --- |"
    yield from (f"| `{name}` | {' or '.join(types)} |" for name, types in SINK_TYPES.items())


def _kafka_keys() -> Iterator[str]:
    yield _KEYS_HEAD
    yield "| key | default | what it does |\n| --- | --- | --- |"
    for key in EFFECTIVE_KEYS:
        default = "" if key.default in {None, ""} or key.default == () else f"`{_text(key.default)}`"
        yield f"| `kafka.{key.name}` | {default} | {_OTHER_DOCS.get(key.name, key.doc)} |"
    yield "\nAnd for writing:\n"
    yield "| key | what it does |\n| --- | --- |"
    yield from (f"| `kafka.{name}` | {doc} |" for name, doc in WRITE_KEYS.items())
    yield "\nThese are refused:\n"
    yield "| key | where | what to do |\n| --- | --- | --- |"
    where = {Use.SOURCE: "reading", Use.SINK: "writing", Use.EVERYWHERE: "reading and writing"}
    yield from (f"| `kafka.{name}` | {where[use]} | {doc} |" for name, (use, doc) in REFUSED_KAFKA_KEYS.items())
    others = KNOWN_NAMES - {key.name for key in EFFECTIVE_KEYS} - WRITE_KEYS.keys() - REFUSED_KAFKA_KEYS.keys()
    yield f"\nThese {len(others)} are accepted without effect, so that jobs with them run; any other earns a warning:\n"
    yield ", ".join(f"`{name}`" for name in sorted(others)) + "."


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
