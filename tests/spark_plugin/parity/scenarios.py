"""What takes more than options: frames that are written, topics that lose what is not read yet; and all inputs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from odradek.client import BlockingAdmin, BlockingConsumer, TopicPartition

from .inputs import BATCH, STREAM
from .observe import digest
from .topics import create_topic, cut, delete_topic, produce_numbers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .direct import DirectObserver
    from .observe import Observer, Outcome

Change: TypeAlias = Callable[["DataFrame"], "DataFrame"]


def _literal(name: str, value: Any, kind: str | None = None) -> Change:
    """Return a function that puts a column with one value into a frame."""

    def change(frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions

        column = functions.lit(value)
        return frame.withColumn(name, column.cast(kind) if kind else column)

    return change


def _one_header(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    pair = functions.struct(functions.lit("k").alias("key"), functions.lit(b"v").alias("value"))
    return frame.withColumn("headers", functions.array(pair))


def _same(frame: DataFrame) -> DataFrame:
    return frame


WRITES: Mapping[str, tuple[Change, Mapping[str, str | None], str | None]] = {
    "key and value are texts": (_same, {}, "append"),
    "key and value are bytes": (
        lambda frame: frame.selectExpr("cast(key as binary) key", "cast(value as binary) value"),
        {},
        "append",
    ),
    "no key": (lambda frame: frame.select("value"), {}, "append"),
    "default save mode": (_same, {}, None),
    "mode ignore": (_same, {}, "ignore"),
    "mode overwrite": (_same, {}, "overwrite"),
    "no topic": (_same, {"topic": None}, "append"),
    "topic column": (_literal("topic", "TOPIC"), {"topic": None}, "append"),
    "topic column null": (_literal("topic", None, "string"), {"topic": None}, "append"),
    "topic column beaten by the option": (_literal("topic", "another"), {}, "append"),
    "topic column not a text": (_literal("topic", 1), {"topic": None}, "append"),
    "no value column": (lambda frame: frame.select("key"), {}, "append"),
    "value INT": (lambda frame: frame.selectExpr("cast(key as int) value"), {}, "append"),
    "key INT": (_literal("key", 1), {}, "append"),
    "null value": (_literal("value", None, "string"), {}, "append"),
    "partition column INT": (_literal("partition", 1), {}, "append"),
    "partition column null": (_literal("partition", None, "int"), {}, "append"),
    "partition column STRING": (_literal("partition", "1"), {}, "append"),
    "partition that is not there": (_literal("partition", 9), {"kafka.max.block.ms": "4000"}, "append"),
    "headers": (_one_header, {}, "append"),
    "headers of a wrong type": (_literal("headers", "x"), {}, "append"),
    "a column more": (_literal("extra", 1), {}, "append"),
    "kafka.key.serializer": (_same, {"kafka.key.serializer": "x"}, "append"),
    "kafka.acks a word": (_same, {"kafka.acks": "word"}, "append"),
    "kafka.compression.type zstd": (_same, {"kafka.compression.type": "zstd"}, "append"),
    "a record over max.request.size": (
        lambda frame: frame.selectExpr("key", "repeat('x', 1200000) value"),
        {},
        "append",
    ),
    "a topic that is created": (_same, {"topic": "TOPIC-not-there"}, "append"),
}
"""Name to what is done to ten rows of texts `key` and `value`, the options beside `topic`, and the save mode."""


def write(observer: Observer, name: str, label: str) -> Outcome:
    """Write as `WRITES` says into a topic of its own, and say what stands in it."""
    change, options, mode = WRITES[name]
    topic = topic_for(name, label)
    create_topic(observer.bootstrap, topic, 2)
    frame = observer.spark.range(10).selectExpr("cast(id as string) key", "concat('value ', id) value")
    frame = change(frame)
    if "topic" in frame.columns and name == "topic column":
        frame = _literal("topic", topic)(frame)
    given = given_options(options, topic)
    outcome = observer.write(frame, given, mode)
    if "refused" in outcome:
        outcome["error"] = outcome["error"].replace(topic, "TOPIC")
    stored = given.get("topic", topic)
    return {**outcome, **stored_in(observer.bootstrap, stored)}


def topic_for(name: str, label: str) -> str:
    """Return the topic that is written to."""
    return f"{label}-{re.sub('[^a-z]+', '-', name.lower())}"


def given_options(options: Mapping[str, str | None], topic: str) -> dict[str, str]:
    """Return a writer's options for a topic."""
    whole = {"topic": topic, **options}
    return {key: value.replace("TOPIC", topic) for key, value in whole.items() if value is not None}


