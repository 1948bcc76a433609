"""Our Spark source and sink beside Spark's Kafka connector: the same queries, topics and session, in turns.

    python -m benchmarks.spark [--quick] [--rounds 3] [--only b100,write] [--broker odradek] [--json FILE]

Counted is processor time: user and system seconds of the driver, the JVM and the Python workers, per million records,
without the broker. Of each row the median of the rounds' ratios to the connector in the same round counts: less is
better. `faster` is by the clock, the median of rounds again: how many times as fast as the connector a row was done.
`segments` reads the broker's files (`readFrom=segments`) without asking it for records; it runs where the broker is
ours.

The connector is published for certain versions of pyspark only: run it in the environment of `tox -e spark-parity
--notest`. The topics, queries and the meter are those of the peers' `spark_baseline.py` (`ODRADEK_PEERS`).
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.rivals import PEERS
from tools.spark_connector import NoConnectorError, jars_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MILLION: Final = 1_000_000
RECORDS: Final = {"small": 2_000_000, "large": 500_000}
QUICK_SHARE: Final = 5
"""By what a quick run divides the number of records."""
FEED_SECONDS: Final = 15
QUICK_FEED_SECONDS: Final = 6
HEADING: Final = (
    f"{'row':<34} {'target':>7} {'format':<9} {'CPU s/M':>8} {'ratio':>6} {'JVM':>6} {'Py':>6} {'krec/s':>7} "
    f"{'faster':>6}  load"
)


class Row(NamedTuple):
    """One query over one topic.

    Attributes:
        topic: Of the peers' topics.
        query: Of their queries.
        target: The most that the ratio to the connector may be.
        is_projected: Whether our source is given the schema that the query needs (the connector takes none).
    """

    topic: str
    query: str
    target: float
    is_projected: bool = False

    @property
    def name(self) -> str:
        """How it is called."""
        return f"{self.topic} {self.query}{', by schema' if self.is_projected else ''}"


ROWS: Final = (
    Row("b100", "count", 0.7),
    Row("b100", "count", 0.5, is_projected=True),
    Row("b100", "noop", 0.7),
    Row("b100", "agg", 0.7),
    Row("b100", "value", 0.6, is_projected=True),
    Row("b100-headers", "count", 0.8),
    Row("b100-headers", "noop", 0.8),
    Row("b100-lz4", "count", 1.0),
    Row("b100-lz4", "noop", 1.0),
    Row("k1", "count", 0.8, is_projected=True),
    Row("k1", "noop", 1.25),
    Row("k1", "agg", 1.1),
    Row("k1", "value", 1.1, is_projected=True),
)
WRITE_TARGET: Final = 1.0
TRIGGER_TARGET: Final = 2.0
SMALL_TARGET: Final = 2.5


class Cost(NamedTuple):
    """What one run took, in seconds."""

    wall: float
    jvm: float
    python: float

    @property
    def cpu(self) -> float:
        """Processor time."""
        return self.jvm + self.python


class Bench:
    """One session, one broker, both formats.

    Args:
        baseline: The peers' module.
        args: The command line, with what the baseline's functions look for.
        data_dir: The broker's files where it is ours.
    """

    def __init__(self, baseline: Any, args: argparse.Namespace, data_dir: Path | None) -> None:
        self.baseline = baseline
        self.args = args
        self.data_dir = data_dir
        can = {"kafka": args.jars != "-", "odradek": True, "segments": data_dir is not None}
        self.formats = [label for label in args.formats.split(",") if can[label]]
        self.results: dict[str, Any] = {}
        self.spark = baseline.session(args)

    def measure(self, name: str, works: dict[str, Callable[[], object]], records: int, target: float) -> None:
        """Do the same work by each format, in turns, after one warm-up each, and print a row for each."""
        for work in works.values():
            work()
        costs: dict[str, list[Cost]] = {label: [] for label in works}
        for number in range(self.args.rounds):
            order = list(works)[:: 1 if number % 2 == 0 else -1]
            for label in order:
                with self.baseline.Meter() as meter:
                    works[label]()
                costs[label].append(Cost(meter.wall, meter.jvm, meter.python))
        base = costs.get("kafka")
        for label, runs in costs.items():
            ratio = faster = None
            if base is not None:
                ratio = statistics.median(run.cpu / first.cpu for run, first in zip(runs, base, strict=True))
                faster = statistics.median(first.wall / run.wall for run, first in zip(runs, base, strict=True))
            middle = sorted(runs, key=lambda run: run.cpu)[len(runs) // 2]
            self.show(name, label, records, middle, (ratio, faster), target)

    def show(
        self, name: str, label: str, records: int, cost: Cost, ratios: tuple[float | None, float | None], target: float
    ) -> None:
        """Print a row, and keep it; `ratios` are of processor time and of speed to the connector's."""
        per = records / MILLION
        ratio, faster = ratios
        self.results[f"{name} / {label}"] = {
            "cpu_s_per_million": round(cost.cpu / per, 3),
            "ratio": ratio and round(ratio, 3),
            "faster": faster and round(faster, 3),
            "target": target,
        }
        is_base = label == "kafka"
        against = "" if ratio is None or is_base else f"{ratio:.2f}{'' if ratio <= target else ' !'}"
        speed = "" if faster is None or is_base else f"{faster:.1f}x"
        print(
            f"{name:<34} {'' if is_base else f'<= {target}':>7} {label:<9} {cost.cpu / per:>8.3f} {against:>6} "
            f"{cost.jvm / per:>6.2f} {cost.python / per:>6.2f} {records / cost.wall / 1e3:>7,.0f} "
            f"{speed:>6}  "
            f"{os.getloadavg()[0]:.1f}",
            flush=True,
        )

    def source(self, label: str, row: Row, columns: str | None, **more: str) -> Any:
        """Return the frame that a format reads."""
        args = copy.copy(self.args)
        args.format = "kafka" if label == "kafka" else "odradek"
        options = more | ({"includeHeaders": "true"} if self.baseline.TOPICS[row.topic][2] else {})
        if label == "segments":
            options |= {"readFrom": "segments", "dataDir": str(self.data_dir)}
        return self.baseline.source(self.spark, args, args.prefix + row.topic, columns=columns, **options)

    def read(self, row: Row) -> None:
        """Measure one row of reading."""
        records = self.baseline.size_of(self.args, self.baseline.TOPICS[row.topic][0])
        works = {}
        for label in self.formats:
            columns = self.baseline.PROJECTED[row.query] if row.is_projected and label != "kafka" else None
            make = lambda _hint, label=label, columns=columns: self.source(label, row, columns)  # noqa: E731
            works[label] = self.baseline.queries(make, records)[row.query]
        self.measure(row.name, works, records, row.target)

    def write(self) -> None:
        """Measure writing: the whole job, rows included."""
        from pyspark.sql import functions

        count = self.args.records_small // 2
        frame = self.spark.range(0, count, 1, self.baseline.PARTITIONS).select(
            functions.lpad(functions.col("id").cast("string"), 11, "0").cast("binary").alias("key"),
            functions.rpad(
                functions.concat(functions.col("id").cast("string"), functions.lit(',{"amount":12.5}')), 100, "x"
            )
            .cast("binary")
            .alias("value"),
        )

        runs = self.args.rounds + 1  # one to warm up
        topics: dict[str, str] = {}

        def writer(label: str, **options: str) -> Callable[[], object]:
            topic = topics[label] = f"{self.args.prefix}written-{label}-{os.getpid()}"
            self.baseline.make_topic(self.args, topic)
            whole = {"kafka.bootstrap.servers": self.args.bootstrap, "topic": topic, **options}
            name = "kafka" if label == "kafka" else "odradek"
            return lambda: frame.write.format(name).options(**whole).mode("append").save()

        works = {label: writer(label) for label in self.formats if label != "segments"}
        works["once"] = writer("once", exactlyOnce="true")
        self.measure("write b100", works, count, WRITE_TARGET)
        for label, topic in topics.items():
            stored = sum(high for _low, high in self.baseline.ends(self.args, topic))
            markers = stored - runs * count
            assert markers == 0 or (label == "once" and 0 < markers < count), f"{stored:,} offsets in {topic}"

    def small(self) -> None:
        """Measure what a query costs that reads four records: processor seconds, not per million."""
        row = Row("b100", "count", SMALL_TARGET)
        ends = {self.args.prefix + row.topic: {str(number): 1 for number in range(self.baseline.PARTITIONS)}}

        def counting(label: str) -> Callable[[], object]:
            return lambda: self.source(label, row, None, endingOffsets=json.dumps(ends)).count()

        works = {label: counting(label) for label in self.formats}
        self.measure("4 records (CPU s a query)", works, MILLION, SMALL_TARGET)

    def feed(self, folder: str) -> None:
        """Measure micro-batches of a topic that is fed at a steady rate."""
        found: dict[str, dict[str, Any]] = {}
        for label in self.formats:
            if label == "segments":
                continue
            args = copy.copy(self.args)
            args.format = label
            args.prefix = f"{args.prefix}{label}-"
            out: dict[str, Any] = {}
            with contextlib.redirect_stdout(None):
                self.baseline.feed(self.spark, args, out, f"{folder}/{label}")
            found[label] = out[f"{label} fed"][0]
        self.results["micro-batches"] = found
        first = found.get("kafka")
        for label, fed in found.items():
            trigger = fed["durationMs"].get("triggerExecution", 0)
            ratio = f" = {trigger / first['durationMs']['triggerExecution']:.2f} (<= {TRIGGER_TARGET})" if first else ""
            print(
                f"micro-batch, {label:<8} {trigger} ms{ratio}; latency p50 {fed['latency_p50_ms']} ms, "
                f"p99 {fed['latency_p99_ms']} ms; {fed['cpu_ms_per_batch']} CPU ms a batch, "
                f"{fed['rows_per_batch']} rows; {fed['received']:,} of {fed['sent']:,} records",
                flush=True,
            )


