"""What `tox.toml` leaves out of the other Pythons: at least the tests whose clients are installed for 3.11 alone."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = tomllib.loads((ROOT / "tox.toml").read_text(encoding="utf-8"))
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]


IGNORE = "--ignore="
SEEDS = ROOT / "tests/lab/simulator/test_scenarios.py"
"""Run by the other Python."""


def ignored_by(command: list[object]) -> list[Path]:
    return [ROOT / part[len(IGNORE) :] for part in command if isinstance(part, str) and part.startswith(IGNORE)]


def left_out() -> list[Path]:
    """Give what no other Python collects."""
    (command,) = ENVIRONMENTS["env_run_base"]["commands"]
    return ignored_by(command)


def modules_of(group: str) -> frozenset[str]:
    """Give the modules that a group of dependencies installs, each named as its package is."""
    return frozenset(Requirement(line).name.replace("-", "_") for line in GROUPS[group] if isinstance(line, str))


@cache
def imported_by(path: Path) -> frozenset[str]:
    """Give the names of modules that are imported when this one is; those of other tests with all that they import."""
    names = {name for node in ast.parse(path.read_text(encoding="utf-8")).body for name in modules_named(node, path)}
    files = [file for file in map(file_of, names) if file is not None]
    return frozenset(names).union(*map(imported_by, files))


def modules_named(node: ast.stmt, path: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        package = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
        base = ".".join((*package, *(node.module or "").split("."))).strip(".")
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)


def file_of(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return path if module.startswith("tests.") and path.is_file() else None


def test_other_pythons_collect_no_test_whose_clients_they_do_not_have() -> None:
    apart = modules_of("interop") - modules_of("test")
    assert "confluent_kafka" in apart
    tests = {path: {name.split(".")[0] for name in imported_by(path)} for path in (ROOT / "tests").rglob("test_*.py")}
    of_one_python = [path for path, packages in tests.items() if packages & apart]
    assert of_one_python

    skipped = left_out()
    assert not [
        str(path.relative_to(ROOT))
        for path in of_one_python
        if not any(path.is_relative_to(place) for place in skipped)
    ]


def test_what_is_left_out_is_there() -> None:
    assert not [str(path.relative_to(ROOT)) for path in left_out() if not path.exists()]


def test_what_is_left_out_where_coverage_is_measured_runs_without() -> None:
    _, measured, *_ = ENVIRONMENTS["env"]["3.11"]["commands"]
    (unmeasured,) = ENVIRONMENTS["env"]["3.11-unmeasured"]["commands"]
    (paths,) = (part["default"] for part in unmeasured if isinstance(part, dict))
    apart = {path for path in ignored_by(measured) if path != SEEDS}

    assert apart == {ROOT / path for path in paths}
    assert not [path for path in apart if not path.is_dir()]
    assert {"3.11", "3.11-unmeasured", "3.13"} <= {*ENVIRONMENTS["env_list"]}


def test_what_is_marked_unmeasured_runs_on_another_python() -> None:
    mark = "@pytest.mark.unmeasured\n"
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if mark in path.read_text(encoding="utf-8")]
    assert marked

    assert not [path for path in marked if any(path.is_relative_to(place) for place in left_out())]


def test_many_seeds_run_where_no_coverage_is_measured() -> None:
    _, measured, *_ = ENVIRONMENTS["env"]["3.11"]["commands"]

    assert SEEDS in ignored_by(measured)
    assert not [place for place in left_out() if SEEDS.is_relative_to(place)]