def stored_in(bootstrap: str, topic: str) -> Outcome:
    """Return how many records a topic has, and a digest of them; the partition counts where there is a key."""
    with BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
        partitions = [TopicPartition(topic, number) for number in admin.describe_topic(topic).partitions]
    rows = []
    with BlockingConsumer({"bootstrap.servers": bootstrap}) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            rows += [
                (record.key, record.value, [list(pair) for pair in record.headers], record.key and record.partition)
                for record in consumer.poll(timeout_ms=1000)
            ]
    return {"records": len(rows), "digest": digest(rows)}


_LOSSES = {
    "a batch from below the log's start": ("batch", "cut"),
    "a stream that goes on below the log's start": ("stream", "cut"),
    "a stream whose topic was made anew with less": ("stream", "anew"),
    "a stream whose topic is gone": ("stream", "gone"),
}
LOSSES: Mapping[str, tuple[str, str, str]] = {
    f"{name}, failOnDataLoss {fails}": (kind, what, fails)
    for name, (kind, what) in _LOSSES.items()
    for fails in ("true", "false")
}
"""Name to what reads, what became of the topic, and the option `failOnDataLoss`."""


def lose(observer: Observer | DirectObserver, name: str, label: str) -> Outcome:
    """Have a query meet a topic that lost what it is about to read.

    Args:
        observer: The format, the session and the broker.
        name: In `LOSSES`.
        label: Begins the topic's name.
    """
    kind, what, fails = LOSSES[name]
    topic = f"{label}-{kind}-{what}-{fails}"
    create_topic(observer.bootstrap, topic, 1)
    options = {"subscribe": topic, "startingOffsets": "earliest", "failOnDataLoss": fails}
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder)
        produce_numbers(observer.bootstrap, topic, 1, 200)
        if kind == "stream":
            observer.stream(options, checkpoint)
        produce_numbers(observer.bootstrap, topic, 1, 800)
        if what == "cut":
            cut(observer.bootstrap, topic, 500)
        else:
            delete_topic(observer.bootstrap, topic)
        if what == "anew":
            create_topic(observer.bootstrap, topic, 1)
            produce_numbers(observer.bootstrap, topic, 1, 100)
        if kind == "stream":
            outcome = observer.stream(options, checkpoint)
        else:
            outcome = observer.batch({**options, "startingOffsets": f'{{"{topic}":{{"0":100}}}}'})
    kept = {key: value for key, value in outcome.items() if key in {"rows", "refused"}}
    return kept | ({"error": outcome["error"].replace(topic, "TOPIC")} if "error" in outcome else {})


INPUTS: Mapping[str, Sequence[str]] = {"batch": [*BATCH], "stream": [*STREAM], "write": [*WRITES], "loss": [*LOSSES]}
"""The names of all inputs, by kind."""


def observe(observer: Observer, kind: str, name: str, label: str) -> Outcome:
    """Say what a format does for an input; `label` begins the names of topics that are made for it."""
    if kind == "batch":
        return observer.batch(BATCH[name])
    if kind == "stream":
        return observer.stream(STREAM[name])
    return write(observer, name, label) if kind == "write" else lose(observer, name, label)
