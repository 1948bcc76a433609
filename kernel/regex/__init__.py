"""Pure core: regular expressions of RE2's syntax, matched against whole texts in linear time.

Clients send expressions that were written for RE2, and Kafka matches them with RE2/J: subscriptions by topics' names,
lists of transactional ids. Python's `re` reads another syntax and can take exponential time, and the one RE2 library
for Python needs a C++ compiler on many systems. Here is what is needed of RE2 and no more: does an expression match
the *whole* of a text? So captures and laziness do not matter.

Importing this package imports nothing: clients of most brokers send no expression.

*Source:* RE2's syntax page; RE2/J 1.8's answers, which the tests compare.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .matcher import PORTION_STEPS, Pattern, compile_pattern
    from .syntax import PatternError

_HOMES: Final = {
    "PORTION_STEPS": "matcher",
    "Pattern": "matcher",
    "PatternError": "syntax",
    "compile_pattern": "matcher",
}

__all__ = ["PORTION_STEPS", "Pattern", "PatternError", "compile_pattern"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{home}", __name__), name)
    return found
