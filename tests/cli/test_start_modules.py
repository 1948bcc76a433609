"""What a broker's start imports is needed by every broker: the rest waits until somebody asks for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PathDistribution
from typing import Final

import pytest

from odradek.kernel.plugin_system.manager import installed_plugins

OURS_MAX: Final = 420
"""So many modules of ours a broker has imported when it serves; who needs more says here for what."""
NOT_NEEDED: Final = (
    "asyncio",
    "concurrent.futures",
    "difflib",
    "http",
    "multiprocessing",
    "numpy",
    "obstore",
    "odradek.client",
    "odradek.kernel.key_stores",
    "odradek.kernel.cleanup.worker_process",
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
import json, sys
import trio
import odradek.cli.serve as serve
from odradek.cli import main

async def serve_and_tell(broker, say):
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        print(json.dumps(sorted(sys.modules)))
        nursery.cancel_scope.cancel()

serve._serve = serve_and_tell
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the modules of a process in which a broker with its default settings serves."""
    command = [sys.executable, "-c", SCRIPT, "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(tmp_path_factory.mktemp("data"))]
    # What measures coverage imports modules of its own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [str(name) for name in json.loads(done.stdout.splitlines()[0])]


def test_a_start_imports_nothing_that_only_some_brokers_need(imported: list[str]) -> None:
    found = [
        name for name in imported if name.startswith(tuple(f"{each}." for each in NOT_NEEDED)) or name in NOT_NEEDED
    ]

    assert found == []


def test_a_start_imports_no_more_modules_than_it_is_meant_to(imported: list[str]) -> None:
    ours = [name for name in imported if name.startswith("odradek.")]

    assert OURS_MAX * 0.8 < len(ours) <= OURS_MAX


def test_who_ships_a_plugin_is_read_once_for_each_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def version(self: PathDistribution) -> str:
        looks.append("a look")
        return str(self.metadata["Version"])

    monkeypatch.setattr(PathDistribution, "version", property(version))
    plugins = installed_plugins()

    assert len(plugins) > 5
    assert len(looks) == len({plugin.distribution for plugin in plugins})


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
