"""Shell: the demo's Spark job, a process of its own: counts clock changes by week, and says how it goes as JSON lines.

    python -m odradek.kernel.cli.demo.spark_job BOOTSTRAP CHECKPOINT RECORDS_A_BATCH [--prove]

It is what a data engineer would write, with nothing of ours but the word in `format`: Spark finds the data source by
itself. With `--prove`, a batch query over the results follows the stream.

    {"kind": "batch", ...}     a micro-batch is done
    {"kind": "proof", ...}     what the batch query found
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHANGES: Final = "clock-changes"
WEEKS: Final = "changes-by-week"
POLL_S: Final = 0.1
TRANSACTION_TIMEOUT_MS: Final = 20_000
"""How long a killed job's transaction may hold up readers, should nobody follow it."""
SETTINGS: Final = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.local.dir": ".",
    "spark.sql.warehouse.dir": ".",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def count_by_week(spark: SparkSession, bootstrap: str, records_a_batch: int) -> DataFrame:
    """Return the streaming query: how many changes each week had, as records for the topic of results."""
    from pyspark.sql import functions

    changes = (
        spark.readStream.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", CHANGES)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", records_a_batch)
        .load()
    )
    at = functions.get_json_object(functions.col("value").cast("string"), "$.at")
    weeks = (
        changes.select(functions.to_timestamp(at).alias("at"))
        .observe("read", functions.max("at").alias("until"))
        # No watermark: Spark's begins in 1970, and these clocks were changed before.
        .groupBy(functions.window("at", "7 days", startTime="4 days"))  # from Monday: the epoch began on a Thursday
        .count()
    )
    week = functions.date_format("window.start", "yyyy-MM-dd")
    value = functions.to_json(functions.struct(week.alias("week"), functions.col("count").alias("changes")))
    return weeks.select(week.alias("key"), value.alias("value"))


def start(frame: DataFrame, bootstrap: str, checkpoint: str) -> StreamingQuery:
    """Write the query's updates to the topic of results, each exactly once."""
    return (
        frame.writeStream.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", WEEKS)
        .option("exactlyOnce", "true")
        .option("kafka.transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
        .option("checkpointLocation", checkpoint)
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
    )


def follow(query: StreamingQuery) -> None:
    """Tell each micro-batch as it ends, until the query does; raises what the query failed of."""
    told = -1
    pause = threading.Event()
    is_active = True
    while is_active:
        is_active = query.isActive
        for progress in query.recentProgress:
            event = json.loads(progress.json)
            if event["batchId"] > told and event["numInputRows"]:
                told = event["batchId"]
                tell("batch", **batch_of(event))
        pause.wait(POLL_S)
    query.awaitTermination()


def batch_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return what the demo shows of a progress event."""
    return {
        "id": event["batchId"],
        "records": event["numInputRows"],
        "until": event["observedMetrics"]["read"]["until"][:10],
        "weeks": event["sink"]["numOutputRows"],
        "took_ms": event["durationMs"]["triggerExecution"],
    }


def prove(spark: SparkSession, bootstrap: str) -> None:
    """Read both topics as batches, and tell what stands in them."""
    from pyspark.sql import functions

    reader = spark.read.format("odradek").option("kafka.bootstrap.servers", bootstrap)
    changes = reader.option("subscribe", CHANGES).schema("partition INT").load().count()  # one column is decoded
    written = (
        reader.option("subscribe", WEEKS)
        .option("kafka.isolation.level", "read_committed")
        .schema("key BINARY, value BINARY, partition INT, offset LONG")
        .load()
    )
    counts = functions.get_json_object(functions.col("value").cast("string"), "$.changes").cast("long")
    updates = written.select(functions.col("key").cast("string").alias("week"), counts.alias("changes"), "offset")
    totals = updates.agg(
        functions.count("*").alias("updates"), functions.count_distinct("week", "changes").alias("distinct")
    ).first()
    last = updates.groupBy("week").agg(functions.max_by("changes", "offset").alias("changes")).collect()
    assert totals is not None
    tell(
        "proof",
        changes=changes,
        updates=totals["updates"],
        distinct=totals["distinct"],
        weeks={row["week"]: row["changes"] for row in last},
    )


def tell(kind: str, **what: Any) -> None:
    """Print a line for the demo."""
    print(json.dumps({"kind": kind, **what}), flush=True)


def main() -> int:
    """Run the job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bootstrap")
    parser.add_argument("checkpoint")
    parser.add_argument("records_a_batch", type=int)
    parser.add_argument("--prove", action="store_true")
    arguments = parser.parse_args()

    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("odradek demo")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    frame = count_by_week(spark, arguments.bootstrap, arguments.records_a_batch)
    follow(start(frame, arguments.bootstrap, arguments.checkpoint))
    if arguments.prove:
        prove(spark, arguments.bootstrap)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
