"""Whose code it is that failed, told by tracebacks and stacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from odradek.kernel.contracts import culprits
from odradek.kernel.contracts.culprits import blame, culprit_of_error, culprit_of_stack, is_bug, note_plugin, plugin_of
from odradek.kernel.errors import PluginError, StorageError

SOURCE = """
def fail():
    raise ValueError("a bug")

def call(function):
    return function()
"""


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget for a while what other tests of this process have noted, such as a plugin that lives among the tests."""
    monkeypatch.setattr(culprits, "_names", {})
    monkeypatch.setattr(culprits, "_roots", {})


@pytest.fixture
def stranger() -> dict[str, Callable[..., object]]:
    """Return the functions of a module that belongs to a plugin."""
    note_plugin("stranger", "stranger_of_this_test")
    functions: dict[str, Callable[..., object]] = {"__name__": "stranger_of_this_test.inside"}  # type: ignore[dict-item]
    exec(compile(SOURCE, "/somewhere/inside.py", "exec"), functions)
    return functions


def test_a_module_belongs_to_the_plugin_of_its_package() -> None:
    note_plugin("one", "package_of_one")

    assert [plugin_of(name) for name in ("package_of_one", "package_of_one.a.b", "package_of_one_more", "")] == [
        "one",
        "one",
        "",
        "",
    ]


def test_an_error_names_the_innermost_line_of_a_plugin(stranger: dict[str, Callable[..., object]]) -> None:
    with pytest.raises(ValueError, match="a bug") as caught:
        stranger["call"](lambda: stranger["fail"]())
    group = ExceptionGroup("of a nursery", [caught.value])

    assert culprit_of_error(caught.value) == ("stranger", "inside.py:3 in fail")
    assert culprit_of_error(group) == culprit_of_error(caught.value)
    assert culprit_of_error(ValueError("nobody's")) is None


def test_a_stack_names_the_innermost_line_of_a_plugin(stranger: dict[str, Callable[..., object]]) -> None:
    frame = stranger["call"](lambda: sys._getframe())
    assert isinstance(frame, FrameType)

    assert culprit_of_stack(sys._getframe()) is None
    assert culprit_of_stack(None) is None


def test_the_cause_of_an_error_is_blamed_unless_it_is_a_disk(stranger: dict[str, Callable[..., object]]) -> None:
    def raised_from(function: Callable[..., object]) -> Exception:
        try:
            function()
        except Exception as cause:
            error = RuntimeError("told without a trace")
            error.__cause__ = cause
            return error
        raise AssertionError

    def disk() -> None:
        raise OSError("full")

    assert blame(raised_from(stranger["fail"])) == {"plugin": "stranger", "place": "inside.py:3 in fail"}
    assert blame(raised_from(disk)) == {}
    assert blame(RuntimeError("no cause")) == {}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PluginError("strange", "offers what it cannot give"), True),
        (PluginError("", "no active plugin offers the storage 'memory'"), False),
        (StorageError("the disk refused"), False),
        (OSError(28, "no space left"), False),
        (MemoryError(), False),
        (ValueError("nobody's code raised it"), False),
    ],
)
def test_what_may_pass_is_no_bug_of_a_plugin(error: Exception, expected: bool) -> None:
    assert is_bug(error) is expected


def test_what_a_plugins_code_raises_is_its_bug_but_for_a_disk(stranger: dict[str, Callable[..., object]]) -> None:
    def raised(error: Exception) -> Exception:
        def fail() -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            stranger["call"](fail)
        return caught.value

    assert is_bug(raised(ValueError("a bug")))
    assert not is_bug(raised(OSError(5, "input/output error")))
