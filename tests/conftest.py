"""What all tests share: how hard Hypothesis looks, and that a test which is `async` runs under trio.

| profile | for | examples |
|---|---|---|
| default | work at a test: new examples with every run | 100 |
| gate | `tox`: the same examples with every run | 60 |
| covered | the Python of `tox` that measures coverage, twice as slow by that: the first of them | 40 |
| sweep | `tox -e sweep`: new examples, many of them | 2,000 |

No deadline anywhere: a slow machine is no failing test.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from functools import partial

import pytest
import trio
from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True, database=None, print_blob=True, max_examples=60)
settings.register_profile("covered", settings.get_profile("gate"), max_examples=40)
settings.register_profile("sweep", deadline=None, max_examples=2_000)
settings.load_profile("default")


pytest_plugins = ["odradek.testing.pytest_plugin"]
"""Found by itself where Odradek is installed; an editable environment may be older than the entry point."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function under trio."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    trio.run(partial(pyfuncitem.obj, **wanted))
    return True


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Take back what a command that ran in this process did to logging: tests after it look at logs too."""
    root, ours = logging.getLogger(), logging.getLogger("odradek")
    level = ours.level
    yield
    ours.setLevel(level)
    for handler in root.handlers[:]:
        if handler.get_name() == ours.name:
            root.removeHandler(handler)
