"""What an operator sees when a plugin is at fault: one line that says which, why and what to do, and no traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BROKEN_IMPORT = "import there_is_no_such_module"
SYNTAX_ERROR = "def"
WRONG_ARGUMENT = """
from odradek.kernel.api import hookimpl

@hookimpl
def odradek_storages(surprise):
    return {}
"""
UNKNOWN_HOOK = """
from odradek.kernel.api import hookimpl

@hookimpl
def odradek_storage():
    return {}
"""
FAILING_HOOK = """
from odradek.kernel.api import hookimpl

@hookimpl
def odradek_storages():
    raise RuntimeError("no disk today")
"""
DOUBLED_OFFER = """
from odradek.kernel.api import hookimpl

@hookimpl
def odradek_storages():
    return {"memory": object}
"""
NO_HOOK = "answer = 42"
UNMARKED_HOOK = """
def odradek_storages():
    return {}
"""
NO_OFFER = """
from odradek.kernel.api import hookimpl

@hookimpl
def odradek_storages():
    return {"mine": "not a storage"}
"""
STORAGE = """
from odradek.kernel.api import hookimpl
from odradek.plugins.storage_memory.engine import MemoryEngine

def fails(context):
    raise RuntimeError("no engine today")

class Fails(MemoryEngine):
    def start(self):
        raise RuntimeError("no start today")

@hookimpl
def odradek_storages():
    return {"mine": %s}
"""
OTHER_VERSION = "odradek_plugin_api = 99"
FOREIGN_KEY = """
from odradek.kernel.api import ConfigKey, ConfigType, hookimpl

@hookimpl
def odradek_config_keys():
    return [ConfigKey("log.dirs", ConfigType.STRING, "")]
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder that the child imports from."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def install(site: Path, name: str, source: str, *, distribution: str = "stranger") -> None:
    """Install a plugin as a distribution of its own."""
    module = f"{distribution}_{name}"
    (site / f"{module}.py").write_text(source)
    information = site / f"{distribution}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[odradek.plugins]\n{name} = {module}\n")


def start(site: Path, config: str = "") -> tuple[int, list[str]]:
    """Start a broker that cannot start; return its exit status and the lines on standard error."""
    folder = site.parent
    (folder / "odradek.toml").write_text(config)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "odradek",
            "serve",
            *["--config", "odradek.toml", "--listen", "127.0.0.1:0", "--data-dir", "data"],
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param(BROKEN_IMPORT, "No module named 'there_is_no_such_module'", id="broken import"),
        pytest.param(SYNTAX_ERROR, "SyntaxError", id="syntax error"),
        pytest.param(WRONG_ARGUMENT, "surprise", id="wrong argument"),
        pytest.param(UNKNOWN_HOOK, "odradek_storage", id="unknown hook"),
        pytest.param(FAILING_HOOK, "no disk today", id="failing hook"),
        pytest.param(DOUBLED_OFFER, "offers the storage 'memory', which plugin", id="doubled offer"),
        pytest.param(NO_HOOK, "implements no hook", id="no hook"),
        pytest.param(UNMARKED_HOOK, "does not mark odradek_storages with `hookimpl`", id="unmarked hook"),
        pytest.param(NO_OFFER, "'not a storage' has no `__call__`", id="no offer"),
        pytest.param(STORAGE % "fails", "cannot be made: RuntimeError('no engine today')", id="no engine"),
        pytest.param(STORAGE % "lambda _: 5", "the engine of storage 'mine' has no `cluster_id`", id="half an engine"),
        pytest.param(STORAGE % "Fails", "cannot start: RuntimeError('no start today')", id="engine that fails"),
        pytest.param(OTHER_VERSION, "version 99 of the plugin API", id="other version"),
        pytest.param(FOREIGN_KEY, "log.dirs", id="key of somebody else"),
    ],
)
def test_a_plugin_at_fault_stops_the_start_with_one_line(site: Path, source: str, reason: str) -> None:
    install(site, "guilty", source)

    status, lines = start(site)

    assert (status in (1, 2), len(lines)) == (True, 1), lines
    assert lines[0].startswith("odradek: ")
    assert reason in lines[0]
    assert "'guilty'" in lines[0]
    assert any(remedy in lines[0] for remedy in ("into `disable`", "disable one", "install a version", "begin with"))


def test_a_plugin_that_is_enabled_but_missing_is_told_with_what_is_there(site: Path) -> None:
    status, (line,) = start(site, '[plugins]\nenable = ["storage_segmnt"]\n')

    assert status == 1
    assert "'storage_segmnt'" in line
    assert re.search(r"not installed \(installed: [^)]*election_isr, [^)]*storage_memory, storage_segment", line)


def test_two_distributions_that_announce_one_name_are_told_apart(site: Path) -> None:
    install(site, "twice", "", distribution="first")
    install(site, "twice", "", distribution="second")

    status, (line,) = start(site)

    assert status == 1
    assert "'twice'" in line
    assert "first 1.0" in line
    assert "second 1.0" in line


def test_a_kernel_without_an_election_says_so(site: Path) -> None:
    status, (line,) = start(site, '[plugins]\nenable = ["storage_segment"]\n')

    assert status == 1
    assert "odradek: no active plugin offers the election 'isr'" in line


def test_a_broken_plugin_that_is_disabled_is_never_imported(site: Path) -> None:
    install(site, "guilty", BROKEN_IMPORT)

    status, (line,) = start(site, '[plugins]\ndisable = ["guilty", "storage_segment"]\n')

    assert status == 1
    assert "guilty" not in line
