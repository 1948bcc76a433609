"""Every benchmark by one command: `python -m benchmarks [NAME ...]`; what it prints is kept in `benchmarks/results/`.

| name | what |
|---|---|
| `broker` | the whole broker: small produces, ingest and fetch against bare C loops |
| `echo` | the reactor alone against a raw epoll loop |
| `turns` | what a turn of the broker costs on one thread, without a client beside it: for machines that others use |
| `start` | process start to the first answer, memory when idle, 5,000 partitions, 10,000 connections |
| `scale` | what each of 500 and 5,000 partitions costs: create, produce, stop, start clean and after a kill; idle |
| | `python -m benchmarks.scale --beside` puts it beside Apache Kafka's, where the peers are |
| `cluster` | three brokers: start, idle, time to the next record after a kill and in a drain; what two brokers take |
| `growth` | three brokers by partitions and by replicas, and a follower that is behind while producers go on; beside |
| | Apache Kafka's, in turns |
| `metadata` | 100,000 partitions, 100 brokers: a snapshot, heartbeats, elections, fences, by simulated controllers |
| `delay` | delayed records: taking, keeping, delivering them, how late, and the next start, by how many wait |
| `stalls` | how long another client waits beside a request for thousands of partitions, or millions of records |
| `long_operations` | how long a coordinator works in one go, as when a large group changes its protocol |
| `simulation` | what a simulated broker costs: an idle hour, requests a second |
| `wide_fetch` | a consumer of a thousand partitions, one of which gets a record |
| `groups`, `transactions` | joins, rebalances, commits, heartbeats; transactions; each beside Apache Kafka, in turns |
| `peers` | the same client work on Apache Kafka and other brokers (`ODRADEK_PEERS`), in turns |
| `compaction` | what a pass takes, and what clients notice of it |
| `cleaners` | the processor time of compaction beside that of Apache Kafka's cleaner, on the same segments |
| `tiered` | segments to a folder and an S3 server, cold reads, hot ones beside them |
| `spark` | our Spark source and sink beside Spark's connector, by the Python that `ODRADEK_SPARK_PYTHON` names |
| `columns` | record batches to Arrow's columns and back, compiled and in Python |
| `light_client` | what Spark's workers pay for a topic's bytes: fetch alone, fetch and decode |
| `spark_writes` | what Spark's workers pay for writing: sorting by partition, encoding, sending |
| `direct_reads` | what Spark's tasks pay for records from files, from objects and from the broker |
| `storage`, `wire`, `records`, ... | the parts |

Nothing here is gated by a timer: machines are noisy. Quote the ratios of a run, with the machine's facts at its top.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

from tools.peers_folder import peers_folder

HERE = Path(__file__).parent
ROOT = HERE.parent
PEERS = peers_folder()
SERVE = f"{sys.executable} -m odradek serve --listen 127.0.0.1:{{port}} --data-dir {{data}}"

COMMANDS = {
    "broker": [sys.executable, "-m", "benchmarks.broker"],
    "echo": [sys.executable, "-m", "benchmarks.echo"],
    "turns": [sys.executable, "-m", "benchmarks.turns"],
    "start": [sys.executable, "-m", "benchmarks.start"],
    "scale": [sys.executable, "-m", "benchmarks.scale"],
    "cluster": [sys.executable, "-m", "benchmarks.cluster", "--beside"],
    "growth": [sys.executable, "-m", "benchmarks.growth"],
    "metadata": [sys.executable, "-m", "benchmarks.metadata"],
    "delay": [sys.executable, "-m", "benchmarks.delay"],
    "stalls": [sys.executable, "-m", "benchmarks.stalls"],
    "long_operations": [sys.executable, "-m", "benchmarks.long_operations"],
    "simulation": [sys.executable, "-m", "benchmarks.simulation"],
    "wide_fetch": [sys.executable, "-m", "benchmarks.wide_fetch"],
    "groups": [sys.executable, "-m", "benchmarks.groups"],
    "transactions": [sys.executable, "-m", "benchmarks.transactions"],
    "peers": [sys.executable, str(PEERS / "bench.py"), "kafka", f"odradek=cmd:{SERVE}", "--rounds", "3"],
    "compaction": [sys.executable, "-m", "benchmarks.compaction"],
    "cleaners": [sys.executable, "-m", "benchmarks.cleaners"],
    "tiered": [sys.executable, "-m", "benchmarks.tiered"],
    "spark": [os.environ.get("ODRADEK_SPARK_PYTHON", sys.executable), "-m", "benchmarks.spark"],
    "direct_reads": [sys.executable, "-m", "benchmarks.direct_reads"],
    "storage": [sys.executable, "-m", "benchmarks.storage"],
    "wire": [sys.executable, "-m", "benchmarks.wire_codec"],
    "light_client": [sys.executable, "-m", "benchmarks.light_client"],
    "spark_writes": [sys.executable, "-m", "benchmarks.spark_writes"],
    "records": [sys.executable, "-m", "benchmarks.records"],
    "columns": [sys.executable, "-m", "benchmarks.columns"],
    "purgatory": [sys.executable, "-m", "benchmarks.purgatory"],
    "fetch_session": [sys.executable, "-m", "benchmarks.fetch_session"],
    "assignors": [sys.executable, "-m", "benchmarks.assignors"],
    "producer_state": [sys.executable, "-m", "benchmarks.producer_state"],
}


def machine_facts() -> str:
    """Return what the figures were measured on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    load = os.getloadavg()[0]
    return (
        f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}, "
        f"load {load:.1f} before"
    )


def main() -> int:
    """Run what is asked for; return 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *COMMANDS], metavar="NAME", help=f"of {', '.join(COMMANDS)}")
    names = parser.parse_args().names or list(COMMANDS)
    now = datetime.datetime.now(datetime.UTC)
    results = HERE / "results" / f"{now:%Y-%m-%d-%H%M}.txt"
    results.parent.mkdir(exist_ok=True)
    has_failed = False
    with results.open("w") as file:
        for line in (f"{now:%Y-%m-%d %H:%M} UTC", machine_facts()):
            print(line)
            file.write(line + "\n")
        for name in names:
            heading = f"\n== {name}\n"
            print(heading, end="", flush=True)
            file.write(heading)
            process = subprocess.Popen(
                COMMANDS[name], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                file.write(line)
            has_failed |= process.wait() != 0
    print(f"\nkept in {results.relative_to(ROOT)}")
    return int(has_failed)


if __name__ == "__main__":
    raise SystemExit(main())
