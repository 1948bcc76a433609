"""Pure core: what somebody probably meant who wrote what no command knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def nearest(text: str, known: Iterable[str]) -> str:
    """Return the name that is most like a text, empty when none is."""
    import difflib  # takes 10 ms to import

    return next(iter(difflib.get_close_matches(text, known, n=1)), "")


def of_choice(text: str, known: Iterable[str], *, tell_all: bool = False) -> str:
    """Return what to tell, in brackets, of a text that is none of some names.

    Args:
        text: What was written.
        known: The names.
        tell_all: Whether all of them are told.
    """
    names = list(known)
    found = nearest(text, names)
    told = [f"did you mean {found!r}?"] if found else []
    if tell_all:
        told.append(f"there are: {', '.join(names)}")
    return f" ({'; '.join(told)})" if told else ""


def of_option(name: str, known: Mapping[str, bool], meant: Mapping[str, str]) -> str:
    """Return what to tell, in brackets, of an option that a command has not; may be empty.

    Args:
        name: The option, with its dashes.
        known: Names of its options and operands, and which are operands: Kafka's tools have `--topic orders`.
        meant: Options to what to write in their stead.
    """
    if name in meant:
        return f" ({meant[name]})"
    bare = name.lstrip("-").upper()
    if known.get(bare):
        return f" ({bare} is written without it)"
    return of_choice(name, (option for option, is_operand in known.items() if not is_operand))
