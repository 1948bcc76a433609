"""Classes of fields: to whoever uses one it is a class of attrs."""

from __future__ import annotations

import pickle

import attrs
import pytest

from odradek.kernel.classes import define, frozen


@frozen
class Value:
    name: str
    sizes: list[int] = attrs.field(factory=list)


@attrs.frozen
class ValueOfAttrs:
    name: str
    sizes: list[int] = attrs.field(factory=list)


@frozen
class Key:
    name: str
    number: int
    note: str = attrs.field(default="", eq=False, repr=False)


@define
class State:
    count: int = 0
    cursor: int = attrs.field(init=False)
    next: State | None = None


@define(eq=False)
class Service:
    count: int = 0


@frozen
class Own:
    count: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "mine"


@frozen
class Empty: ...


def test_values_are_equal_by_their_fields_and_their_class() -> None:
    assert Value("a", [1]) == Value("a", [1])
    assert Value("a", [1]) != Value("a", [2])
    alike: object = ValueOfAttrs("a")
    assert alike != Value("a")
    assert Empty() == Empty()


def test_what_is_frozen_is_hashed_by_what_is_compared() -> None:
    assert {Key("a", 1, "x"), Key("a", 1, "y")} == {Key("a", 1)}
    assert len({Key("a", 1), Key("a", 2), Key("b", 1)}) == 3
    assert len({Empty(), Empty()}) == 1


def test_what_may_change_is_not_hashed_unless_it_is_itself_alone() -> None:
    service = Service()

    with pytest.raises(TypeError, match="unhashable"):
        hash(State())
    assert len({service, Service()}) == 2
    assert service != Service()


def test_it_is_shown_as_attrs_shows_it() -> None:
    assert repr(Value("a", [1])) == repr(ValueOfAttrs("a", [1])).replace("ValueOfAttrs", "Value")
    assert repr(Key("a", 1, "x")) == "Key(name='a', number=1)"
    assert repr(State(1)) == "State(count=1, cursor=NOTHING, next=None)"


def test_what_holds_itself_is_shown_once() -> None:
    state = State(1)
    state.next = state

    assert repr(state) == "State(count=1, cursor=NOTHING, next=...)"


def test_what_a_class_writes_itself_stays() -> None:
    assert Own(1) == Own(2)
    assert (hash(Own(1)), repr(Own(1))) == (7, "mine")


def test_everything_else_is_as_with_attrs() -> None:
    value = Value("a", [1])

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        value.name = "b"  # type: ignore[misc]
    assert attrs.evolve(value, name="b") == Value("b", [1])
    assert attrs.asdict(value) == {"name": "a", "sizes": [1]}
    assert pickle.loads(pickle.dumps(value)) == value
    assert not hasattr(value, "__dict__")
