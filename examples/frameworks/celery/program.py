"""Celery: a worker takes its tasks from a topic, by kombu's transport over librdkafka.

Run as `program.py BOOTSTRAP PREFIX`; it creates topics of that prefix. With `worker` behind them it is the worker,
which writes what it did to the file that `RESULTS` names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from celery import Celery, chain

COUNT = 10
LIMIT_S = 90

bootstrap, prefix = sys.argv[1:3]
app = Celery("program", broker=f"confluentkafka://{bootstrap}")
app.conf.update(
    task_default_queue=f"{prefix}-tasks",
    worker_enable_remote_control=False,  # it needs a broadcast exchange, which this transport has not
    broker_transport_options={"kafka_topic_config": {"num.partitions": "1"}},
    task_ignore_result=True,
)


@app.task(name="add")
def add(left: int, right: int) -> int:
    """Add two numbers, and tell the one who waits."""
    with Path(os.environ["RESULTS"]).open("a") as results:
        results.write(f"{left + right}\n")
    return left + right


def main() -> None:
    """Send tasks, have a worker do them, and see what it did."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        results.touch()
        worker = subprocess.Popen(
            [sys.executable, __file__, bootstrap, prefix, "worker"], env={**os.environ, "RESULTS": str(results)}
        )
        try:
            for number in range(COUNT):
                add.delay(number, 100)
            chain(add.s(1, 2), add.s(3))()  # the worker itself sends the second task
            wanted = sorted([*(100 + number for number in range(COUNT)), 3, 6])
            deadline = time.monotonic() + LIMIT_S
            while len(found := results.read_text().split()) < len(wanted):
                assert worker.poll() is None, "the worker ended"
                assert time.monotonic() < deadline, f"done: {found}"
                time.sleep(0.1)
            assert sorted(map(int, found)) == wanted, found
        finally:
            worker.terminate()
            worker.wait(30)


if sys.argv[3:] == ["worker"]:
    app.worker_main(["worker", "--pool=solo", "--loglevel=WARNING", "--without-mingle", "--without-gossip"])
else:
    main()
    print("ok")
