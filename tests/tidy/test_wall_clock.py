"""The wall clock may jump, so nothing is timed by it: who reads it says here what else it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.rooms import FOLDERS

ROOT = Path(__file__).parents[2]
CLOCKS = {"clock", "_clock", "context", "_context", "SystemClock"}
"""What a clock, or who has its functions, is called where it is asked."""
MACHINES_OWN = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow"}

STAMPS = "what is written down has a time"
COMPARES = "times of records are compared with it"
TELLS = "it is told to somebody"
HANDED_ON = "handed to who answers to this list itself"

READERS = {
    "kernel/broker/figures.py": COMPARES,
    "kernel/broker/log_parts.py": HANDED_ON,
    "kernel/cleanup/compactor.py": COMPARES,
    "kernel/cleanup/retention.py": COMPARES,
    "kernel/cluster/metadata_observer.py": STAMPS,
    "kernel/controller/metadata_feed.py": TELLS,
    "kernel/controller/metadata_log.py": STAMPS,
    "kernel/controller/opening.py": STAMPS,
    "kernel/controller/snapshot_upkeep.py": STAMPS,
    "kernel/coordinator/hosted_shard.py": STAMPS,
    "kernel/dispatch/handlers/api_00_produce.py": STAMPS,
    "kernel/dispatch/handlers/api_55_describe_quorum.py": TELLS,
    "kernel/dispatch/produce_judging.py": STAMPS,
    "kernel/dispatch/topic_quorums.py": TELLS,
    "kernel/machine/clock.py": "it is the clock",
    "kernel/partitions/dead_letter_taking.py": STAMPS,
    "kernel/partitions/dead_letters.py": COMPARES,
    "kernel/partitions/delay_delivery.py": COMPARES,
    "kernel/partitions/delay_pieces.py": STAMPS,
    "kernel/partitions/marker_writer.py": STAMPS,
    "kernel/partitions/replica_opener.py": COMPARES,
    "kernel/partitions/upkeep.py": COMPARES,
    "kernel/quorum/formatting.py": STAMPS,
    "kernel/quorum/founding_shell.py": STAMPS,
    "kernel/quorum/quorum_log.py": STAMPS,
    "kernel/quorum/quorum_view.py": TELLS,
    "kernel/replication/fetcher.py": COMPARES,
    "kernel/replication/tier_starts.py": COMPARES,
    "kernel/replication/voting_rounds.py": STAMPS,
    "plugins/storage_memory/engine.py": STAMPS,
    "plugins/storage_segment/engine.py": STAMPS,
    "plugins/storage_tiered/passes.py": COMPARES,
    "plugins/storage_tiered/tier.py": COMPARES,
    "src/odradek/cli/compare.py": TELLS,
    "src/odradek/cli/demo/__init__.py": TELLS,
    "src/odradek/cli/demo/delay_chapters.py": STAMPS,
    "src/odradek/cli/demo/delay_work.py": COMPARES,
    "src/odradek/cli/demo/retry_work.py": COMPARES,
    "src/odradek/cli/groups_reset.py": COMPARES,
    "src/odradek/cli/perf.py": COMPARES,
    "src/odradek/cli/transactions.py": COMPARES,
    "src/odradek/client/fetch_loop.py": COMPARES,
    "src/odradek/client/ordered/order_keeper.py": STAMPS,
    "src/odradek/client/producer.py": STAMPS,
    "src/odradek/lab/simulator/delays.py": COMPARES,
    "src/odradek/lab/simulator/retries.py": COMPARES,
    "src/odradek/testing/running_broker.py": TELLS,
}
"""By module, why it reads the wall clock. How long something takes, or may take, is asked of `monotonic_ms`."""


def wall_clock_readings(source: str) -> Iterator[int]:
    """Yield the lines in which a wall clock is read or handed on."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Attribute):
            continue
        holder = node.value.func if isinstance(node.value, ast.Call) else node.value
        name = holder.attr if isinstance(holder, ast.Attribute) else holder.id if isinstance(holder, ast.Name) else ""
        if (node.attr == "now_ms" and name in CLOCKS) or f"{name}.{node.attr}" in MACHINES_OWN:
            yield node.lineno


def test_every_reading_of_the_wall_clock_says_what_it_is_for() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        if folder != "spark_plugin"  # it runs under Spark's clocks
        for path in (ROOT / folder).rglob("*.py")
        if any(wall_clock_readings(path.read_text()))
    }

    assert sorted(found) == sorted(READERS)


def test_readings_are_found() -> None:
    lines = (
        "self._clock.now_ms()",
        "time.time()",
        "f(broker.clock.now_ms)",
        "SystemClock().now_ms()",
        "loop.now_ms",
        "clock.monotonic_ms()",
    )

    assert list(wall_clock_readings("\n".join(lines))) == [1, 2, 3, 4]
