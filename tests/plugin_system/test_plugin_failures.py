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
    return {"memory": lambda context: None}
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
NEARLY = """
from odradek.kernel.api import hookimpl

def odradek_append_stage():
    return {}

@hookimpl
def odradek_storages():
    return {}
"""
OFFER = """
from odradek.kernel.api import CleanupPolicy, hookimpl

class Keeps(CleanupPolicy):
    def plan(self, log):
        return None

class Plans(CleanupPolicy):
    def plan(self):
        return None

class Assigns:
    name, is_cooperative, is_server_side = "mine", False, True
    def assign(self, members):
        return {}
    def subscription_user_data(self, topics, previous, generation):
        return None

class Handler:
    api_key = 10_000
    async def handle(self, request, context):
        return None
    def error_response(self, request, context, code, detail):
        return None

def make_stage(partition):
    return None

@hookimpl
def odradek_%s:
    return %s
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


def start(site: Path, config: str = "", *, verbose: bool = False) -> tuple[int, list[str]]:
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
            *(["-v"] if verbose else []),
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
        pytest.param(BROKEN_IMPORT, "{file}:1: ModuleNotFoundError: No module named 'there", id="broken import"),
        pytest.param(SYNTAX_ERROR, "at {file}:1: SyntaxError", id="syntax error"),
        pytest.param(
            WRONG_ARGUMENT, "`odradek_storages` at {file}:4 has an argument `surprise`, which", id="wrong argument"
        ),
        pytest.param(
            UNKNOWN_HOOK,
            "`odradek_storage` at {file}:4 is marked with `hookimpl`, and there is no such hook: "
            "did you mean `odradek_storages`?",
            id="unknown hook",
        ),
        pytest.param(FAILING_HOOK, "failed at {file}:6: RuntimeError('no disk today')", id="failing hook"),
        pytest.param(DOUBLED_OFFER, "offers the storage 'memory', which plugin", id="doubled offer"),
        pytest.param(NO_HOOK, "implements no hook", id="no hook"),
        pytest.param(UNMARKED_HOOK, "does not mark odradek_storages with `hookimpl`", id="unmarked hook"),
        pytest.param(NO_OFFER, "'not a storage' has no `__call__`", id="no offer"),
        pytest.param(STORAGE % "fails", "cannot be made at {file}:6: RuntimeError('no engine today')", id="no engine"),
        pytest.param(
            STORAGE % "lambda _: 5", "the engine of storage 'mine' cannot be used: 5 has no `cluster_id`", id="half"
        ),
        pytest.param(STORAGE % "Fails", "cannot start at {file}:10: RuntimeError('no start today')", id="no start"),
        pytest.param(NEARLY, "has `odradek_append_stage`, which is no hook: did you mean", id="nearly a hook"),
        pytest.param(
            OFFER % ("append_stages()", '{"mine": make_stage}'),
            "`make_stage(partition)` at {file}:26 is called with (partition, settings)",
            id="stage factory",
        ),
        pytest.param(
            OFFER % ("cleanup_policies()", '{"mine": Keeps}'),
            "`Keeps` at {file}:4 is a class, where an object of it is wanted: `Keeps(...)`",
            id="class for an object",
        ),
        pytest.param(
            OFFER % ("cleanup_policies()", '{"mine": Plans()}'),
            "`Plans.plan()` at {file}:9 is called with (log)",
            id="method",
        ),
        pytest.param(
            OFFER % ("assignors()", '{"mine": Assigns()}'),
            "`Assigns.assign(members)` at {file}:14 is called with (members, topics)",
            id="assignor",
        ),
        pytest.param(
            OFFER % ("api_handlers(broker)", "[Handler()]"),
            "`Handler.handle(request, context)` at {file}:21 is `async`, and is called without `await`",
            id="handler",
        ),
        pytest.param(OFFER % ("services(broker)", "[make_stage]"), "is no Service", id="service"),
        pytest.param(OTHER_VERSION, "version 99 of the plugin API", id="other version"),
        pytest.param(FOREIGN_KEY, "log.dirs", id="key of somebody else"),
    ],
)
def test_a_plugin_at_fault_stops_the_start_with_one_line(site: Path, source: str, reason: str) -> None:
    install(site, "guilty", source)

    status, lines = start(site)

    assert (status in (1, 2), len(lines)) == (True, 1), lines
    assert lines[0].startswith("odradek: ")
    assert reason.format(file=site / "stranger_guilty.py") in lines[0]
    assert "'guilty'" in lines[0]
    assert any(remedy in lines[0] for remedy in ("into `disable`", "disable one", "install a version", "begin with"))


def test_the_traceback_of_a_plugin_at_fault_is_shown_where_it_is_asked_for(site: Path) -> None:
    install(site, "guilty", FAILING_HOOK)

    status, lines = start(site, verbose=True)

    assert status == 1
    assert [line for line in lines if line.startswith("odradek: plugin 'guilty' (odradek_storages): failed at ")]
    assert '    raise RuntimeError("no disk today")' in lines


def test_a_plugin_that_is_enabled_but_missing_is_told_with_what_is_there(site: Path) -> None:
    status, (line,) = start(site, '[plugins]\nenable = ["storage_segmnt"]\n')

    assert status == 1
    assert "'storage_segmnt'" in line
    assert "did you mean 'storage_segment'?" in line
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
