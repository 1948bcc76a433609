# %% [markdown]
# # Topics in Spark, without a jar
#
# Open this file as a notebook (the cells begin with `# %%`), or run it: `python examples/spark/tour.py [HOST:PORT]`.
# It needs `pip install '.[spark]'` in a checkout, Java 17, and a broker: `odradek serve`, or any Kafka.
# %%
"""Batch, projection, streaming, exactly-once and lag, with `format("odradek")`."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDERS = "tour-orders"
TOTALS = "tour-totals"


# %% [markdown]
# ## A session
# Spark's workers are processes of their own: they have to be the Python that has odradek, too.
# %%
def session() -> SparkSession:
    """Start Spark on this machine."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )


# %% [markdown]
# ## Write a batch
# The columns are those of Spark's Kafka connector, and a `timestamp` may be among them. The mode has to be said.
# %%
def write_orders(spark: SparkSession, servers: str, count: int) -> None:
    """Write orders of a few customers to a topic."""
    orders = spark.range(0, count, 1, 1).selectExpr(
        "concat('customer-', id % 7) AS key",
        "to_json(named_struct('order', id, 'cents', 100 + id % 50)) AS value",
        "timestamp_seconds(unix_timestamp(date_trunc('HOUR', now())) - 3600 + id) AS timestamp",  # older ones expire
    )
    (
        orders.write.format("odradek")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", ORDERS)
        .mode("append")
        .save()
    )


# %% [markdown]
# ## Read a batch
# From the earliest to the latest record, or between offsets or times.
# %%
def read_orders(spark: SparkSession, servers: str) -> DataFrame:
    """Return the orders, parsed."""
    records = spark.read.format("odradek").option("kafka.bootstrap.servers", servers).option("subscribe", ORDERS).load()
    return records.selectExpr(
        "CAST(key AS STRING) AS customer",
        "from_json(CAST(value AS STRING), 'order BIGINT, cents BIGINT') AS order",
        "timestamp",
    ).select("customer", "order.*", "timestamp")


# %% [markdown]
# ## Read only what is needed
# A schema with fewer columns is a projection: what it leaves out is neither decoded nor handed to the JVM.
# %%
def count_by_partition(spark: SparkSession, servers: str) -> dict[int, int]:
    """Count records without reading a key or a value."""
    records = (
        spark.read.format("odradek")
        .schema("partition INT")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", ORDERS)
        .load()
    )
    return {row["partition"]: row["count"] for row in records.groupBy("partition").count().collect()}


# %% [markdown]
# ## Stream, exactly once
# The total of each minute goes to another topic when the watermark has passed it. With `exactlyOnce` a micro-batch that
# is repeated after a crash adds nothing: each is a transaction, so readers of the topic use `read_committed`.
# %%
def stream_totals(spark: SparkSession, servers: str, checkpoint: str) -> int:
    """Stream all that is there into another topic; return how many micro-batches it took."""
    from pyspark.sql import functions

    orders = (
        spark.readStream.format("odradek")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", ORDERS)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 300)
        .load()
    )
    cents = functions.get_json_object(functions.col("value").cast("string"), "$.cents").cast("long")
    totals = (
        orders.withWatermark("timestamp", "1 minute")
        .groupBy(functions.window("timestamp", "1 minute"))
        .agg(functions.sum(cents).alias("cents"))
        .selectExpr("CAST(window.start AS STRING) AS key", "CAST(cents AS STRING) AS value")
    )
    query = (
        totals.writeStream.format("odradek")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", TOTALS)
        .option("exactlyOnce", "true")
        .option("checkpointLocation", checkpoint)
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return len([progress for progress in query.recentProgress if progress.numInputRows])


# %%
def read_totals(spark: SparkSession, servers: str) -> dict[str, int]:
    """Return the total of each minute."""
    totals = (
        spark.read.format("odradek")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", TOTALS)
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    rows = totals.selectExpr("CAST(key AS STRING) AS minute", "CAST(CAST(value AS STRING) AS BIGINT) AS cents")
    return {row["minute"]: row["cents"] for row in rows.collect()}


# %% [markdown]
# ## Lag that Kafka's tools see
# Spark keeps offsets in the checkpoint. A listener puts them into a consumer group as well, for dashboards and alerts:
# `odradek groups describe tour`.
# %%
def watch_lag(spark: SparkSession, servers: str, group: str) -> object:
    """Commit what queries of this session have read to a group; return the listener."""
    from odradek.spark_plugin.lag import GroupOffsetListener

    listener = GroupOffsetListener(group, {"kafka.bootstrap.servers": servers})
    spark.streams.addListener(listener)
    return listener


# %% [markdown]
# ## All of it
# %%
def main() -> int:
    """Take the tour."""
    servers = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
    spark = session()
    watch_lag(spark, servers, "tour")
    write_orders(spark, servers, 1000)
    read_orders(spark, servers).groupBy("customer").sum("cents").orderBy("customer").show()
    print("records by partition:", count_by_partition(spark, servers))
    with tempfile.TemporaryDirectory() as checkpoint:
        print("micro-batches:", stream_totals(spark, servers, checkpoint))
    print("totals:", read_totals(spark, servers))
    spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
