"""What the sink's own part of writing costs: Arrow's batches in, acknowledged records out, without Spark.

    python -m benchmarks.spark_writes [--records 1000000] [--rounds 5] [--bootstrap HOST:PORT]

CPU seconds of this process for a million records of 100 bytes (11 bytes of key), in batches of 10,000 rows as Spark
gives them, over 4 partitions; the broker is a process of its own. `sorting` is without encoding and sending.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.client import broker_process
from odradek.client import BlockingAdmin, NewTopic
from odradek.spark_plugin.writing.partitioners import RowPartitioner
from odradek.spark_plugin.writing.write_rows import RowSorter
from odradek.spark_plugin.writing.write_task import commit, plan_write, write_partition

ROWS = 10_000
SCHEMA = [("key", "binary"), ("value", "binary")]


def batches(count: int) -> Iterator[pa.RecordBatch]:
    """Return so many rows."""
    keys = pa.array([b"key-%07d" % number for number in range(ROWS)], pa.binary())
    text = np.random.default_rng(1).integers(97, 123, ROWS * 100, np.uint8).tobytes()
    values = pa.array([text[place : place + 100] for place in range(0, len(text), 100)], pa.binary())
    batch = pa.record_batch([keys, values], names=["key", "value"])
    for _ in range(count // ROWS):
        yield batch


def measure(bootstrap: str, records: int, rounds: int) -> None:
    """Print medians over alternated rounds."""
    with BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topic(NewTopic("bench", 4))
    found: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for label, options in (
            ("at least once", {}),
            ("lz4", {"kafka.compression.type": "lz4"}),
            ("exactly once", {"exactlyOnce": "true"}),
            ("sorting", None),
        ):
            given = {"kafka.bootstrap.servers": bootstrap, "topic": "bench", **(options or {})}
            plan = plan_write(given, SCHEMA, is_stream=False, is_overwriting=False)
            rows = list(batches(records))
            began = time.process_time()
            if options is None:
                sorter = RowSorter(plan.positions, "bench", RowPartitioner("murmur2", 0, 1 << 20), lambda _: 4, 1 << 20)
                for batch in rows:
                    for _ in sorter.sort(batch, 0):
                        pass
            else:
                commit(plan, [write_partition(plan, iter(rows))])
            took = time.process_time() - began
            if number:
                found.setdefault(label, []).append(took / records * 1_000_000)
    for label, values in found.items():
        print(f"{label:>14}  {statistics.median(values):.3f} CPU s/M  ({min(values):.3f} to {max(values):.3f})")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bootstrap", default="")
    given = parser.parse_args()
    if given.bootstrap:
        measure(given.bootstrap, given.records, given.rounds)
        return
    with broker_process() as bootstrap:
        measure(bootstrap, given.records, given.rounds)


if __name__ == "__main__":
    main()
