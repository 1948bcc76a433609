"""The table of the kits' switches, in the page on plugins, has every one with its default, and no other."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

from odradek.testing import contracts

PAGE = Path(__file__).parents[3] / "docs/writing-a-plugin.md"
ROW = re.compile(r"^\| `(\w+Contract)` \| `(\w+)` \| `([^`]+)` \|", re.MULTILINE)


def kits() -> Iterator[type]:
    """Iterate over the kits that plugins subclass: those that are no part of another."""
    for module in pkgutil.iter_modules(contracts.__path__):
        found = vars(importlib.import_module(f"{contracts.__name__}.{module.name}"))
        for name, kit in found.items():
            if inspect.isclass(kit) and name.endswith("Contract") and kit.__module__.endswith(f".{module.name}"):
                yield kit


def switches(kit: type) -> Iterator[tuple[str, str, str]]:
    """Iterate over a kit's switches, as (kit, attribute, default)."""
    for base in kit.__mro__:
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if str(annotation).startswith("ClassVar"):
                yield kit.__name__, name, repr(getattr(kit, name))


def test_every_switch_is_in_the_table_with_its_default() -> None:
    parts = {base for kit in kits() for base in kit.__mro__[1:]}
    expected = {switch for kit in kits() if kit not in parts for switch in switches(kit)}
    rows = ROW.findall(PAGE.read_text())

    assert len(rows) == len(set(rows))
    assert expected == set(rows)
    assert ("StorageContract", "is_durable", "True") in expected
