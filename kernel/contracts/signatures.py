"""Pure core: whether an object is what a contract asks for: its members, and how they are called; with file and line.

A contract is a Protocol, whose members and signatures say all; or a class of values, of which an object is to be one.
Nothing of the object is called.
"""

from __future__ import annotations

import inspect
from functools import cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PLAIN_TYPES: Final[Mapping[str, type]] = {"bool": bool, "int": int, "str": str}
_MISSING: Final = object()
_NO_PLACE: Final = "somewhere"


class Call(NamedTuple):
    """How a contract's method is called.

    Attributes:
        positional: The names of what is given by position.
        needed: How many of these are always given.
        keywords: The names of what is given by keyword, each with whether it always is.
        is_awaited: Whether what it returns is awaited.
    """

    positional: tuple[str, ...]
    needed: int
    keywords: Mapping[str, bool]
    is_awaited: bool

    def __str__(self) -> str:
        return f"({', '.join([*self.positional, *(f'{name}=...' for name in self.keywords)])})"

    def fits(self, signature: inspect.Signature) -> bool:
        """Return whether a function of this signature takes the call, with all that may be given and with the least."""
        always = [name for name, is_needed in self.keywords.items() if is_needed]
        for count, names in ((len(self.positional), list(self.keywords)), (self.needed, always)):
            try:
                signature.bind(*[None] * count, **dict.fromkeys(names))
            except TypeError:
                return False
        return True


@cache
def members_of(contract: type) -> Mapping[str, Call | type | None]:
    """Return what a Protocol asks for: how a method is called; of what is read its type, None when it may be any."""
    found: dict[str, Call | type | None] = {}
    for base in contract.__mro__:
        if not getattr(base, "_is_protocol", False):
            continue
        annotations = vars(base).get("__annotations__", {})
        for name in {**vars(base), **annotations}:
            if name in found or (name.startswith("_") and name != "__call__"):
                continue
            member = vars(base).get(name)
            found[name] = (
                _call_of(member) if isinstance(member, FunctionType) else _PLAIN_TYPES.get(str(annotations.get(name)))
            )
    return found


def _call_of(function: FunctionType) -> Call:
    _self, *parameters = inspect.signature(function).parameters.values()
    positional = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
    return Call(
        tuple(each.name for each in positional),
        sum(each.default is each.empty for each in positional),
        {each.name: each.default is each.empty for each in parameters if each.kind is each.KEYWORD_ONLY},
        inspect.iscoroutinefunction(function),
    )


def missing_members(value: object, contract: type) -> str:
    """Return what of a Protocol a value lacks, as text; empty when nothing."""
    return ", ".join(f"`{name}`" for name in members_of(contract) if not _has(value, name))


def problem_with(value: object, contract: type) -> str:
    """Return what keeps a value from being used as a contract says, as text for a person; empty when nothing does.

    Arguments that the contract gives by position may have any names.
    """
    if not getattr(contract, "_is_protocol", False):
        if isinstance(value, contract):
            return ""
        return _class_instead(value) or f"{value!r} is no {contract.__name__}"
    members = members_of(contract)
    if "__call__" not in members and (told := _class_instead(value)):
        return told
    if missing := missing_members(value, contract):
        return f"{value!r} has no {missing}"
    if isinstance(value, type) and inspect.isabstract(value):
        lacking = ", ".join(f"`{name}`" for name in sorted(getattr(value, "__abstractmethods__", ())))
        return f"`{value.__name__}` at {place_of(value)} cannot be made: it has no {lacking}"
    return "; ".join(told for name, wanted in members.items() if (told := _problem_with_member(value, name, wanted)))


def problem_with_call(function: object, contract: type) -> str:
    """Return why a function cannot be called as the `__call__` of a Protocol says, as text; empty when it can be."""
    wanted = members_of(contract)["__call__"]
    assert isinstance(wanted, Call)
    return _problem_with_function(function, getattr(function, "__name__", "it"), wanted)


def _class_instead(value: object) -> str:
    if not isinstance(value, type):
        return ""
    name = value.__name__
    return f"`{name}` at {place_of(value)} is a class, where an object of it is wanted: `{name}(...)`"


