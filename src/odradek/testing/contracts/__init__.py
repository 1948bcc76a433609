"""Contract kits: classes of ordinary pytest tests that every implementation of a contract subclasses and passes.

::

    class TestMyEngine(StorageContract):
        def make_engine(self, context: StorageContext) -> StorageEngine:
            return MyEngine(context)

What a failed promise shows is what pytest shows of its user's own tests: both sides, and the difference.
"""

from __future__ import annotations

import pkgutil

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))
