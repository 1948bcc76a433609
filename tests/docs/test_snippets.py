"""The documentation shows code that runs: cut from tests and examples, and never stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.update_snippets import ROOT, definition, pages, renewed


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_code_is_that_of_its_source(page: Path) -> None:
    text = page.read_text()

    assert renewed(text) == text, "run: python -m tools.update_snippets"


@pytest.mark.parametrize(
    "name", ["how-to/consume-in-a-group", "how-to/exactly-once", "how-to/test-with-odradek", "writing-a-plugin"]
)
def test_a_guide_shows_code_that_runs(name: str) -> None:
    assert "<!-- code from " in (ROOT / "docs" / f"{name}.md").read_text()


def test_a_stale_page_is_renewed() -> None:
    source = "examples/plugin_template/src/odradek_template/batch_limit.py"
    page = f"before\n<!-- code from {source}, make_stage -->\n```python\n```\n"

    assert "\ndef make_stage(" in renewed(page)
    assert renewed(renewed(page)) == renewed(page)


def test_a_name_that_is_nowhere_is_told() -> None:
    with pytest.raises(ValueError, match="missing"):
        definition("def there(): ...", "missing")
