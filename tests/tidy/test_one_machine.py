"""What is no computation is taken from a `Machine`, which can be exchanged: who goes past it is listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tools.rooms import FOLDERS

ROOT: Final = Path(__file__).parents[2]
MODULES: Final = frozenset(
    {"concurrent", "multiprocessing", "select", "selectors", "socket", "subprocess", "threading"}
)
"""Modules that wait, start or connect by themselves."""
NAMES: Final = frozenset(
    {
        *("os.fork", "os.sendfile", "time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns"),
        *("time.sleep", "time.time", "time.time_ns", "trio.Process", "trio.from_thread", "trio.lowlevel.open_process"),
        *("trio.open_tcp_listeners", "trio.open_tcp_stream", "trio.run_process", "trio.serve_tcp", "trio.socket"),
        "trio.to_thread",
    }
)
"""Other ways to do the same."""
AT_HOME: Final = ("kernel/machine/", "kernel/network/", "spark_plugin/")
"""Where the real machine is made, and what only works on the system's sockets; the last lives under Spark's clocks."""

COMMAND: Final = "a command of somebody at a terminal"
OUTSIDE: Final = "starts brokers, and measures them from outside"
OWN_RUN: Final = "has trio run on a thread beside the program's own"
OF_TESTS: Final = "of tests, beside a real broker"
NUMBERS: Final = "names of options and errors, no sockets"
OF_SEEDS: Final = "starts processes that run seeds of the simulator"
OF_STORES: Final = "of the commands that look through a store"

EXCEPTIONS: Final[Mapping[str, str]] = {
    "plugins/storage_tiered/stores.py": OF_STORES,
    "plugins/storage_tiered/verify.py": OF_STORES,
    "src/odradek/cli/consume.py": COMMAND,
    "src/odradek/cli/consume_group.py": COMMAND,
    "src/odradek/cli/demo/broker_process.py": COMMAND,
    "src/odradek/cli/demo/cluster_chapters.py": COMMAND,
    "src/odradek/cli/demo/log_chapters.py": COMMAND,
    "src/odradek/cli/demo/scene.py": COMMAND,
    "src/odradek/cli/demo/spark_job.py": COMMAND,
    "src/odradek/cli/demo/spark_process.py": COMMAND,
    "src/odradek/cli/demo/story.py": COMMAND,
    "src/odradek/cli/demo/tiered_chapters.py": COMMAND,
    "src/odradek/cli/doctor/looking.py": COMMAND,
    "src/odradek/cli/logs/lines.py": COMMAND,
    "src/odradek/cli/perf.py": COMMAND,
    "src/odradek/cli/plugin_check.py": COMMAND,
    "src/odradek/cli/probe.py": COMMAND,
    "src/odradek/cli/produce.py": COMMAND,
    "src/odradek/cli/running.py": COMMAND,
    "src/odradek/cli/serve_many.py": COMMAND,
    "src/odradek/client/blocking.py": OWN_RUN,
    "src/odradek/client/blocking_consumer.py": OWN_RUN,
    "src/odradek/client/blocking_producer.py": OWN_RUN,
    "src/odradek/lab/compare/broker_process.py": OUTSIDE,
    "src/odradek/lab/compare/cluster_processes.py": OUTSIDE,
    "src/odradek/lab/compare/fault_run.py": OUTSIDE,
    "src/odradek/lab/compare/load.py": OUTSIDE,
    "src/odradek/lab/compare/one_run.py": OUTSIDE,
    "src/odradek/lab/simulator/campaign_workers.py": OF_SEEDS,
    "src/odradek/lab/simulator/sockets.py": NUMBERS,
    "src/odradek/lab/simulator/stream.py": NUMBERS,
    "src/odradek/testing/broker_helpers.py": OF_TESTS,
    "src/odradek/testing/broker_thread.py": OWN_RUN,
    "src/odradek/testing/cluster_time.py": OF_TESTS,
    "src/odradek/testing/contracts/remote_store.py": OF_TESTS,
    "src/odradek/testing/contracts/storage_works.py": OF_TESTS,
    "src/odradek/testing/cut_network.py": OF_TESTS,
    "src/odradek/testing/object_stores.py": OF_TESTS,
    "src/odradek/testing/running_broker.py": OF_TESTS,
    "src/odradek/testing/running_cluster.py": OF_TESTS,
}
"""By file, why it may. It shrinks, and nothing that runs in a broker or in our client on trio may enter it."""


def names_of_modules(tree: ast.Module) -> dict[str, str]:
    """Return what the modules are called in a file, by their names there."""
    return {
        alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def dotted(node: ast.expr, modules: Mapping[str, str]) -> str:
    """Return `module.name` for what is reached by way of a module; empty for anything else."""
    if isinstance(node, ast.Name):
        return modules.get(node.id, "")
    if isinstance(node, ast.Attribute) and (holder := dotted(node.value, modules)):
        return f"{holder}.{node.attr}"
    return ""


def ways_past(source: str) -> Iterator[int]:
    """Yield the lines that go past the machine."""
    tree = ast.parse(source)
    modules = names_of_modules(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            named = {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            named = {dotted(node, modules)}
        else:
            continue
        if any(name in NAMES or name.partition(".")[0] in MODULES for name in named):
            yield node.lineno


def test_nobody_goes_past_the_machine_but_who_is_listed() -> None:
    found = {
        name
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if not (name := path.relative_to(ROOT).as_posix()).startswith(AT_HOME)
        if any(ways_past(path.read_text()))
    }

    assert sorted(found) == sorted(EXCEPTIONS)


def test_nothing_of_a_broker_is_listed() -> None:
    assert [name for name in EXCEPTIONS if name.startswith("kernel/")] == []


@pytest.mark.parametrize(
    "line",
    [
        "import threading",
        "import socket as constants",
        "from concurrent.futures import ThreadPoolExecutor",
        "from time import perf_counter",
        "from trio import to_thread",
        "import trio\nawait trio.to_thread.run_sync(print)",
        "import trio as t\nt.socket.socket()",
        "import time\nnow = time.perf_counter",
    ],
)
def test_a_way_past_the_machine_is_found(line: str) -> None:
    assert list(ways_past(line))


@pytest.mark.parametrize(
    "line",
    [
        "import trio\nawait trio.sleep(1)",
        "self.socket.send(data)",
        "from .threads import Workers",
        "self.time.sleep(1)",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    assert not list(ways_past(line))
