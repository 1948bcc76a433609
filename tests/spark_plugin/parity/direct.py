"""Runs the inputs through our source without Spark: what Spark would call, in its order, in this process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from odradek.kernel.errors import OdradekError
from odradek.spark_plugin.batch_reader import BatchReader, default_schema
from odradek.spark_plugin.read_task import read
from odradek.spark_plugin.stream_reader import StreamReader

from .observe import digest, reader_options, refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.spark_plugin.read_task import ReadTask

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

    def stream(self, options: Options) -> Outcome:
        """Read a stream until it has what was there at its start, as Spark's `availableNow` does."""
        whole = lower_cased(reader_options(self.bootstrap, options))
        try:
            reader = StreamReader.of(whole, columns_of(default_schema(whole)))
        except REFUSALS as error:
            return refused("load", error, self.bootstrap)
        try:
            return self._micro_batches(reader)
        except REFUSALS as error:
            return refused("action", error, self.bootstrap)

    def _micro_batches(self, reader: StreamReader) -> Outcome:
        offsets: list[Any] = []
        batches: list[int] = []
        reader.prepare_available_now()
        start = reader.initial_offset()
        while True:
            end = json.loads(json.dumps(reader.latest_offset(start, is_limited=True)))
            if offsets and end == start:
                break
            rows = rows_of(reader.plan(start, end))
            reader.commit(end)
            offsets.append({topic: ends for topic, ends in end.items() if not topic.startswith("@")})
            batches += [len(rows)] if rows else []
            start = end
            assert len(offsets) < BATCHES_MAX, offsets
        return {"rows": sum(batches), "batches": batches, "offsets": offsets}


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
