"""What comes in parts is told once, whole and in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.kernel.api import Gathered

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_all_is_told_once_in_the_order_of_the_keys() -> None:
    told: list[Mapping[str, int]] = []
    gathered = Gathered[str, int]("abc", told.append)
    gathered.note("c", 3)
    gathered.note("a", 1)
    before = list(told)
    gathered.note("b", 2)

    assert (before, [list(each.items()) for each in told]) == ([], [[("a", 1), ("b", 2), ("c", 3)]])


def test_where_nothing_is_missing_it_is_told_at_once() -> None:
    told: list[Mapping[str, int]] = []
    Gathered[str, int]((), told.append)

    assert told == [{}]


def test_keys_that_come_later_are_waited_for_until_it_is_sealed() -> None:
    told: list[Mapping[str, int]] = []
    gathered = Gathered[str, int]((), told.append, is_open=True)
    gathered.expect("a")
    gathered.note("a", 1)
    gathered.expect("b")
    gathered.seal()
    before = list(told)
    gathered.note("b", 2)

    assert (before, told) == ([], [{"a": 1, "b": 2}])


def test_none_is_a_value() -> None:
    told: list[Mapping[str, None]] = []
    Gathered[str, None]("a", told.append).note("a", None)

    assert told == [{"a": None}]


def test_a_key_has_one_value() -> None:
    gathered = Gathered[str, int]("ab", lambda _: None)
    gathered.note("a", 1)

    with pytest.raises(AssertionError, match="told twice"):
        gathered.note("a", 2)
