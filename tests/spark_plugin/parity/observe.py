"""Runs the inputs through a Spark session and says what came of each, without what differs from run to run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .inputs import FACTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from .inputs import Options

Outcome: TypeAlias = dict[str, Any]
"""`{"refused": stage, "error": text}`, or what was read: the number of rows, of tasks, a digest of the rows."""
TEXT_MAX = 400
STREAM_LIMIT_S = 60


def reader_options(bootstrap: str, options: Options) -> dict[str, str]:
    """Return all options of a reader."""
    whole = {"kafka.bootstrap.servers": bootstrap, "subscribe": FACTS, **options}
    return {name: value for name, value in whole.items() if value is not None}


def told(error: BaseException, bootstrap: str) -> str:
    """Return what an error says, in one line: its own first lines, then the innermost cause's."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        chain: list[str] = []
        while java is not None and len(chain) < 8:
            chain.append(str(java.toString()))
            java = java.getCause()
        text = chain[0] if len(chain) == 1 else f"{chain[0]} ... caused by {chain[-1]}"
    else:
        text = f"{type(error).__name__}: {error}"
        cause = getattr(error, "_cause", None)
        while cause is not None and getattr(cause, "_cause", None) is not None:
            cause = cause._cause
        if cause is not None:
            text = f"{text[:TEXT_MAX]} ... caused by {cause}"
    return plain(text, bootstrap)


def plain(text: str, bootstrap: str) -> str:
    """Return a text in one line, without addresses, ids and times."""
    text = " ".join(text.replace(bootstrap, "BOOTSTRAP").split())
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r"@[0-9a-f]{5,}", "@ADDRESS", text)
    text = re.sub(r"stage \d+\.\d+|\(TID \d+\)", "stage", text)
    return text[: 2 * TEXT_MAX]


def refused(stage: str, error: BaseException, bootstrap: str) -> Outcome:
    """Return the outcome of what was refused."""
    return {"refused": stage, "error": told(error, bootstrap)}


def digest(rows: Iterable[tuple[Any, ...]]) -> str:
    """Return a digest of rows, in whatever order they came."""
    texts = sorted(json.dumps(row, default=lambda data: bytes(data).hex()) for row in rows)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def plain_rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Collect a frame of records; timestamps as microseconds, headers as pairs."""
    from pyspark.sql import functions

    names = [
        functions.unix_micros("timestamp").alias("timestamp") if name == "timestamp" else functions.col(name)
        for name in frame.columns
    ]
    rows = [tuple(row) for row in frame.select(*names).collect()]
    if "headers" not in frame.columns:
        return rows
    return [(*row[:-1], None if row[-1] is None else [tuple(pair) for pair in row[-1]]) for row in rows]


class Observer:
    """One format in one session against one broker."""

    def __init__(self, spark: SparkSession, format_name: str, bootstrap: str) -> None:
        self.spark = spark
        self.format_name = format_name
        self.bootstrap = bootstrap

    def batch(self, options: Options) -> Outcome:
        """Read a batch."""
        try:
            reader = self.spark.read.format(self.format_name)
            frame = reader.options(**reader_options(self.bootstrap, options)).load()
        except Exception as error:  # whatever it is, it is what is to be seen
            return refused("load", error, self.bootstrap)
        try:
            rows = plain_rows(frame)
            return {"rows": len(rows), "tasks": frame.rdd.getNumPartitions(), "digest": digest(rows)}
        except Exception as error:
            return refused("action", error, self.bootstrap)

    def stream(self, options: Options, checkpoint: Path | None = None) -> Outcome:
        """Read a stream until it ends by itself; what it told of each micro-batch is part of the outcome."""
        with contextlib.ExitStack() as stack:
            if checkpoint is None:
                checkpoint = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            try:
                reader = self.spark.readStream.format(self.format_name)
                frame = reader.options(**reader_options(self.bootstrap, options)).load()
            except Exception as error:
                return refused("load", error, self.bootstrap)
            try:
                writer = frame.writeStream.format("noop").trigger(availableNow=True)
                query = writer.option("checkpointLocation", str(checkpoint)).start()
                stack.callback(query.stop)
                if not query.awaitTermination(STREAM_LIMIT_S):
                    return {"refused": "never", "error": "still running"}
                events = [json.loads(event.json) for event in query.recentProgress]
                events = [event for event in events if event["numInputRows"]]
                return {
                    "rows": sum(event["numInputRows"] for event in events),
                    "batches": [event["numInputRows"] for event in events],
                    "offsets": offsets_of(checkpoint),
                    "progress": [source_of(event) for event in events[:2]],
                }
            except Exception as error:
                return refused("action", error, self.bootstrap)

    def write(self, frame: DataFrame, options: Mapping[str, str], mode: str | None) -> Outcome:
        """Write a frame."""
        try:
            writer = frame.write.format(self.format_name).option("kafka.bootstrap.servers", self.bootstrap)
            (writer.mode(mode) if mode else writer).options(**options).save()
        except Exception as error:
            return refused("action", error, self.bootstrap)
        return {"written": True}


def source_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return what an event says of its source, without what depends on time."""
    kept = ("description", "startOffset", "endOffset", "latestOffset", "metrics")
    return {key: without_start(value) for key, value in event["sources"][0].items() if key in kept}


def offsets_of(checkpoint: Path) -> list[Any]:
    """Return the source's offsets of each micro-batch that a checkpoint has, as parsed JSON."""
    files = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [without_start(json.loads(file.read_text().splitlines()[2])) for file in files]


def without_start(offsets: Any) -> Any:
    """Return offsets without the start that the first batch of our source carries: the connector keeps it elsewhere."""
    return {key: value for key, value in offsets.items() if key != "@start"} if isinstance(offsets, dict) else offsets
