"""Runs the inputs through our source without Spark: what Spark would call, in its order, in this process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from odradek.kernel.errors import OdradekError
from odradek.spark_plugin.reading.batch_reader import BatchReader, default_schema
from odradek.spark_plugin.reading.read_task import read
from odradek.spark_plugin.reading.stream_reader import StreamReader
from odradek.spark_plugin.writing.write_task import commit, plan_write, write_partition

from .observe import digest, reader_options, refused
from .scenarios import WRITES, given_options, stored_in, topic_for
from .topics import create_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from odradek.spark_plugin.reading.read_task import ReadTask

    from .inputs import Options
    from .observe import Outcome

REFUSALS = (OdradekError, ValueError, TypeError)
BATCHES_MAX = 50


class DirectObserver:
    """Our source against one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def batch(self, options: Options) -> Outcome:
        """Read a batch."""
        whole = lower_cased(reader_options(self.bootstrap, options))
        try:
            reader = BatchReader.of(whole, columns_of(default_schema(whole)))
        except REFUSALS as error:
            return refused("load", error, self.bootstrap)
        try:
            tasks = reader.plan()
            rows = rows_of(tasks)
            return {"rows": len(rows), "tasks": len(tasks), "digest": digest(rows)}
        except REFUSALS as error:
            return refused("action", error, self.bootstrap)

    def stream(self, options: Options, checkpoint: Path | None = None) -> Outcome:
        """Read a stream until it has what was there at its start, as Spark's `availableNow` does.

        A checkpoint is a folder with the last end in it, where the next run goes on.
        """
        whole = lower_cased(reader_options(self.bootstrap, options))
        try:
            reader = StreamReader.of(whole, columns_of(default_schema(whole)))
        except REFUSALS as error:
            return refused("load", error, self.bootstrap)
        try:
            return self._micro_batches(reader, checkpoint / "end" if checkpoint else None)
        except REFUSALS as error:
            return refused("action", error, self.bootstrap)

    def _micro_batches(self, reader: StreamReader, kept: Path | None) -> Outcome:
        offsets: list[Any] = []
        batches: list[int] = []
        reader.prepare_available_now()
        goes_on = kept is not None and kept.exists()
        start = json.loads(kept.read_text()) if kept is not None and goes_on else reader.initial_offset()
        while True:
            end = json.loads(json.dumps(reader.latest_offset(start, is_limited=True)))
            if (offsets or goes_on) and end == start:
                break
            rows = rows_of(reader.plan(start, end))
            reader.commit(end)
            offsets.append({topic: ends for topic, ends in end.items() if not topic.startswith("@")})
            batches += [len(rows)] if rows else []
            start = end
            assert len(offsets) < BATCHES_MAX, offsets
        if kept is not None:
            kept.write_text(json.dumps(start))
        return {"rows": sum(batches), "batches": batches, "offsets": offsets}

    def write(self, name: str, label: str) -> Outcome:
        """Write as `WRITES` says into a topic of its own, as one task."""
        _change, options, mode = WRITES[name]
        topic = topic_for(name, label)
        create_topic(self.bootstrap, topic, 2)
        given = given_options(options, topic)
        outcome: Outcome = {"written": True}
        columns = {**columns_to_write(name, topic)}
        try:
            if mode not in {"append", "overwrite"}:
                raise ValueError("Spark asks no Python source for this mode")
            whole = lower_cased({"kafka.bootstrap.servers": self.bootstrap, **given})
            schema = [(column, kind) for column, (kind, _values) in columns.items()]
            plan = plan_write(whole, schema, is_stream=False, is_overwriting=mode == "overwrite")
            commit(plan, [write_partition(plan, iter([batch_of(columns)]))])
        except REFUSALS as error:
            outcome = refused("action", error, self.bootstrap)
        return {**outcome, **stored_in(self.bootstrap, given.get("topic", topic))}


