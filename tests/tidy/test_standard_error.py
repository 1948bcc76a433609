"""What a person is told beside results goes through one place, so that it looks alike and a full disk ends nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.rooms import FOLDERS

ROOT = Path(__file__).parents[2]
WRITERS = {
    "kernel/machine/progress.py": "a line that is written again",
    "src/odradek/cli/__init__.py": "`note`, and `say`",
}
"""By module, what it writes to standard error; whoever else has something to tell a person calls `note` or `say`."""


def writings(source: str) -> Iterator[int]:
    """Yield the lines that print or write to standard error by themselves."""
    if "sys.stderr" not in source:  # nearly everywhere, and parsing takes its time
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        files = [ast.unparse(each.value) for each in node.keywords if each.arg == "file"]
        if (called == "print" and "sys.stderr" in files) or called.startswith("sys.stderr.write"):
            yield node.lineno


def test_nobody_writes_to_standard_error_past_the_place_for_it() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if any(writings(path.read_text(encoding="utf-8")))
    }

    assert sorted(found) == sorted(WRITERS)


def test_writings_are_found() -> None:
    lines = (
        "print(text, file=sys.stderr)",
        "sys.stderr.write(text)",
        "sys.stderr.writelines(lines)",
        "print(text)",
        "print(text, file=out)",
        "sys.stderr.flush()",
    )

    assert list(writings("\n".join(lines))) == [1, 2, 3]
