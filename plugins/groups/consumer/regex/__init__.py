"""Pure core: regular expressions of RE2's syntax, matched against whole topic names in linear time.

Members send expressions that were written for RE2, and Kafka matches them with RE2/J. Python's `re` reads another
syntax and can take exponential time, and the one RE2 library for Python needs a C++ compiler on many systems. Here is
what is needed of RE2 and no more: does an expression match the *whole* of a short name of letters, digits, `.`, `_` and
`-`? So captures, laziness and the bigger part of Unicode do not matter, and a set of characters is a set of at most 65.

*Source:* RE2's syntax page; RE2/J 1.8's answers, which the tests compare.
"""

from .matcher import Pattern, compile_pattern
from .syntax import PatternError

__all__ = ["Pattern", "PatternError", "compile_pattern"]
