"""Pure core: whether the functions of a plugin's module are hooks, with what was probably meant where one is none."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Final

from ..contracts.signatures import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX: Final = "odradek_"
ATTRIBUTES: Final = ("odradek_plugin_api", "odradek_plugin_settings")
"""What a module may have beside hooks under such a name."""
_CUTOFF: Final = 0.8
_CUTOFF_OF_MARKED: Final = 0.6


def problem_with_hooks(module: object, hooks: Mapping[str, Callable[..., object]], marked: Mapping[str, str]) -> str:
    """Return what is wrong with the hooks of a module, as text for a person; empty when nothing is.

    Args:
        module: The plugin.
        hooks: The specifications, by name.
        marked: What is marked with `hookimpl`: by its name in the module, the hook that it says it is.
    """
    for name, hook in marked.items():
        function = getattr(module, name)
        told = f"`{name}` at {place_of(function)}"
        if hook not in hooks:
            return f"{told} is marked with `hookimpl`, and there is no such hook: {_meant(hook, hooks)}"
        if inspect.iscoroutinefunction(function):
            return f"{told} is `async`: a hook is a plain function"
        taken = inspect.signature(hooks[hook]).parameters
        for parameter in inspect.signature(function).parameters.values():
            is_needed = parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            if is_needed and parameter.name not in taken and parameter.name != "self":
                meant = f"it may take {', '.join(f'`{each}`' for each in taken)}" if taken else "it takes none"
                return f"{told} has an argument `{parameter.name}`, which {hook} does not give: {meant}"
    return _problem_with_unmarked(module, hooks, marked)


def _problem_with_unmarked(module: object, hooks: Mapping[str, object], marked: Mapping[str, str]) -> str:
    names = [name for name in dir(module) if name.startswith(PREFIX) and name not in marked]
    others = [name for name in names if not isinstance(getattr(module, name), ModuleType)]
    if unmarked := [name for name in others if name in hooks]:
        return f"does not mark {', '.join(unmarked)} with `hookimpl`"
    for name in others:
        if name not in ATTRIBUTES and (meant := _nearest(name, (*hooks, *ATTRIBUTES), _CUTOFF)):
            return f"has `{name}`, which is no hook: did you mean `{meant}`?"
    if not marked and not any(name in ATTRIBUTES for name in others):
        return "implements no hook"
    return ""


def _meant(name: str, hooks: Mapping[str, object]) -> str:
    found = _nearest(name, tuple(hooks), _CUTOFF_OF_MARKED)
    return f"did you mean `{found}`?" if found else f"the hooks are {', '.join(hooks)}"


def _nearest(name: str, known: tuple[str, ...], cutoff: float) -> str:
    """Compare without the prefix, which would make any two alike."""
    found = nearest(name.removeprefix(PREFIX), tuple(each.removeprefix(PREFIX) for each in known), cutoff)
    return PREFIX + found if found else ""


def nearest(name: str, known: tuple[str, ...], cutoff: float) -> str:
    """Return the known name that is most like a name, empty when none is like it."""
    import difflib  # takes 10 ms to import

    found = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return found[0] if found else ""
