"""Shell: what a kit does not ask of who does not promise it: its test is skipped, and not taken for passed."""

from __future__ import annotations

import pytest


def needs_level(kit: object, level: str, *, value: bool = True) -> None:
    """Skip the test that asks, unless its kit declares a level so.

    Args:
        kit: The instance of the kit's class.
        level: The class attribute.
        value: What it has to be.
    """
    if getattr(kit, level) is not value:
        pytest.skip(f"asked only where {level} is {value}")
