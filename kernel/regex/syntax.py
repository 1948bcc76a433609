"""Pure core: RE2's syntax: from the text of an expression to a tree.

*Source:* RE2's syntax page. Which texts are refused, and in which words, follows RE2/J 1.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import attrs

from .characters import (
    ANY,
    NOT_NEWLINE,
    PERL,
    POSIX,
    CharacterSet,
    folded,
    literal,
    negated,
    ranges,
    unicode_class,
    union,
)

REPEAT_MAX: Final = 1000
"""The largest count of a repetition."""

DEPTH_MAX: Final = 100
"""How deep groups may stand in groups; RE2/J has no such limit below that of its stack."""

NODES_MAX: Final = 20_000
"""How many parts an expression may have, as it stands and written out: empty ones take no place, but time."""

_CODE_POINT_MAX: Final = 0x10FFFF
_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ASSERTIONS: Final = {"A": "^", "z": "$", "b": "b", "B": "B"}
_OF_LINES: Final = {"^": "(", "$": ")"}
_FLAGS: Final = {"i": "folds", "m": "has_lines", "s": "dot_is_any"}
_POSTFIX: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@attrs.frozen
class Characters:
    """One character of a set."""

    characters: CharacterSet


@attrs.frozen
class Assertion:
    """No character, but a condition on the place where it stands.

    `^` and `$` are the ends of the text, `(` and `)` those of a line, `b` is a word's boundary, `B` none.
    """

    kind: str


@attrs.frozen
class Join:
    """One after the other."""

    nodes: Sequence[Node]


@attrs.frozen
class Either:
    """One of several."""

    nodes: Sequence[Node]


@attrs.frozen
class Repeat:
    """A node, `least` to `most` times; `most` is None for any number."""

    node: Node
    least: int
    most: int | None


Node: TypeAlias = "Characters | Assertion | Join | Either | Repeat"


class PatternError(ValueError):
    """A text that is no expression of this syntax; the message is what is wrong with it."""


@attrs.frozen
class _Flags:
    """`i`, `m` and `s`; laziness (`U`) does not matter to whole matches."""

    folds: bool = False
    has_lines: bool = False
    dot_is_any: bool = False


@attrs.define
class _Open:
    """A group, or the whole, under way: alternatives that are complete, and the one being read."""

    flags_outside: _Flags
    alternatives: list[Node] = attrs.field(factory=list)
    items: list[Node] = attrs.field(factory=list)

    def closed(self) -> Node:
        """Return the node of it."""
        alternatives = [*self.alternatives, Join(self.items)]
        return alternatives[0] if len(alternatives) == 1 else Either(alternatives)


def parse(text: str) -> Node:
    """Return the tree of an expression.

    Raises:
        PatternError: It is none.
    """
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags = _Flags()
        self.names: set[str] = set()
        self.nodes_count = 0
        self.last_class_end = text.rfind(":]")
        self.stack = [_Open(self.flags)]

    def parse(self) -> Node:
        after_repeat = False
        while self.at < len(self.text):
            character = self.text[self.at]
            repeat = self._repeat(character)
            if repeat is not None:
                self._apply(repeat, after_repeat=after_repeat)
                after_repeat = True
                continue
            # A brace that stands for itself cannot be repeated, as RE2/J has it.
            after_repeat = character == "{"
            self._one(character)
        if len(self.stack) > 1:
            raise PatternError("missing closing )")
        return self.stack[0].closed()

    def _one(self, character: str) -> None:
        if character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif character == "|":
            self.at += 1
            top = self.stack[-1]
            top.alternatives.append(Join(top.items))
            top.items = []
        elif character == "[":
            self._add(Characters(self._bracketed()))
        elif character == "\\":
            self._escaped()
        else:
            self.at += 1
            if character in "^$":
                self._add(Assertion(_OF_LINES[character] if self.flags.has_lines else character))
            elif character == ".":
                self._add(Characters(ANY if self.flags.dot_is_any else NOT_NEWLINE))
            else:
                self._add(Characters(self._literal(ord(character))))

    def _add(self, node: Node) -> None:
        self.nodes_count += 1
        if self.nodes_count > NODES_MAX:
            raise PatternError("expression is too large")
        self.stack[-1].items.append(node)

    def _literal(self, point: int) -> CharacterSet:
        return literal(point, folds=self.flags.folds)

    def _folded(self, characters: CharacterSet) -> CharacterSet:
        return folded(characters) if self.flags.folds else characters

    def _take(self, expected: str) -> bool:
        if self.text.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    # ----------------------------------------------------------------------------------------------------- repetition

    def _repeat(self, character: str) -> tuple[int, int | None] | None:
        """Read a repetition, if there is one; a brace that is none stands for itself."""
        if character in _POSTFIX:
            self.at += 1
            return _POSTFIX[character]
        if character != "{":
            return None
        begin = self.at
        self.at += 1
        least = self._count()
        most = least
        if least is not None and self._take(","):
            most = None if self.text.startswith("}", self.at) else self._count()
            is_open = most is None
            if is_open and not self.text.startswith("}", self.at):
                least = None
        if least is None or not self._take("}"):
            self.at = begin
            return None
        if least > REPEAT_MAX or (most is not None and (most > REPEAT_MAX or least > most)):
            raise PatternError("invalid repeat count")
        return least, most

    def _count(self) -> int | None:
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] in "0123456789":
            self.at += 1
        digits = self.text[begin : self.at]
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            return None
        return min(int(digits[:9]), 10**8)

    def _apply(self, repeat: tuple[int, int | None], *, after_repeat: bool) -> None:
        self._take("?")
        if after_repeat:
            raise PatternError("invalid nested repetition operator")
        items = self.stack[-1].items
        if not items:
            raise PatternError("missing argument to repetition operator")
        items[-1] = Repeat(items[-1], *repeat)

    # --------------------------------------------------------------------------------------------------------- groups

    def _open(self) -> None:
        if len(self.stack) > DEPTH_MAX:
            raise PatternError("expression nests too deeply")
        outside = self.flags
        self.at += 1
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                self._name()
            elif not self._flag_group():
                return
        self.stack.append(_Open(outside))

    def _name(self) -> None:
        end = self.text.find(">", self.at)
        name = self.text[self.at : end] if end >= 0 else ""
        if not name or not name.isascii() or not name.replace("_", "a").isalnum():
            raise PatternError("invalid named capture")
        if name in self.names:
            raise PatternError("duplicate capture group name")
        self.names.add(name)
        self.at = end + 1

    def _flag_group(self) -> bool:
        """Read `i-s:` or `i-s)`; return whether a group begins, not only other flags for the rest of this one."""
        changed: dict[str, bool] = {}
        is_on, has_flag, is_negated = True, False, False
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            if character in "imsU":
                has_flag = True
                if character != "U":
                    changed[_FLAGS[character]] = is_on
            elif character == "-" and is_on:
                is_on, has_flag, is_negated = False, False, True
            elif character in ":)" and (has_flag or not is_negated):
                self.flags = attrs.evolve(self.flags, **changed)
                return character == ":"
            else:
                break
        raise PatternError("invalid or unsupported Perl syntax")

    def _close(self) -> None:
        if len(self.stack) == 1:
            raise PatternError("regexp/syntax: internal error")
        self.at += 1
        closed = self.stack.pop()
        self.flags = closed.flags_outside
        self._add(closed.closed())

    # -------------------------------------------------------------------------------------------------------- escapes

    def _escaped(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following in _ASSERTIONS and following:
            self.at += 2
            self._add(Assertion(_ASSERTIONS[following]))
        elif following == "Q":
            end = self.text.find("\\E", self.at)
            literal = self.text[self.at + 2 : end if end >= 0 else len(self.text)]
            self.at = end + 2 if end >= 0 else len(self.text)
            for character in literal:
                self._add(Characters(self._literal(ord(character))))
        else:
            known = self._class_escape()
            self._add(Characters(known if known is not None else self._literal(self._code_point())))

    def _class_escape(self) -> CharacterSet | None:
        r"""Read `\d`, `\pL` and the like, if there is one."""
        letter = self.text[self.at + 1 : self.at + 2]
        if letter and letter.lower() in PERL:
            self.at += 2
            known = self._folded(PERL[letter.lower()])
            return known if letter.islower() else negated(known)
        if letter not in ("p", "P"):
            return None
        self.at += 2
        if self._take("{"):
            end = self.text.find("}", self.at)
            if end < 0:
                raise PatternError("invalid character class range")
            name, self.at = self.text[self.at : end], end + 1
        else:
            name, self.at = self.text[self.at : self.at + 1], self.at + 1
        is_negated = (letter == "P") != name.startswith("^")
        found = unicode_class(name.removeprefix("^"))
        if found is None:
            raise PatternError("invalid character class range")
        found = self._folded(found)
        return negated(found) if is_negated else found

    def _code_point(self) -> int:
        """Read an escape that stands for one character."""
        self.at += 1
        if self.at >= len(self.text):
            raise PatternError("trailing backslash at end of expression")
        character = self.text[self.at]
        self.at += 1
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "x":
            return self._hexadecimal()
        if character in "01234567":
            return self._octal(character)
        if not (character.isascii() and character.isalnum()):
            return ord(character)
        raise PatternError("invalid escape sequence")

    def _octal(self, first: str) -> int:
        more = 0
        while more < 2 and self.text[self.at + more : self.at + more + 1] in tuple("01234567"):
            more += 1
        if first != "0" and not more:
            # A single digit would be a reference to a group, which no automaton can follow.
            raise PatternError("invalid escape sequence")
        digits = first + self.text[self.at : self.at + more]
        self.at += more
        return int(digits, 8)

    def _hexadecimal(self) -> int:
        if self._take("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at : end] if end >= 0 else ""
            self.at = end + 1
        else:
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            if len(digits) < 2:
                digits = ""
        if not digits or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            raise PatternError("invalid escape sequence")
        if int(digits, 16) > _CODE_POINT_MAX:
            raise PatternError("invalid escape sequence")
        return int(digits, 16)

    # -------------------------------------------------------------------------------------------------------- classes

    def _bracketed(self) -> CharacterSet:
        self.at += 1
        is_negated = self._take("^")
        pairs: list[tuple[int, int]] = []
        classes: dict[str, CharacterSet] = {}
        is_first = True
        while is_first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise PatternError("missing closing ]")
            is_first = False
            begin = self.at
            known = self._class_in_class()
            if known is None:
                pairs.append(self._range())
            else:
                # A class that is named again and again is asked once.
                classes[self.text[begin : self.at]] = known
        self.at += 1
        found = union([self._folded(ranges(pairs)), *classes.values()])
        return negated(found) if is_negated else found

    def _class_in_class(self) -> CharacterSet | None:
        if self.text.startswith("[:", self.at) and self.at + 2 <= self.last_class_end:
            end = self.text.index(":]", self.at + 2)
            name = self.text[self.at + 2 : end]
            known = POSIX.get(name.removeprefix("^"))
            if known is None:
                raise PatternError("invalid character class range")
            self.at = end + 2
            known = self._folded(known)
            return negated(known) if name.startswith("^") else known
        return self._class_escape() if self.text.startswith("\\", self.at) else None

    def _range(self) -> tuple[int, int]:
        low = self._class_character()
        high = low
        if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
            self.at += 1
            high = self._class_character()
        if high < low:
            raise PatternError("invalid character class range")
        return low, high

    def _class_character(self) -> int:
        if self.at >= len(self.text):
            raise PatternError("missing closing ]")
        if self.text[self.at] == "\\":
            return self._code_point()
        self.at += 1
        return ord(self.text[self.at - 1])
