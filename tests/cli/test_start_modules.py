"""What a broker's start imports is needed by every broker: the rest waits until somebody asks for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PathDistribution
from importlib.metadata import distribution as distribution_of
from typing import Final

import pytest

from odradek.kernel.plugin_system.manager import installed_plugins

OURS_MAX: Final = 457
"""So many modules of ours a broker has imported when it serves; who needs more says here for what.

The last four were parts of others: `fetch_context`, `byte_rate`, `future_log`; and how refused timers wait, `refusals`.
"""
COMPILED_MAX: Final = 8
"""So many classes may have all their methods compiled while a start imports them; each takes a fifth of a ms longer."""
NOT_NEEDED: Final = (
    "asyncio",
    "concurrent.futures",
    "difflib",
    "http",
    "multiprocessing",
    "numpy",
    "obstore",
    "odradek.client",
    "odradek.kernel.cleanup.worker_process",
    "odradek.kernel.contracts.remote_store",
    "odradek.kernel.contracts.restoring",
    "odradek.kernel.dispatch.handlers.api_01_fetch",
    "odradek.kernel.dispatch.handlers.api_19_create_topics",
    "odradek.kernel.key_stores",
    "odradek.kernel.regex.matcher",
    "odradek.kernel.wire.messages.api_32_describe_configs",
    "odradek.lab",
    "odradek.plugins.storage_tiered.tier",
    "odradek.spark_plugin",
    "odradek.testing",
    "pyarrow",
    "rich",
    "sqlite3",
    "tomllib",
    "unittest",
    "xml",
)
SCRIPT: Final = """
import json, linecache, sys
import trio
import odradek.cli.serve as serve
from odradek.cli import main

async def serve_and_tell(broker, say):
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        texts = {name: "".join(lines) for name, (_, _, lines, *_) in linecache.cache.items()}
        compiled = sorted(name for name, text in texts.items() if "def __repr__" in text)
        print(json.dumps({"modules": sorted(sys.modules), "compiled": compiled}))
        nursery.cancel_scope.cancel()

serve._serve = serve_and_tell
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return what a process has imported, and compiled, in which a broker with its default settings serves."""
    command = [sys.executable, "-c", SCRIPT, "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(tmp_path_factory.mktemp("data"))]
    # What measures coverage imports modules of its own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[0])
    return found


@pytest.fixture
def imported(started: dict[str, list[str]]) -> list[str]:
    """Return the modules that are imported."""
    return started["modules"]


def test_a_start_imports_nothing_that_only_some_brokers_need(imported: list[str]) -> None:
    found = [
        name for name in imported if name.startswith(tuple(f"{each}." for each in NOT_NEEDED)) or name in NOT_NEEDED
    ]

    assert found == []


def test_a_start_imports_no_more_modules_than_it_is_meant_to(imported: list[str]) -> None:
    ours = [name for name in imported if name.startswith("odradek.")]

    assert OURS_MAX * 0.8 < len(ours) <= OURS_MAX


def test_a_start_compiles_no_methods_that_few_classes_need(started: dict[str, list[str]]) -> None:
    """Classes of fields that a start makes are made by `kernel/classes.py`, whose docstring says why."""
    ours = [name for name in started["compiled"] if "odradek." in name]

    assert len(ours) <= COMPILED_MAX, ours
    assert any(" trio." in name for name in started["compiled"]), "what attrs compiles is found"


def test_who_ships_a_plugin_is_read_once_for_each_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    read_text = PathDistribution.read_text

    def read(self: PathDistribution, filename: str) -> str | None:
        if filename == "METADATA":
            looks.append(filename)
        return read_text(self, filename)

    monkeypatch.setattr(PathDistribution, "read_text", read)
    plugins = installed_plugins()

    assert len(plugins) > 5
    assert len(looks) == len({plugin.distribution for plugin in plugins})
    monkeypatch.undo()
    (ours,) = {plugin.distribution for plugin in plugins if plugin.module.startswith("odradek.plugins.")}
    assert ours == f"odradek {distribution_of('odradek').version}"


def test_no_collection_runs_while_a_command_is_imported() -> None:
    script = (
        "import gc, sys\n"
        "runs = []\n"
        "from odradek.cli import build_parser\n"
        "gc.callbacks.append(lambda phase, info: runs.append(phase))\n"
        "build_parser(['serve'])\n"
        "assert 'trio' in sys.modules and gc.isenabled()\n"
        "print(len(runs))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert int(done.stdout) <= 4, "at most what the parser itself causes"
