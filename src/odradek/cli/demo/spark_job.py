"""Shell: the demo's Spark job, a process of its own: counts clock changes by week, and says how it goes as JSON lines.

    python -m odradek.cli.demo.spark_job BOOTSTRAP CHECKPOINT RECORDS_A_BATCH [--prove]

It is what a data engineer would write, with nothing of ours but the word in `format`: Spark finds the data source by
itself. With `--prove`, a batch query over the results follows the stream.

    {"kind": "batch", ...}     a micro-batch is done
    {"kind": "proof", ...}     what the batch query found
    {"kind": "failed", ...}    of what it failed
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
POLL_S: Final = 0.02
WATERMARK: Final = "1461 days"
"""Partitions are read by shares, and are years apart from each other meanwhile: old data, read at once."""
TRANSACTION_TIMEOUT_MS: Final = 60_000
"""How long a killed job's transaction may hold up readers, should nobody follow it."""
PLAN: Final = "=== Streaming Query ==="
"""Begins what Spark appends to a failed query's error: page after page about the query."""
SETTINGS: Final = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # more pays later than in a minute
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
    """Return the streaming query: how many changes each week since 1970 had, as records for the topic of results.

    A week is counted when the watermark has passed it: then its count is final, and written once.
    """
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
        .where("at >= '1970-01-01'")  # where Spark's watermark begins: what is older would be late
        .withWatermark("at", WATERMARK)
        .groupBy(functions.window("at", "7 days", startTime="4 days"))  # from Monday: the epoch began on a Thursday
        .count()
    )
    week = functions.date_format("window.start", "yyyy-MM-dd")
    value = functions.to_json(functions.struct(week.alias("week"), functions.col("count").alias("changes")))
    return weeks.select(week.alias("key"), value.alias("value"))


def start(frame: DataFrame, bootstrap: str, checkpoint: str) -> StreamingQuery:
    """Write the query's rows to the topic of results, each exactly once."""
    return (
        frame.writeStream.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", WEEKS)
        .option("exactlyOnce", "true")
        .option("kafka.transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
        .option("checkpointLocation", checkpoint)
        .outputMode("append")
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
            if event["batchId"] > told and "addBatch" in event["durationMs"]:  # not one that had nothing to do
                told = event["batchId"]
                tell("batch", **batch_of(event))
        pause.wait(POLL_S)
    query.awaitTermination()


def batch_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return what the demo shows of a progress event."""
    return {
        "id": event["batchId"],
        "records": event["numInputRows"],
        "until": ((event["observedMetrics"].get("read") or {}).get("until") or "")[:10],
        "weeks": event["sink"]["numOutputRows"],
        "took_ms": event["durationMs"]["triggerExecution"],
    }


def prove(spark: SparkSession, bootstrap: str) -> None:
    """Read both topics as batches, and tell what stands in them."""
    from pyspark.sql import functions

    changes = (
        spark.read.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", CHANGES)
        .schema("partition INT")  # the only column that is decoded
        .load()
        .count()
    )
    written = (
        spark.read.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", WEEKS)
        .option("kafka.isolation.level", "read_committed")
        .schema("key BINARY, value BINARY")
        .load()
    )
    counts = functions.get_json_object(functions.col("value").cast("string"), "$.changes").cast("long")
    weeks = written.select(functions.col("key").cast("string").alias("week"), counts.alias("changes")).collect()
    tell("proof", changes=changes, weeks=[[row["week"], row["changes"]] for row in weeks])


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
    try:
        follow(start(frame, arguments.bootstrap, arguments.checkpoint))
        if arguments.prove:
            prove(spark, arguments.bootstrap)
    except Exception as error:  # whatever it is, the demo tells it; its traceback is long, and of Spark's plans
        tell("failed", error=str(error).partition(PLAN)[0].strip())
        return 1
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
