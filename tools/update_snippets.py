"""Shell: put the code that the documentation shows into it, cut from tests and examples that run.

A page says where a block of code comes from, in a comment before it: a whole file; what stands in it between
`# -- snippet NAME --` and `# -- end of the snippet --`; or the function or class of that name:

    <!-- code from tests/testing/test_with_trio.py, trio -->
    ```python
    ...
    ```

`python -m tools.update_snippets` renews every page; a test fails when one is stale.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(<!-- code from (?P<path>[^\s,]+)(?:, (?P<name>\w+))? -->\n```(?P<language>\w*)\n).*?(```)", re.DOTALL
)
SNIPPET = r"^# -- snippet {name} --\n(.*?)^# -- end of the snippet --$"
NO_ANSWER_FOR_LINTERS = re.compile(r"  # (?:noqa|type: ignore).*$", re.MULTILINE)


def cut(path: Path, name: str | None) -> str:
    """Return a file, or the part of it that has a name.

    Raises:
        ValueError: It has no such part.
    """
    text = path.read_text(encoding="utf-8")
    if name is not None:
        marked = re.search(SNIPPET.format(name=name), text, re.DOTALL | re.MULTILINE)
        text = marked[1] if marked else definition(text, name)
    return NO_ANSWER_FOR_LINTERS.sub("", text).strip() + "\n"


def definition(text: str, name: str) -> str:
    """Return the function or class of a name, with its decorators.

    Raises:
        ValueError: There is none at the top of the module.
    """
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise ValueError(f"nothing there is named {name}")


def renewed(page: str) -> str:
    """Return a page with every block of code as it stands in its source now."""
    return BLOCK.sub(lambda block: block[1] + cut(ROOT / block["path"], block["name"]) + "```", page)


def pages() -> list[Path]:
    """Return the pages that may show code."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> int:
    """Renew all pages and print the names of those that changed."""
    for path in pages():
        before = path.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
