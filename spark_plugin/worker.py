"""Shell: what a Python process of Spark's keeps between tasks, and what it is told of the task it runs.

Spark forks its Python workers from a daemon and uses each for many tasks, one at a time, on one thread. Planners (which
build readers and writers) are such processes too.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from odradek.kernel.errors import OdradekError

QUERY_ID_PROPERTY: Final = "sql.streaming.queryId"
BATCH_ID_PROPERTY: Final = "streaming.sql.batchId"
RUN_ID_PROPERTY: Final = "spark.jobGroup.id"
"""What Spark's micro-batch execution sets on its jobs. None is documented, so each may be missing one day."""

HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
"""What Spark 4 sets where `spark.sql.execution.pyspark.udf.hideTraceback.enabled` is true, and no older one reads."""

PUSHDOWN_MODULE: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The program of a planner that is asked to push filters down, and of none else."""

ENDING_MODULE: Final = "pyspark.sql.worker.python_streaming_sink_runner"
"""The program that commits or aborts a micro-batch, and none else."""

_frozen: list[bool] = []


@contextmanager
def plain_errors(variables: MutableMapping[str, str] = os.environ) -> Iterator[None]:
    """Have Spark show what stands in a user's way by its text alone, where it would begin with our traceback.

    The process ends with such an error, so that no later one is shortened. Errors that are bugs of ours keep theirs.

    Args:
        variables: What Spark looks at when it writes an error; for tests.
    """
    try:
        yield
    except OdradekError:
        variables[HIDE_TRACEBACK] = "1"
        raise


def settle(*, freezes: bool = True, freeze: Callable[[], None] = gc.freeze) -> None:
    """Take what is loaded by now out of the garbage collector's sight, once in a process.

    Spark collects garbage after every task of a reused worker, and what pyspark and pyarrow leave costs 24 to 40 ms
    each time. Frozen, it costs nothing. Nothing is lost by it: these objects live as long as the process anyway.

    Args:
        freezes: False leaves everything as it is (option `gcFreeze=false`).
        freeze: What freezes; for tests.
    """
    if freezes and not _frozen:
        _frozen.append(True)
        freeze()


def is_pushing_filters_down() -> bool:
    """Say whether Spark will call `pushFilters` on the reader that is being made in this process.

    Without this a reader with that method fails wherever `spark.sql.python.filterPushdown.enabled` is off, as by
    default. A Spark that names its program otherwise gets a reader without it: slower, and right.
    """
    return PUSHDOWN_MODULE in sys.modules


def is_ending_a_batch() -> bool:
    """Say whether this process has Spark commit or abort micro-batches: it asks no broker unless there is a reason.

    A Spark that names its program otherwise asks once too often.
    """
    return ENDING_MODULE in sys.modules


@attrs.frozen
class TaskIdentity:
    """Which task this is.

    Attributes:
        query_id: Of the streaming query, the same in all its lives; None in a batch job.
        run_id: Of this life of the streaming query; None in a batch job without a job group.
        batch_id: Of the micro-batch, >= 0; None in a batch job.
        partition_id: Of Spark's partition, >= 0.
        attempt_number: How often this partition was tried before in this stage, >= 0.
        task_attempt_id: Another number for each attempt of any task of the application, >= 0.

    .. versionadded:: 0.1
    """

    query_id: str | None
    run_id: str | None
    batch_id: int | None
    partition_id: int
    attempt_number: int
    task_attempt_id: int


def task_identity() -> TaskIdentity | None:
    """Return which task this process runs; None on the driver, in a planner, and outside of Spark."""
    module = sys.modules.get("pyspark.taskcontext")  # a worker has it; nobody else needs it for this
    context = None if module is None else module.TaskContext.get()
    return None if context is None else identity_of(context)


def identity_of(context: Any) -> TaskIdentity:
    """Read pyspark's `TaskContext`."""
    batch_id = context.getLocalProperty(BATCH_ID_PROPERTY)
    return TaskIdentity(
        query_id=context.getLocalProperty(QUERY_ID_PROPERTY),
        run_id=context.getLocalProperty(RUN_ID_PROPERTY),
        batch_id=None if batch_id is None else int(batch_id),
        partition_id=context.partitionId(),
        attempt_number=context.attemptNumber(),
        task_attempt_id=context.taskAttemptId(),
    )