def load_baseline() -> Any:
    """Return the peers' module.

    Raises:
        SystemExit: It is not there.
    """
    path = PEERS / "spark_baseline.py"
    spec = importlib.util.spec_from_file_location("spark_baseline", path)
    if spec is None or spec.loader is None or not path.exists():
        raise SystemExit(f"no {path}: ODRADEK_PEERS says where the peers are")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def broker(name: str) -> Iterator[tuple[str, int, Path | None]]:
    """Run a broker, or take one that runs; gives its address, its process (0: unknown), its files if it is ours."""
    if ":" in name:
        yield name, 0, None
        return
    with tempfile.TemporaryDirectory(prefix="odradek-spark-") as folder:
        if name == "kafka":
            command = [sys.executable, str(PEERS / "peers.py"), "run", "kafka", "--data-dir", f"{folder}/kafka"]
        else:
            command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", "--data-dir", folder]
            command += ["--set", "auto.create.topics.enable=false"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = json.loads(line)["bootstrap"] if name == "kafka" else line.split()[1]
            yield address, process.pid, None if name == "kafka" else Path(folder)
        finally:
            process.terminate()
            process.wait(60)


@contextlib.contextmanager
def connector() -> Iterator[str]:
    """Give a folder with the connector's jars, or `-` where it cannot be had for this pyspark."""
    import pyspark

    try:
        jars = jars_for(pyspark.__version__)
    except NoConnectorError as error:
        print(f"without the connector: {error}")
        yield "-"
        return
    with tempfile.TemporaryDirectory() as folder:
        for jar in jars:
            (Path(folder) / jar.name).symlink_to(jar)
        yield folder


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; what the baseline's functions look for is in it too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="a fifth of the records, one round: does it run, about where"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="parts of rows' names, comma separated; also small, write, feed")
    parser.add_argument("--formats", default="kafka,odradek,segments", help="which of kafka, odradek, segments")
    parser.add_argument("--broker", default="odradek", help="odradek, kafka, or HOST:PORT of one that runs")
    parser.add_argument("--json", type=Path, help="keep the figures here too")
    args = parser.parse_args(words)
    share = QUICK_SHARE if args.quick else 1
    args.rounds = 1 if args.quick else args.rounds
    args.records_small, args.records_large = RECORDS["small"] // share, RECORDS["large"] // share
    args.prefix, args.master, args.log_level = "sb-", "local[2]", "ERROR"
    args.feed_repeat, args.feed_rate = 1, 5000
    args.feed_seconds = QUICK_FEED_SECONDS if args.quick else FEED_SECONDS
    args.broker_pid = None
    return args


def main() -> int:
    """Measure."""
    args = parse()
    if importlib.util.find_spec("pyspark") is None:
        print("pyspark is not installed: `tox -e spark-parity --notest` brings it, with the connector's version")
        return 0
    baseline = load_baseline()
    wanted = [part for part in args.only.split(",") if part]

    def is_wanted(name: str) -> bool:
        return not wanted or any(part in name for part in wanted)

    rows = [row for row in ROWS if is_wanted(row.name)]
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        args.bootstrap, pid, data_dir = stack.enter_context(broker(args.broker))
        args.jars = stack.enter_context(connector())
        baseline.fill(args, sorted({row.topic for row in rows} | ({"b100"} if is_wanted("small") else set())))
        # The broker is a child of this process, and its time does not count.
        baseline.tree_cpu = functools.partial(lambda count, skip=(): count({*skip, pid}), baseline.tree_cpu)
        bench = Bench(baseline, args, data_dir)
        stack.callback(bench.spark.stop)
        print(f"Spark {bench.spark.version}, broker {args.broker}, {args.rounds} rounds\n\n{HEADING}", flush=True)
        for row in rows:
            bench.read(row)
        if is_wanted("small"):
            bench.small()
        if is_wanted("write"):
            bench.write()
        if is_wanted("feed"):
            bench.feed(stack.enter_context(tempfile.TemporaryDirectory()))
        if args.json:
            args.json.write_text(json.dumps(bench.results, indent=1) + "\n")
    print(f"\n{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
