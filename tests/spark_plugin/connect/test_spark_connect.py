"""Spark Connect: the client has no JVM and no planner; the server finds the format by itself, and all of it works.

Runs in an environment of its own (`tox -e spark-connect`), as a process has a session of one kind only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.demo.spark_process import quick_python
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.waiting import until

pytest.importorskip("grpc", reason="Spark Connect is not installed: tox -e spark-connect")
pytest.importorskip("pyspark", reason="pyspark is not installed: tox -e spark-connect")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
ROWS = 1000
LATER = 100


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    settings = {"num.partitions": 2, "transaction.state.log.replication.factor": 1, "log.retention.ms": -1}
    with running_broker(settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a client of a server that it starts on this machine."""
    from pyspark.sql import SparkSession

    python = str(quick_python(tmp_path_factory.mktemp("bin") / "python"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }.items():
            patch.setenv(name, value)
        builder: Any = SparkSession.builder
        session: SparkSession = builder.remote("local[2]").getOrCreate()
        session.conf.set("spark.sql.shuffle.partitions", "2")
        yield session
        session.stop()


def write(spark: SparkSession, broker: RunningBroker, first: int, count: int) -> None:
    """Write numbers as a batch."""
    frame = spark.range(first, first + count).selectExpr("cast(id as string) key", "cast(id as string) value")
    writer = frame.write.format("odradek").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.option("topic", "numbers").mode("append").save()


def read(spark: SparkSession, broker: RunningBroker, topic: str, schema: str | None = None) -> DataFrame:
    """Read a topic as a batch."""
    reader = spark.read if schema is None else spark.read.schema(schema)
    reader = reader.format("odradek").option("kafka.bootstrap.servers", broker.bootstrap).option("subscribe", topic)
    return reader.option("kafka.isolation.level", "read_committed").load()


def copy(spark: SparkSession, broker: RunningBroker, checkpoint: Path) -> Any:
    """Start a stream that copies the numbers that there are, exactly once."""
    numbers = spark.readStream.format("odradek").option("kafka.bootstrap.servers", broker.bootstrap)
    numbers = numbers.option("subscribe", "numbers").option("startingOffsets", "earliest")
    frame = numbers.option("maxOffsetsPerTrigger", 400).load().select("key", "value")
    writer = frame.writeStream.format("odradek").option("kafka.bootstrap.servers", broker.bootstrap)
    writer = writer.option("topic", "copies").option("exactlyOnce", "true")
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def test_batches_and_streams_run_to_their_end(spark: SparkSession, broker: RunningBroker, tmp_path: Path) -> None:
    write(spark, broker, 0, ROWS)

    assert read(spark, broker, "numbers").count() == ROWS
    assert read(spark, broker, "numbers", "partition INT").columns == ["partition"]
    for expected in (ROWS, ROWS + LATER):  # the second one goes on from the checkpoint
        query = copy(spark, broker, tmp_path)
        assert query.awaitTermination(180), "the stream does not end"
        assert query.exception() is None
        found = read(spark, broker, "copies").selectExpr("cast(value as string) value")

        assert sorted(int(row["value"]) for row in found.collect()) == list(range(expected))
        write(spark, broker, ROWS, LATER)


def test_the_format_may_be_registered_by_the_client(spark: SparkSession, broker: RunningBroker) -> None:
    from odradek.spark_plugin import register

    write(spark, broker, 0, 1)
    register(spark)

    assert read(spark, broker, "numbers", "offset LONG").where("offset = 0").count() == 2, "one of each partition"


def test_a_listener_commits_offsets_from_the_client(spark: SparkSession, broker: RunningBroker, tmp_path: Path) -> None:
    from odradek.client import BlockingAdmin
    from odradek.spark_plugin.lag import GroupOffsetListener

    write(spark, broker, 0, ROWS)
    listener = GroupOffsetListener("seen", {"kafka.bootstrap.servers": broker.bootstrap})
    spark.streams.addListener(listener)
    copy(spark, broker, tmp_path).awaitTermination(180)
    with BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        until(lambda: sum(one.offset for one in admin.list_group_offsets("seen").values() if one) >= ROWS)
    spark.streams.removeListener(listener)
    listener.close()
