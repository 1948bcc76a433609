"""Spark writes and reads three brokers while whoever leads is killed: each row is there once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.testing.running_cluster import RunningCluster, running_cluster
from tests.spark_plugin.topic_kit import Kit, Row, open_kit
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster({"num.partitions": 2, "log.retention.ms": -1}) as running:
        yield running
        running.check()


@pytest.fixture(scope="module")
def kit(cluster: RunningCluster) -> Iterator[Kit]:
    with open_kit(cluster.bootstrap_servers) as kit:
        yield kit


def values(rows: list[Row]) -> list[int]:
    return sorted(int(row[1]) for row in rows)


class Accident:
    """Kills who leads partition 0 of a topic once something has come about; once it is over, it comes back."""

    def __init__(
        self, cluster: RunningCluster, topic: str, has_come: Callable[[], bool], then: Callable[[], object] = int
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._has_come = has_come
        self._then = then
        self._thread = threading.Thread(target=self._run)
        self.killed = -1

    def _run(self) -> None:
        until(self._has_come)
        self.killed = self._cluster.leader(self._topic)
        self._cluster.kill(self.killed)
        until(lambda: self._cluster.leader(self._topic) not in (-1, self.killed))
        self._then()

    def __enter__(self) -> Accident:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._cluster.start(self.killed)


def slow_once(frame: DataFrame, has_begun: Path, may_go_on: Path) -> DataFrame:
    """Have a row in the midst of a partition say that it is there, and wait until it may go on."""
    from pyspark.sql.functions import udf

    def pass_on(number: int) -> str:
        import time

        if number == 700:
            has_begun.touch()
            while not may_go_on.exists():
                time.sleep(0.01)
        return str(number)

    return frame.select(udf(pass_on, useArrow=False)("id").alias("value"))


def test_a_batch_is_written_once_though_the_leader_is_killed_in_its_midst(
    spark: SparkSession, cluster: RunningCluster, kit: Kit, tmp_path: Path
) -> None:
    topic = kit.new_topic(2)
    has_begun, may_go_on = tmp_path / "begun", tmp_path / "on"
    frame = slow_once(spark.range(0, 2_000, 1, 2), has_begun, may_go_on)
    writer = frame.write.format("odradek").mode("append").option("topic", topic).option("exactlyOnce", "true")
    with Accident(cluster, topic, has_begun.exists, may_go_on.touch):
        writer.option("kafka.bootstrap.servers", cluster.bootstrap_servers).save()

    assert values(kit.consumed(topic, is_read_committed=True)) == list(range(2_000))


def test_a_stream_reads_and_writes_once_though_leaders_are_killed_between_its_batches(
    spark: SparkSession, cluster: RunningCluster, kit: Kit, tmp_path: Path
) -> None:
    source, target = kit.new_topic(2), kit.new_topic(2)
    for number in range(40):
        kit.fill(source, 10, number % 2)
    sent = len(kit.consumed(source))

    def run() -> Any:
        reader = spark.readStream.format("odradek").option("subscribe", source).option("startingOffsets", "earliest")
        frame = reader.options(**{"kafka.bootstrap.servers": cluster.bootstrap_servers, "maxOffsetsPerTrigger": "40"})
        writer = frame.load().selectExpr("key", "value").writeStream.format("odradek").option("topic", target)
        writer = writer.option("kafka.bootstrap.servers", cluster.bootstrap_servers).option("exactlyOnce", "true")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        query.awaitTermination(120)
        return query

    batches = tmp_path / "c" / "commits"
    with Accident(cluster, target, lambda: (batches / "2").exists()):
        run()

    found = kit.consumed(target, is_read_committed=True)
    assert len(found) == sent
    assert sorted((row[0], row[1]) for row in found) == sorted((row[0], row[1]) for row in kit.consumed(source))
