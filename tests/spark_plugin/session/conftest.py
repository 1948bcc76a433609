"""One Spark session for every test of this folder, in one process, beside a broker of ours.

Only one Spark runs at a time on a small machine: a planner has ten seconds to connect back, hard-coded. Each test takes
topics and checkpoints of its own, and streams end by themselves (`availableNow`).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.demo.spark_process import quick_python
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.interop.clients import skip_or_fail
from tests.spark_plugin.topic_kit import Kit, open_kit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

HAS_PYSPARK = importlib.util.find_spec("pyspark") is not None
STREAM_PATIENCE_S = 180
CONNECT_ATTEMPTS = 3
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # more pays later than in two minutes
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}

collect_ignore_glob = [] if HAS_PYSPARK else ["test_*.py"]


def pytest_report_header() -> list[str]:
    return [] if HAS_PYSPARK else ["tests/spark_plugin/session is left out: pip install '.[spark]'"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return the session; nothing is registered: Spark finds the format by itself."""
    if shutil.which("java") is None:
        skip_or_fail("a session of Spark's needs Java 17")
    from pyspark.sql import SparkSession

    # Workers run what PATH calls python3, unless they are told.
    python = quick_python(tmp_path_factory.mktemp("bin") / "python")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(python)
    builder: Any = SparkSession.builder
    builder = builder.master("local[2]").appName("odradek's tests")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[RunningBroker]:
    """Run one broker for all tests; topics have two partitions unless they are made with others."""
    settings = {
        "num.partitions": 2,
        "transaction.state.log.replication.factor": 1,
        "log.retention.ms": -1,  # records of any time stay
    }
    with running_broker(settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def kit(broker: RunningBroker) -> Iterator[Kit]:
    """Return what makes topics on the broker."""
    with open_kit(broker.bootstrap) as kit:
        yield kit


@pytest.fixture
def topic() -> str:
    """Return a topic's name that nobody else has."""
    return f"t-{uuid.uuid4().hex[:8]}"  # noqa: TID251  # apart from other tests, not repeatable


def loaded(reader: Any, broker: RunningBroker, options: Mapping[str, object], schema: str | None) -> DataFrame:
    """Load what a reader of Spark's gives for these options."""
    texts = {"kafka.bootstrap.servers": broker.bootstrap, **{key: str(value) for key, value in options.items()}}
    reader = reader.format("odradek").options(**texts)
    frame: DataFrame = (reader if schema is None else reader.schema(schema)).load()
    return frame


@pytest.fixture
def read(spark: SparkSession, broker: RunningBroker) -> Callable[..., DataFrame]:
    """Return what reads a topic as a batch: `read(topic, {option: value}, schema)`."""

    def read(topic: str, options: Mapping[str, object] | None = None, schema: str | None = None) -> DataFrame:
        return loaded(spark.read, broker, {"subscribe": topic, **(options or {})}, schema)

    return read


@pytest.fixture
def read_stream(spark: SparkSession, broker: RunningBroker) -> Callable[..., DataFrame]:
    """Return what reads a topic as a stream, likewise."""

    def read_stream(topic: str, options: Mapping[str, object] | None = None, schema: str | None = None) -> DataFrame:
        return loaded(spark.readStream, broker, {"subscribe": topic, **(options or {})}, schema)

    return read_stream


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., StreamingQuery]:
    """Return what runs a stream over what is there now, to its end: `run(frame, sink)`; one checkpoint for each test.

    `sink` is called with each micro-batch's frame and number.
    """

    def run(frame: DataFrame, sink: Callable[[DataFrame, int], None]) -> StreamingQuery:
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer = writer.foreachBatch(sink).trigger(availableNow=True)
        for attempt in range(CONNECT_ATTEMPTS):
            query = writer.start()
            try:
                assert query.awaitTermination(STREAM_PATIENCE_S), "the stream does not end"
            except Exception as error:
                # A reader's process has ten seconds to start, which a busy machine may not give it.
                if "failed to connect back" not in str(error) or attempt + 1 == CONNECT_ATTEMPTS:
                    raise
            else:
                return query
            finally:
                query.stop()
        raise AssertionError

    return run