def _has(value: object, name: str) -> bool:
    """Return whether a value has a member, without asking a property that would not answer yet."""
    if any(name in vars(base) for base in type(value).__mro__):
        return True
    return inspect.getattr_static(value, name, _MISSING) is not _MISSING or hasattr(value, name)


def _problem_with_member(value: object, name: str, wanted: Call | type | None) -> str:
    if isinstance(wanted, Call):
        function = value if name == "__call__" else getattr(value, name)
        return _problem_with_function(function, name, wanted)
    found = inspect.getattr_static(value, name, _MISSING)
    if isinstance(found, FunctionType):
        told = f"`{_qualified(found, name)}` at {place_of(found)}"
        return f"{told} is a method, and is read without a call: make it a property"
    if wanted is None or isinstance(found, property) or isinstance(held := getattr(value, name), wanted):
        return ""
    told = f"`{name}` of `{type(value).__name__}` at {place_of(value)}"
    return f"{told} is {held!r}, and is to be of type {wanted.__name__}"


def _problem_with_function(function: object, name: str, wanted: Call) -> str:
    if not callable(function):
        return f"`{name}` is {function!r}, and is called"
    if _fits_plainly(function, wanted):
        return ""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a builtin, which tells nothing
        return ""
    target = _innermost(function)
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(target)
    if not wanted.fits(signature):
        told = f"is called with {wanted}"
    elif is_async and not wanted.is_awaited:
        told = "is `async`, and is called without `await`"
    elif wanted.is_awaited and not is_async and isinstance(target, FunctionType):
        told = "is awaited: make it `async def`"
    else:
        return ""
    return f"`{_qualified(target, name)}{_text(signature)}` at {place_of(target)} {told}"


def _fits_plainly(function: object, wanted: Call) -> bool:
    """Return whether a function surely takes the call, by its code: at a start hundreds are looked at."""
    target = getattr(function, "__func__", function)
    if not isinstance(target, FunctionType) or vars(target) or wanted.keywords:
        return False
    code, is_bound = target.__code__, target is not function
    if code.co_kwonlyargcount or bool(code.co_flags & inspect.CO_COROUTINE) is not wanted.is_awaited:
        return False
    most = code.co_argcount - is_bound
    return most - len(target.__defaults__ or ()) <= wanted.needed and len(wanted.positional) <= most


def _qualified(target: object, name: str) -> str:
    """Return the name of a function or class, with its class's; `name` for what has none."""
    return str(getattr(target, "__qualname__", name)).rpartition("<locals>.")[2]


def _text(signature: inspect.Signature) -> str:
    """Return the names of a function's parameters, as it declares them."""
    return f"({', '.join(_parameter_texts(signature))})"


def _parameter_texts(signature: inspect.Signature) -> Iterator[str]:
    has_star = False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not has_star:
            yield "*"
        has_star = has_star or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        yield f"{stars}{each.name}{'' if each.default is each.empty else '=...'}"


def _innermost(value: object) -> Any:
    """Return the function or class that is behind a partial, a decorator, or a method that was looked up."""
    while isinstance(value, partial):
        value = value.func
    value = inspect.unwrap(value) if callable(value) else value
    value = getattr(value, "__func__", value)
    return value if isinstance(value, FunctionType | type) or not callable(value) else type(value)


def place_of(value: object) -> str:
    """Return `file:line` of a function or a class, or of an object's class."""
    target = _innermost(value)
    if isinstance(target, FunctionType):
        return f"{target.__code__.co_filename}:{target.__code__.co_firstlineno}"
    kind = target if isinstance(target, type) else type(target)
    try:
        file, (_lines, number) = inspect.getsourcefile(kind), inspect.getsourcelines(kind)
    except (OSError, TypeError):
        return _NO_PLACE
    return f"{file}:{number}"


def module_of(value: object) -> str:
    """Return the name of the module that a function or class, or an object's class, was written in."""
    target = _innermost(value)
    return str(getattr(target if isinstance(target, FunctionType | type) else type(target), "__module__", ""))
