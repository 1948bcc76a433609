"""Shell: topics as PySpark sources and sinks, batch and streaming, without a jar.

    spark.read.format("odradek").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders")

| module | what it holds |
| --- | --- |
| `source` | what Spark calls: `DefaultSource` and its readers; the only modules with pyspark are it and `writer` |
| `options`, `schema`, `offsets` | what a user says, read and checked; pure |
| `planner`, `filters`, `data_loss` | which offsets are read by which task; pure |
| `batch_reader`, `stream_reader` | what happens on the driver: they ask brokers and plan |
| `read_task`, `arrow` | what happens in a worker: ranges become batches of Arrow's |
| `client` | a light client that blocks; no trio |
| `direct` | ranges that are read from files or an object store, past the brokers |
| `writer`, `partitioners`, `transactions`, `produce` | the sink |
| `worker` | what a Python worker keeps between tasks |

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
