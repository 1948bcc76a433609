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
    "the kernel knows no plugin, and nothing that uses a broker": (
        "kernel/broker/supervision.py",
        "import odradek.plugins.storage_memory",
    ),
    "what is shipped stands in layers: above may know below, `|` separates those that do not know each other": (
        "src/odradek/storage_base/epochs.py",
        "import odradek.client.errors",
    ),
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
    "who answers requests knows the controller by its calls alone": (
        "kernel/dispatch/admin_handlers.py",
        "import odradek.kernel.controller.placement",
    ),
    "a replica knows nothing of requests": (
        "kernel/partitions/tiers.py",
        "import odradek.kernel.wire.framing",
    ),
    "the client knows of the kernel what a broker's peers have in common": (
        "src/odradek/client/__init__.py",
        "import odradek.kernel.broker",
    ),
    "who starts a broker does not reach into it": (
        "src/odradek/testing/running_broker.py",
        "import odradek.kernel.metadata.image",
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


def dotted(path: str) -> str:
    """Return the module that a file of the checkout is."""
    return path_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_every_contract_has_a_violation() -> None:
    assert sorted(contracts()) == sorted(VIOLATIONS)


@pytest.mark.parametrize("name", contracts())
def test_contract_breaks_on_a_violation(name: str, report: str) -> None:
    path, line = VIOLATIONS[name]
    told = report.partition("Broken contracts")[2].partition(f"\n{name}\n---")[2]
    of_it = re.split(r"\n[^\n]+\n-{5,}\n", told.partition("\n\n")[2])[0]

    assert re.search(rf"^{re.escape(name)} BROKEN", report, re.MULTILINE), report
    assert re.search(rf"{re.escape(dotted(path))} ->\s+{re.escape(line.removeprefix('import '))}\b", of_it), of_it
