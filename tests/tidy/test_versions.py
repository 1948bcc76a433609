"""One version: what the package says of itself, what is built, and what the documentation of a name says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from odradek import __version__
from tools.rooms import FOLDERS

ROOT = Path(__file__).parents[2]
ADDED = re.compile(r"versionadded:: (\d+(?:\.\d+)*)")


def parts_of(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_what_is_built_has_the_version_that_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["version"] == __version__


def test_nothing_was_added_in_a_version_that_is_yet_to_come() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {version}": parts_of(version)
        for folder in (*FOLDERS, "examples")
        for path in (ROOT / folder).rglob("*.py")
        for version in ADDED.findall(path.read_text(encoding="utf-8"))
    }

    assert found
    assert not [name for name, version in found.items() if version > parts_of(__version__)]
