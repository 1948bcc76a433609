"""Shell: topics as PySpark sources and sinks, batch and streaming, without a jar.

    spark.read.format("odradek").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders")

| module | what it holds |
| --- | --- |
| `source`, `source_stream`, `writer`, `lag` | what Spark calls: thin, and the only modules with pyspark |
| `options`, `option_table`, `schema`, `offsets`, `positions`, `topic_pattern` | what a user says, checked; pure |
| `planner`, `rate_limit`, `filters`, `splitting`, `data_loss` | which offsets are read, and by which task; pure |
| `batch_reader`, `stream_reader`, `survey`, `task_planning` | the driver's side: asks brokers, and plans |
| `read_task`, `arrow`, `wire_format` | a worker's side: ranges become batches of Arrow's |
| `client` | a light client that blocks; no trio |
| `direct` | ranges that are read from files or an object store, past the brokers |
| `write_task`, `write_rows`, `sending`, `partitioners`, `transactions` | the sink |
| `worker` | what a Python process of Spark's keeps between tasks |
| `progress` | how far a query is behind |

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
