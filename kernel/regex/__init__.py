"""Pure core: regular expressions of RE2's syntax, matched against whole texts in linear time.

Clients send expressions that were written for RE2, and Kafka matches them with RE2/J: subscriptions by topics' names,
lists of transactional ids. Python's `re` reads another syntax and can take exponential time, and the one RE2 library
for Python needs a C++ compiler on many systems. Here is what is needed of RE2 and no more: does an expression match
the *whole* of a text? So captures and laziness do not matter.

*Source:* RE2's syntax page; RE2/J 1.8's answers, which the tests compare.
"""

from .matcher import PORTION_STEPS, Pattern, compile_pattern
from .syntax import PatternError

__all__ = ["PORTION_STEPS", "Pattern", "PatternError", "compile_pattern"]
