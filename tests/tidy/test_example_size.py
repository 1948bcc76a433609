"""Examples of plugins stay small: a stranger's storage, delay queue, retry policy has at most 200 lines of code."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ("business_hours_queue.py", "jitter_retry_policy.py", "plugin_template/src/odradek_template/sqlite_storage.py")
LINES_MAX = 200
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of_code(source: str) -> int:
    """Count the lines that hold more than white space, comments and docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def test_comments_and_docstrings_are_no_code() -> None:
    assert (
        lines_of_code(
            '"""Text."""\n\n# why\ndef f() -> int:\n    """Text,\n    more.\n    """\n    return (\n        1\n    )\n'
        )
        == 4
    )


@pytest.mark.parametrize("example", SMALL)
def test_an_example_is_small(example: str) -> None:
    assert lines_of_code((EXAMPLES / example).read_text()) <= LINES_MAX
