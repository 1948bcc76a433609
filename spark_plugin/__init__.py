"""Shell: topics as PySpark sources and sinks, batch and streaming, without a jar.

    spark.read.format("odradek").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders")

| module | what it holds |
| --- | --- |
| `source`, `source_stream` | the classes that Spark calls; these, `lag` and the sink's `writer` import pyspark |
| `options` | what a user says, read and checked; pure |
| `reading` | the source: which offsets are read, by which task, and how a task reads them |
| `writing` | the sink, at least once or exactly once |
| `client` | a light client that blocks; no trio |
| `direct` | ranges that are read from files or an object store, past the brokers |
| `schema`, `offsets`, `ranges`, `arrow`, `errors` | columns, offsets, ranges, batches: what the others share; pure |
| `first_contact` | the driver's first words with a cluster |
| `worker` | what a Python process of Spark's keeps between tasks |
| `lag`, `progress`, `offset_copy` | how far a query is behind; its offsets in a consumer group |

Names are imported when somebody asks for them: a worker that reads needs no pyspark classes but those it has, and the
module that Spark finds (`pyspark_odradek`) may not fail: one that does hides every other data source.

.. versionadded:: 0.1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .source import DefaultSource, register

__all__ = ["DefaultSource", "register"]


def __getattr__(name: str) -> Any:
    """Import what somebody asks for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".source", __name__), name)
