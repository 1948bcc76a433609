"""What a worker keeps, and what it knows of its task."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from odradek.spark_plugin import worker

ROOT = Path(__file__).parents[2]

WORKER_IMPORTS = sorted(
    "odradek." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for room in ("", "options/", "reading/", "writing/", "client/")
    for path in (ROOT / "spark_plugin").glob(f"{room}*.py")
    if path.stem not in {"__init__", "lag", "source", "source_stream", "writer"}
)
"""Every module but those that have pyspark's classes as their bases, or read files and objects."""

READING_IMPORTS = [f"odradek.spark_plugin.reading.{name}" for name in ("batch_reader", "stream_reader", "read_task")]
"""What a planner or a worker that reads from brokers begins with."""

HEAVY = {
    "trio",
    "pluggy",
    "rich",
    "h11",
    "obstore",
    "pyspark",
    "pandas",
    "odradek.kernel.broker.broker",
    "odradek.kernel.api",
}
NEEDED_LATER = {"pyarrow.compute", "odradek.spark_plugin.options.topic_pattern", "odradek.spark_plugin.direct.opening"}
"""Slow to load, and used by few: each planner is a process of its own, so each query would pay for them."""


class Context:
    """What pyspark's TaskContext offers."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties

    def getLocalProperty(self, key: str) -> str | None:
        return self.properties.get(key)

    def partitionId(self) -> int:
        return 3

    def attemptNumber(self) -> int:
        return 1

    def taskAttemptId(self) -> int:
        return 17


def test_garbage_is_frozen_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_frozen", [])
    calls: list[str] = []

    worker.settle(freezes=False, freeze=lambda: calls.append("refused"))
    worker.settle(freeze=lambda: calls.append("first"))
    worker.settle(freeze=lambda: calls.append("second"))

    assert calls == ["first"]


def test_a_task_of_a_micro_batch_knows_query_and_batch() -> None:
    context = Context({"sql.streaming.queryId": "q", "streaming.sql.batchId": "12", "spark.jobGroup.id": "r"})

    assert worker.identity_of(context) == worker.TaskIdentity("q", "r", 12, 3, 1, 17)


def test_a_task_of_a_batch_job_knows_neither() -> None:
    assert worker.identity_of(Context({})) == worker.TaskIdentity(None, None, None, 3, 1, 17)


def test_filters_are_pushed_down_in_the_planner_that_is_there_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not worker.is_pushing_filters_down()

    monkeypatch.setitem(sys.modules, worker.PUSHDOWN_MODULE, sys)

    assert worker.is_pushing_filters_down()


@pytest.mark.parametrize(("modules", "unwanted"), [(WORKER_IMPORTS, HEAVY), (READING_IMPORTS, HEAVY | NEEDED_LATER)])
def test_what_a_worker_imports_pulls_in_neither_trio_nor_the_broker(modules: list[str], unwanted: set[str]) -> None:
    code = f"import sys, {', '.join(modules)}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 0, done.stderr
    assert unwanted & set(done.stdout.split()) == set()


def test_the_package_alone_imports_nothing_of_spark() -> None:
    code = "import sys, odradek.spark_plugin; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.split() == ["False", "False"]
