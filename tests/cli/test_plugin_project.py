"""`odradek plugins new`: what it writes passes its kit, reads as ours does, and is found by `plugins check`."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.plugin_hints import is_nearly_ours
from odradek.cli.plugin_templates.project import KINDS, files_of

LINE_MAX = 120


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a module in a folder, away from the checkout."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def project(command: Any, tmp_path: Path) -> Path:
    """Return the project of a stage, as the command writes it."""
    folder = tmp_path / "project"
    done = command.run("plugins", "new", "my-own", "--kind", "stage", "--into", str(folder))

    assert done.status == 0, done.err
    assert f"next: cd {folder} && pip install -e '.[test]' && odradek plugins check my_own" in done.out
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_project_passes_its_own_tests(tmp_path: Path, kind: str) -> None:
    for path, text in files_of(kind, "my_own").items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    others = [word for name in ("anyio", "asyncio", "cacheprovider") for word in ("-p", f"no:{name}")]
    # Without a place of its own pytest clears up after older runs: a whole gate's files, which takes minutes.
    own = ["--rootdir", str(tmp_path), "--basetemp", str(tmp_path / "temporary")]
    done = run(tmp_path, "pytest", "-q", *others, *own)

    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_project_has_the_plugins_name_and_no_other(kind: str) -> None:
    files = files_of(kind, "my_own")

    for path, text in files.items():
        assert not any(other in path + text for other in ("my_plugin", "my-plugin", "MyPlugin", "SUMMARY", "TRY"))
        assert max(map(len, text.splitlines())) <= LINE_MAX
        if path.endswith(".py"):
            assert ast.get_docstring(ast.parse(text))
    announced = tomllib.loads(files["pyproject.toml"])["project"]
    assert announced["name"] == "my-own"
    assert announced["entry-points"] == {"odradek.plugins": {"my_own": "my_own"}}


def test_nothing_that_is_there_is_overwritten(command: Any, project: Path) -> None:
    done = command.run("plugins", "new", "my_own", "--kind", "cleanup", "--into", str(project))

    assert done.status == 2
    assert "is there and not empty (--into names another folder)" in done.err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("My.Own", "cannot be the name of a plugin (small letters, digits, _; a letter first)"),
        ("class", "cannot be the name of a plugin"),
        ("groups", "a plugin 'groups' is installed already (choose another name)"),
    ],
)
def test_a_name_that_cannot_be_a_plugins_is_refused(command: Any, tmp_path: Path, name: str, told: str) -> None:
    done = command.run("plugins", "new", name, "--kind", "stage", "--into", str(tmp_path / "project"))

    assert done.status == 2
    assert told in done.err
    assert not (tmp_path / "project").exists()


# ------------------------------------------------------------------------------------------------------------- check


def test_a_new_project_is_checked_and_found_well(project: Path) -> None:
    done = run(project, "odradek", "plugins", "check", "my_own", PYTHONPATH=str(project / "src"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "my_own: loaded from my_own, hooks: config_keys, append_stages" in done.stdout
    assert "my_own: offers append stage my_own, which can be used" in done.stdout
    assert "my_own: quick part of its kit: 6 passed" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("-> AppendStage | None:", "->", "SyntaxError"),
        (
            ", settings: Mapping[str, object])",
            ")",
            "`make_stage(partition)` at {} is called with (partition, settings)",
        ),
        ("        return batch\n", "        return b''\n", "does not keep what its kit asks: "),
    ],
)
def test_what_is_wrong_with_a_plugin_is_told_with_its_name(project: Path, old: str, new: str, told: str) -> None:
    stage = project / "src/my_own/stage.py"
    text = stage.read_text()
    assert old in text
    stage.write_text(text.replace(old, new))
    line = next((number for number, each in enumerate(text.splitlines(), 1) if each.startswith("def make_stage")), 0)
    done = run(project, "odradek", "plugins", "check", "my_own", PYTHONPATH=str(project / "src"))

    assert done.returncode == 1
    assert "odradek: plugin 'my_own'" in done.stderr
    assert told.format(f"{stage}:{line}") in done.stderr


def test_a_plugin_that_is_not_there_is_told_with_the_nearest(command: Any) -> None:
    done = command.run("plugins", "check", "storage_segmnt")

    assert done.status == 1
    assert "plugin 'storage_segmnt': is not installed (did you mean 'storage_segment'?" in done.err


# -------------------------------------------------------------------------------------------------------------- hints


@pytest.mark.parametrize(
    ("group", "is_near"),
    [
        ("odradek.plugins", False),
        ("odradek.plugin", True),
        ("odradek-plugins", True),
        ("odradek_plugins", True),
        ("Odradek.Plugins", True),
        ("odradek", True),
        ("odradk.plugins", True),
        ("pytest11", False),
        ("console_scripts", False),
        ("flake8.plugins", False),
        ("sphinx.plugins", False),
    ],
)
def test_a_group_is_nearly_ours(group: str, is_near: bool) -> None:
    assert is_nearly_ours(group) is is_near


def test_a_plugin_that_was_announced_where_nobody_looks_is_hinted_at(tmp_path: Path) -> None:
    information = tmp_path / "stranger-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[odradek.plugin]\nmask = stranger_mask\n")
    done = run(tmp_path, "odradek", "plugins", "list", PYTHONPATH=str(tmp_path))

    assert done.returncode == 0
    assert done.stderr == (
        "odradek: stranger 1.0 announces 'mask' in the group 'odradek.plugin', where nobody looks: in its "
        'pyproject.toml write [project.entry-points."odradek.plugins"], and install it again\n'
    )
