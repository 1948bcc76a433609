"""The import contracts of pyproject.toml: every one is seen to break when a module breaks it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.rooms import FOLDERS, path_of

ROOT = Path(__file__).parents[2]

VIOLATIONS = {
    "the kernel knows no plugin": ("kernel/broker/supervision.py", "import odradek.plugins.storage_memory"),
    "plugins do not know each other": ("plugins/election_isr/factory.py", "import odradek.plugins.storage_memory"),
    "plugins know the public API and nothing else of the kernel": (
        "plugins/storage_memory/engine.py",
        "import odradek.kernel.machine.clock",
    ),
    "the Spark plugin knows the protocol, records, and the asking end's pure parts; formats where it reads files": (
        "spark_plugin/ranges.py",
        "import odradek.kernel.machine.clock",
    ),
    "the kernel's rooms stand in layers: above may know below, `|` separates those that do not know each other": (
        "kernel/partitions/upkeep.py",
        "import odradek.kernel.metadata.image",
    ),
    "the client knows nothing of a broker's inside": (
        "src/odradek/client/__init__.py",
        "import odradek.kernel.partitions.replica",
    ),
    "nobody but the plugin manager, the specifications and the API touches pluggy": (
        "kernel/controller/rules.py",
        "import pluggy",
    ),
    "a broker that serves imports nothing that prints nicely": ("kernel/purgatory/clockwork.py", "import rich"),
}


def contracts() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what the linter says of a copy of the code with every violation in it."""
    copy = tmp_path_factory.mktemp("copy")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / path_of(folder), ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(ROOT / "src/odradek/__init__.py", copy / "odradek")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for path, line in VIOLATIONS.values():
        with (copy / path_of(path)).open("a") as module:
            module.write(f"\n{line}\n")
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", contracts())
def test_contract_breaks_on_a_violation(name: str, report: str) -> None:
    assert re.search(rf"^{re.escape(name)} BROKEN", report, re.MULTILINE), report