ROWS = 10
HEADERS = "array<struct<key:string,value:binary>>"
ARROW_TYPES: Mapping[str, Any] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "int": pa.int32(),
    HEADERS: pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


def columns_to_write(name: str, topic: str) -> dict[str, tuple[str, list[Any]]]:
    """Return the frame of a write as Spark would hand it over: name to type and values."""
    texts = {"key": ("string", [str(n) for n in range(ROWS)]), "value": ("string", [f"value {n}" for n in range(ROWS)])}
    key, value = texts["key"][1], texts["value"][1]
    special: dict[str, dict[str, tuple[str, list[Any]]]] = {
        "key and value are bytes": {
            "key": ("binary", [text.encode() for text in key]),
            "value": ("binary", [text.encode() for text in value]),
        },
        "no key": {"value": texts["value"]},
        "topic column": {**texts, "topic": ("string", [topic] * ROWS)},
        "topic column null": {**texts, "topic": ("string", [None] * ROWS)},
        "topic column beaten by the option": {**texts, "topic": ("string", ["another"] * ROWS)},
        "topic column not a text": {**texts, "topic": ("int", [1] * ROWS)},
        "no value column": {"key": texts["key"]},
        "value INT": {"value": ("int", list(range(ROWS)))},
        "key INT": {**texts, "key": ("int", [1] * ROWS)},
        "null value": {**texts, "value": ("string", [None] * ROWS)},
        "partition column INT": {**texts, "partition": ("int", [1] * ROWS)},
        "partition column null": {**texts, "partition": ("int", [None] * ROWS)},
        "partition column STRING": {**texts, "partition": ("string", ["1"] * ROWS)},
        "partition that is not there": {**texts, "partition": ("int", [9] * ROWS)},
        "headers": {**texts, "headers": (HEADERS, [[{"key": "k", "value": b"v"}]] * ROWS)},
        "headers of a wrong type": {**texts, "headers": ("string", ["x"] * ROWS)},
        "a column more": {**texts, "extra": ("int", [1] * ROWS)},
        "a record over max.request.size": {**texts, "value": ("string", ["x" * 1_200_000] * ROWS)},
    }
    return special.get(name, texts)


def batch_of(columns: Mapping[str, tuple[str, list[Any]]]) -> Any:
    """Return a record batch of columns."""
    arrays = [pa.array(values, ARROW_TYPES[kind]) for kind, values in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def lower_cased(options: dict[str, str]) -> dict[str, str]:
    """Return options as Spark hands them over."""
    return {name.lower(): value for name, value in options.items()}


def columns_of(ddl: str) -> list[tuple[str, str]]:
    """Return names and types of a schema that is written as DDL, as Spark would say them."""
    names = {"long": "bigint", "string": "string", "binary": "binary", "int": "int", "timestamp": "timestamp"}
    columns = []
    for part in ddl.split(", ") if "headers" not in ddl else ddl.partition(", headers")[0].split(", "):
        name, kind = part.split(" ")
        columns.append((name.strip("`"), names.get(kind.lower(), kind.lower())))
    if "headers" in ddl:
        columns.append(("headers", "array<struct<key:string,value:binary>>"))
    return columns


def rows_of(tasks: Iterable[ReadTask]) -> list[tuple[Any, ...]]:
    """Return the rows of tasks; timestamps as microseconds, headers as pairs."""
    rows: list[tuple[Any, ...]] = []
    for task in tasks:
        for batch in read(task):
            columns = {name: batch.column(name) for name in batch.schema.names}
            columns["timestamp"] = columns["timestamp"].cast("int64")
            rows += zip(*(column.to_pylist() for column in columns.values()), strict=True)
    return [tuple(map(plain_cell, row)) for row in rows]


def plain_cell(cell: Any) -> Any:
    """Return a cell as JSON can write it, or bytes."""
    if isinstance(cell, list):
        return [(pair["key"], pair["value"]) for pair in cell]
    return cell
