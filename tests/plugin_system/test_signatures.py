"""Whether an object is what a contract asks for: every way in which it may not be, told with file and line."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import attrs
import pytest

from odradek.kernel import hookspecs
from odradek.kernel.contracts.signatures import module_of, place_of, problem_with
from odradek.kernel.plugin_system.hooks import problem_with_hooks
from odradek.kernel.plugin_system.offers import KINDS

HERE = __file__


class Worker(Protocol):
    name: str
    is_quick: bool = False

    @property
    def load(self) -> float: ...

    def work(self, hours: int, pay: int = 1, *, at_night: bool = False) -> None: ...

    async def rest(self, hours: int) -> None: ...


class Factory(Protocol):
    def __call__(self, name: str, settings: Mapping[str, object]) -> object: ...


class Good:
    name = "good"
    is_quick = True
    load = 0.5

    def work(self, hours: int, pay: int = 1, *, at_night: bool = False) -> None:
        return

    async def rest(self, hours: int) -> None:
        return


class Inherits(Worker):
    name = "inherits"
    load = 0.5  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]

    def work(self, hours: int, pay: int = 1, *, at_night: bool = False) -> None:
        return

    async def rest(self, hours: int) -> None:
        return


class OtherNames(Good):
    def work(self, h: int, *more: Any, **others: Any) -> None:  # type: ignore[override]
        return


class NeedsMore(Good):
    def work(self, hours: int, pay: int, tax: int) -> None:  # type: ignore[override]
        return


class TakesLess(Good):
    def work(self, hours: int) -> None:  # type: ignore[override]
        return


class NeedsPay(Good):
    def work(self, hours: int, pay: int, *, at_night: bool = False) -> None:  # type: ignore[override]
        return


class IsAsync(Good):
    async def work(self, hours: int, pay: int = 1, *, at_night: bool = False) -> None:  # type: ignore[override]
        return


class IsNotAsync(Good):
    def rest(self, hours: int) -> None:  # type: ignore[override]
        return


class MethodForProperty(Good):
    def load(self) -> float:  # type: ignore[override]
        return 0.5


class WrongName(Good):
    name = 5  # type: ignore[assignment]


class NoMethod(Good):
    work = 5  # type: ignore[assignment]


class Lacks:
    name = "lacks"


class NotYet(Good):
    @property
    def load(self) -> float:  # type: ignore[override]
        raise AssertionError("asked before the start")


class Delegates:
    """Has what another has."""

    def __init__(self, other: object) -> None:
        self._other = other

    def __getattr__(self, name: str) -> object:
        return getattr(self._other, name)


def line_of(function: Any) -> int:
    return int(function.__code__.co_firstlineno)


@pytest.mark.parametrize("value", [Good(), Inherits(), OtherNames(), NotYet(), Delegates(Good())])
def test_what_can_be_used_is_told_nothing_of(value: object) -> None:
    assert problem_with(value, Worker) == ""


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            NeedsMore(),
            "`NeedsMore.work(hours, pay, tax)` at {} is called with (hours, pay, at_night=...)",
        ),
        (TakesLess(), "`TakesLess.work(hours)` at {} is called with (hours, pay, at_night=...)"),
        (NeedsPay(), "`NeedsPay.work(hours, pay, *, at_night=...)` at {} is called with (hours, pay, at_night=...)"),
        (IsAsync(), "`IsAsync.work(hours, pay=..., *, at_night=...)` at {} is `async`, and is called without `await`"),
    ],
)
def test_a_method_that_cannot_be_called_is_told_with_its_place(value: Any, told: str) -> None:
    assert problem_with(value, Worker) == told.format(f"{HERE}:{line_of(value.work)}")


def test_what_is_awaited_has_to_be_async() -> None:
    where = f"{HERE}:{line_of(IsNotAsync.rest)}"

    assert problem_with(IsNotAsync(), Worker) == f"`IsNotAsync.rest(hours)` at {where} is awaited: make it `async def`"


def test_a_method_in_the_place_of_a_property_is_told() -> None:
    where = f"{HERE}:{line_of(MethodForProperty.load)}"
    told = f"`MethodForProperty.load` at {where} is a method, and is read without a call: make it a property"

    assert told == problem_with(MethodForProperty(), Worker)


def test_a_value_of_another_type_is_told() -> None:
    where = f"{HERE}:{inspect.getsourcelines(WrongName)[1]}"

    assert problem_with(WrongName(), Worker) == f"`name` of `WrongName` at {where} is 5, and is to be of type str"
    assert problem_with(NoMethod(), Worker) == "`work` is 5, and is called"


def test_what_lacks_members_is_told_which() -> None:
    assert problem_with(Lacks(), Worker).endswith("has no `is_quick`, `load`, `work`, `rest`")


def test_a_class_is_no_object_of_it_but_may_be_a_factory() -> None:
    @attrs.frozen
    class Made:
        name: str
        settings: Mapping[str, object]

    assert problem_with(Good, Worker).endswith("is a class, where an object of it is wanted: `Good(...)`")
    assert problem_with(Made, Factory) == ""
    assert problem_with(Good, Factory).startswith("`Good()` at ")


def test_functions_partials_and_objects_that_are_called_are_factories() -> None:
    def make(name: str, settings: Mapping[str, object]) -> None: ...
    def more(size: int, name: str, settings: Mapping[str, object]) -> None: ...

    assert [problem_with(value, Factory) for value in (make, partial(more, 5), lambda *all_of_it: None, print)] == [
        ""
    ] * 4
    assert problem_with(partial(more, 5, "name"), Factory) == (
        f"`more(settings)` at {HERE}:{line_of(more)} is called with (name, settings)"
    )
    assert problem_with(5, Factory) == "5 has no `__call__`"


def test_a_class_that_is_half_written_is_no_factory() -> None:
    class Half(ABC):
        def __init__(self, name: str, settings: Mapping[str, object]) -> None:
            self.name = name

        @abstractmethod
        def more(self) -> None: ...

    assert problem_with(Half, Factory).endswith("cannot be made: it has no `more`")


def test_a_value_of_a_class_is_asked_for_as_such() -> None:
    assert problem_with(5, Lacks) == "5 is no Lacks"
    assert problem_with(Lacks(), Lacks) == ""
    assert "is a class" in problem_with(Lacks, Lacks)


def test_the_place_of_what_has_none_is_said_so() -> None:
    assert place_of(5) == "somewhere"
    assert (module_of(Good()), module_of(partial(line_of))) == (__name__, __name__)


def test_every_hook_that_gives_something_has_a_contract_for_it() -> None:
    hooks = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("odradek_")}
    giving = {name for name, hook in hooks.items() if inspect.signature(hook).return_annotation != "None"}

    assert giving == set(KINDS)


def hook(broker: object) -> None: ...


def taking(surprise: object) -> None: ...


async def waiting(broker: object) -> None: ...


class Module:
    def __init__(self, **members: object) -> None:
        vars(self).update(members)


@pytest.mark.parametrize(
    ("members", "marked", "told"),
    [
        ({"odradek_things": hook}, {"odradek_things": "odradek_things"}, ""),
        ({"odradek_plugin_api": 1}, {}, ""),
        ({"odradek_thing": hook}, {"odradek_thing": "odradek_thing"}, "did you mean `odradek_things`?"),
        ({"things": hook}, {"things": "things"}, "there is no such hook: did you mean `odradek_things`?"),
        ({"odradek_quite_other": hook}, {"odradek_quite_other": "odradek_quite_other"}, "the hooks are odradek_things"),
        ({"odradek_thing": hook}, {}, "has `odradek_thing`, which is no hook: did you mean `odradek_things`?"),
        ({"odradek_plugin_setting": ()}, {}, "did you mean `odradek_plugin_settings`?"),
        ({"odradek_things": hook}, {}, "does not mark odradek_things with `hookimpl`"),
        ({"odradek_things": taking}, {"odradek_things": "odradek_things"}, "does not give: it may take `broker`"),
        ({"odradek_things": waiting}, {"odradek_things": "odradek_things"}, "is `async`: a hook is a plain function"),
        ({}, {}, "implements no hook"),
    ],
)
def test_a_function_that_is_nearly_a_hook_is_told_what_was_meant(
    members: dict[str, object], marked: dict[str, str], told: str
) -> None:
    problem = problem_with_hooks(Module(**members), {"odradek_things": hook}, marked)

    assert told in problem
    assert bool(told) == bool(problem)
