"""The reference page, and that it tells the truth about what is read."""

from __future__ import annotations

import re
from pathlib import Path

from odradek.kernel.config.keys import Scope
from odradek.kernel.config.reference import render_key, render_page
from tools.render_configuration import own_registry

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "configuration.md"


def test_the_reference_page_is_fresh() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == render_page(own_registry()), (
        "run: python -m tools.render_configuration > docs/reference/configuration.md"
    )


def test_a_heading_says_which_keys_have_no_effect_and_not_that_they_will_have_one() -> None:
    headings = {line for line in render_page(own_registry()).splitlines() if line.startswith("### ")}

    assert {"### TLS", "### JVM (no effect here: taken with a warning)"} <= headings
    assert not [heading for heading in headings if "not built" in heading]


def test_the_reference_page_names_every_key() -> None:
    page = PAGE.read_text(encoding="utf-8")
    missing = [
        key.name
        for known in own_registry().keys.values()
        for key in known.values()
        if not key.is_internal and f"| `{key.name}` |" not in page
    ]

    assert missing == []


def test_a_key_is_explained_without_the_one_before_it() -> None:
    leaning = re.compile(r"^(The same|Those|Such|They)\b|\bsuch (?!as|objects)|\bthose\b|\b(often|Where) that\b")
    wrong = [
        key.name for known in own_registry().keys.values() for key in known.values() if leaning.search(key.doc or "")
    ]

    assert wrong == []


def test_a_key_is_told_on_the_terminal_with_its_facts() -> None:
    registry = own_registry()

    assert render_key(registry.get(Scope.BROKER, "num.partitions")) == (
        "num.partitions (broker)\n"
        "    int, default 1, valid [1,...], medium importance\n"
        "    Partitions of a topic that is created without saying how many."
    )
    assert render_key(registry.get(Scope.BROKER, "quota.window.num")).endswith(
        "    Taken with a warning: it belongs to quotas, which are not built yet; it has no effect."
    )
