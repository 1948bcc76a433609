"""Pure core: a tree becomes a machine, and the machine says whether a whole text matches.

The machine is Thompson's: all ways through the expression are followed at once, so a text takes time in proportion to
its length, whatever the expression. Sets of ways that came up once are kept, with where each character that came up
leads from them: texts that begin alike cost a table look-up a character.

*Source:* Thompson, "Regular Expression Search Algorithm" (1968); Cox, "Regular Expression Matching Can Be Simple And
Fast" (2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import attrs

from .characters import WORD, CharacterSet
from .syntax import NODES_MAX, Assertion, Characters, Join, Node, PatternError, Repeat, parse

INSTRUCTIONS_MAX: Final = 4_000
"""How large a machine may be: counted repetitions are written out. RE2/J has no such limit."""

KEPT_MAX: Final = 20_000
"""How much is kept of what matching has shown, in places and moves: a few MB."""

PATTERNS_MAX: Final = 64
"""How many expressions are kept ready."""

PORTION_STEPS: Final = 20_000
"""How much is looked at in one go, in characters and places of machines: a few milliseconds."""

_MATCH: Final = 0
_EDGE, _NEWLINE, _WORD, _OTHER = range(4)
"""What stands beside a place of the text: its beginning or end, or a character of some kind."""


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
        self._nodes_count = 0

    def put(self, instruction: _Instruction) -> int:
        if len(self.program) >= INSTRUCTIONS_MAX:
            raise PatternError("expression is too large")
        self.program.append(instruction)
        return len(self.program) - 1

    def build(self, node: Node, then: int) -> int:
        """Return where a node begins that goes on at `then`."""
        self._nodes_count += 1
        if self._nodes_count > NODES_MAX:
            raise PatternError("expression is too large")
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
    """The places reached after some characters, and what the last one was.

    Attributes:
        places: Where the machine may be, assertions not yet looked at.
        before: What kind the last character was of.
        moves: By character, the next state.
        is_end: Whether the text may end here; None when nobody has asked.
    """

    places: frozenset[int]
    before: int
    moves: dict[str, _State] = attrs.field(factory=dict)
    is_end: bool | None = None


class Pattern:
    """An expression, ready to match. Owned by one task: it learns as it matches.

    Attributes:
        steps: How many places were looked at so far: the work that matching has cost, characters that are looked up
            in what is kept aside.
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
        self._begin = _State(frozenset({begin}), _EDGE)
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self._kept_count = 0

    def matches(self, text: str) -> bool:
        """Return whether the whole of a text matches."""
        *_, is_match = self._follow(text, PORTION_STEPS)
        return bool(is_match)

    def sift(self, texts: Iterable[str], portion: int = PORTION_STEPS) -> Iterator[str | None]:
        """Iterate over the texts that match; None after each portion of the work, so that others can be served.

        Args:
            texts: Any texts.
            portion: How many places and characters are looked at in one go. A single step may go beyond, by as many
                places as the machine has (4,000 at most).
        """
        budget = portion
        for text in texts:
            before = self.steps
            for is_match in self._follow(text, max(budget, 1)):
                if is_match is None:
                    yield None
                    budget, before = portion, self.steps
                elif is_match:
                    yield text
            budget -= len(text) + 1 + self.steps - before
            if budget <= 0:
                yield None
                budget = portion

    def _follow(self, text: str, portion: int) -> Iterator[bool | None]:
        """Yield None whenever so many places were looked at, and at last whether the text matches."""
        stop = self.steps + portion
        state = self._begin
        for character in text:
            following = state.moves.get(character)
            if following is None:
                if self.steps >= stop:
                    yield None
                    stop = self.steps + portion
                following = self._move(state, character)
            state = following
            if not state.places:
                break
        if state.is_end is None:
            state.is_end = _MATCH in self._reachable(state, _EDGE)
        yield state.is_end

    def _move(self, state: _State, character: str) -> _State:
        kind = _WORD if WORD(character) else _NEWLINE if character == "\n" else _OTHER
        verdicts: dict[CharacterSet, bool] = {}
        places = set()
        for at in self._reachable(state, kind):
            characters, _, following, _ = self._program[at]
            if characters is None:
                continue
            is_member = verdicts.get(characters)
            if is_member is None:
                is_member = verdicts[characters] = characters(character)
            if is_member:
                places.add(following)
        self.steps += len(verdicts)
        state.moves[character] = known = self._kept(frozenset(places), kind)
        return known

    def _kept(self, places: frozenset[int], before: int) -> _State:
        """Return the state of some places, the one that is kept if there is one."""
        if self._kept_count >= KEPT_MAX:
            # What is still on its way keeps its own state; it is forgotten when the text ends.
            self._states.clear()
            self._begin.moves.clear()
            self._kept_count = 0
        self._kept_count += 1
        known = self._states.get((places, before))
        if known is None:
            self._kept_count += len(places)
            known = self._states[places, before] = _State(places, before)
        return known

    def _reachable(self, state: _State, after: int) -> set[int]:
        """Return the places that wait for a character, and the match, given of which kind the next character is."""
        reached: set[int] = set()
        waiting = list(state.places)
        while waiting:
            at = waiting.pop()
            if at in reached:
                continue
            reached.add(at)
            characters, assertion, following, other = self._program[at]
            if at == _MATCH or characters is not None or (assertion and not _holds(assertion, state.before, after)):
                continue
            waiting.append(following)
            if other >= 0:
                waiting.append(other)
        self.steps += len(reached) + 1
        return reached


def _holds(assertion: str, before: int, after: int) -> bool:
    if assertion in "^(":
        return before == _EDGE or (assertion == "(" and before == _NEWLINE)
    if assertion in "$)":
        return after == _EDGE or (assertion == ")" and after == _NEWLINE)
    return ((before == _WORD) != (after == _WORD)) == (assertion == "b")


@lru_cache(maxsize=PATTERNS_MAX)
def compile_pattern(text: str) -> Pattern:
    """Return the expression, made once for all who use it.

    Raises:
        PatternError: It is none, or too large.
    """
    return Pattern(text)
