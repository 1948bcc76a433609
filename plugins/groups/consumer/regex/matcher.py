"""Pure core: a tree becomes a machine, and the machine says whether a whole name matches.

The machine is Thompson's: all ways through the expression are followed at once, so a name takes time in proportion to
its length, whatever the expression. Sets of ways that came up once are kept, with where each character leads from
them: names that begin alike cost a table look-up a character.

*Source:* Thompson, "Regular Expression Search Algorithm" (1968); Cox, "Regular Expression Matching Can Be Simple And
Fast" (2007).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import attrs

from .characters import NONE, WORD, CharacterSet
from .syntax import Assertion, Characters, Join, Node, PatternError, Repeat, parse

INSTRUCTIONS_MAX: Final = 4_000
"""How large a machine may be: counted repetitions are written out. RE2/J has no such limit."""

STATES_MAX: Final = 1_000
"""How many sets of ways are kept."""

_MATCH: Final = 0


class _Instruction(NamedTuple):
    """One place of the machine: go on at `next` by a character of `characters`, or where `assertion` holds, or freely.

    `characters` is None where none is needed; `other` is a second place to go on at, freely; -1 for none.
    """

    characters: CharacterSet | None
    assertion: str
    next: int
    other: int


class _Builder:
    """Writes the machine from its end to its beginning: each part knows where to go on."""

    def __init__(self) -> None:
        self.program = [_Instruction(None, "", -1, -1)]

    def put(self, instruction: _Instruction) -> int:
        if len(self.program) >= INSTRUCTIONS_MAX:
            raise PatternError("expression is too large")
        self.program.append(instruction)
        return len(self.program) - 1

    def build(self, node: Node, then: int) -> int:
        """Return where a node begins that goes on at `then`."""
        if isinstance(node, Characters):
            return self.put(_Instruction(node.characters, "", then, -1))
        if isinstance(node, Assertion):
            return self.put(_Instruction(None, node.kind, then, -1))
        if isinstance(node, Repeat):
            return self._repeat(node, then)
        if isinstance(node, Join):
            for one in reversed(node.nodes):
                then = self.build(one, then)
            return then
        begin = self.build(node.nodes[-1], then)
        for one in reversed(node.nodes[:-1]):
            begin = self.put(_Instruction(None, "", self.build(one, then), begin))
        return begin

    def _repeat(self, node: Repeat, then: int) -> int:
        if node.most is None:
            loop = self.put(_Instruction(None, "", then, then))
            self.program[loop] = _Instruction(None, "", self.build(node.node, loop), then)
            then = loop
        else:
            after = then
            for _ in range(node.most - node.least):
                then = self.put(_Instruction(None, "", self.build(node.node, then), after))
        for _ in range(node.least):
            then = self.build(node.node, then)
        return then


@attrs.define(eq=False)
class _State:
    """The places reached after some characters, and what the last one was: None at the beginning.

    Attributes:
        places: Where the machine may be, assertions not yet looked at.
        was_word: Whether the last character belongs to a word; None at the beginning.
        moves: By character, the next state.
        is_end: Whether the name may end here; None when nobody has asked.
    """

    places: frozenset[int]
    was_word: bool | None
    moves: dict[str, _State] = attrs.field(factory=dict)
    is_end: bool | None = None


class Pattern:
    """An expression, ready to match. Owned by one task: it learns as it matches.

    Attributes:
        steps: How many places were looked at so far: the work that matching has cost.
    """

    def __init__(self, text: str) -> None:
        """Read an expression.

        Raises:
            PatternError: It is none, or too large.
        """
        builder = _Builder()
        begin = builder.build(parse(text), _MATCH)
        self.steps = 0
        self._program = builder.program
        self._begin = _State(frozenset({begin}), None)
        self._states: dict[tuple[frozenset[int], bool], _State] = {}

    def matches(self, name: str) -> bool:
        """Return whether the whole of a topic's name matches."""
        state = self._begin
        for character in name:
            state = state.moves.get(character) or self._move(state, character)
            if not state.places:
                return False
        if state.is_end is None:
            state.is_end = _MATCH in self._reachable(state, None)
        return state.is_end

    def _move(self, state: _State, character: str) -> _State:
        is_word = character in WORD
        program = self._program
        reachable = self._reachable(state, is_word)
        places = frozenset(program[at].next for at in reachable if character in (program[at].characters or NONE))
        if len(self._states) >= STATES_MAX:
            self._states.clear()
            self._begin.moves.clear()
            # What is still on its way keeps its own state; it is forgotten when the name ends.
        following = self._states.get((places, is_word))
        if following is None:
            following = self._states[places, is_word] = _State(places, is_word)
        state.moves[character] = following
        return following

    def _reachable(self, state: _State, is_word: bool | None) -> set[int]:
        """Return the places that wait for a character, and the match, given whether a character of a word follows."""
        reached: set[int] = set()
        waiting = list(state.places)
        while waiting:
            at = waiting.pop()
            if at in reached:
                continue
            reached.add(at)
            characters, assertion, following, other = self._program[at]
            if at == _MATCH or characters is not None or (assertion and not _holds(assertion, state.was_word, is_word)):
                continue
            waiting.append(following)
            if other >= 0:
                waiting.append(other)
        self.steps += len(reached) + 1
        return reached


def _holds(assertion: str, before: bool | None, after: bool | None) -> bool:
    if assertion == "^":
        return before is None
    if assertion == "$":
        return after is None
    return (bool(before) != bool(after)) == (assertion == "b")


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Pattern:
    """Return the expression, made once for all who use it.

    Raises:
        PatternError: It is none, or too large.
    """
    return Pattern(text)
