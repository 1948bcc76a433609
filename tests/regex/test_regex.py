"""Regular expressions of RE2's syntax: RE2/J's answers, and that no expression can hold the broker up."""

from __future__ import annotations

import re
import string
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.regex import Pattern, PatternError
from odradek.kernel.regex.characters import cases
from odradek.kernel.regex.matcher import KEPT_MAX

LINES = [
    line
    for line in (Path(__file__).parent / "golden/re2j.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("# ")
]
NAMES = LINES[0].split()[1:]
OTHERWISE = {"(a{100}){100}": "!expression is too large"}
"""What we say otherwise: counted repetitions are written out, within a limit."""


def test_expressions_are_taken_or_refused_as_by_re2j() -> None:
    for line in LINES[1:]:
        text, expected = line.split("\t")
        try:
            pattern = Pattern(text)
            actual = " ".join(name for name in NAMES if pattern.matches(name))
        except PatternError as error:
            actual = f"!{error}"

        assert OTHERWISE.get(text, expected) == actual, text


GOLDEN_OF_TEXTS = [
    line.split("\t")
    for line in (Path(__file__).parent / "golden/re2j_any_text.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("# ")
]


def unescaped(text: str) -> str:
    return re.sub(r"~u\{([0-9A-F]+)\}", lambda match: chr(int(match[1], 16)), text)


ANY_TEXTS = [unescaped(text) for text in GOLDEN_OF_TEXTS[0][1:]]


def test_any_text_is_matched_as_by_re2j() -> None:
    for escaped, expected in GOLDEN_OF_TEXTS[1:]:
        try:
            pattern = Pattern(unescaped(escaped))
            actual = " ".join(str(at) for at, text in enumerate(ANY_TEXTS) if pattern.matches(text))
        except PatternError as error:
            actual = f"!{error}"

        assert expected == actual, escaped


def test_the_cases_of_a_character_are_those_of_unicodes_simple_folding() -> None:
    letters = [chr(point) for point in range(0x1E944) if unicodedata.category(chr(point))[0] in "LMNS"]
    orbits = {letter: set(cases(letter)) for letter in letters}

    assert not [letter for letter, orbit in orbits.items() for one in orbit if orbits[one] != orbit]


TEXTS = st.text(alphabet="abAB01._-()|*+?[]{}^$\\,:dwpQEi", max_size=12)
TOPICS = st.text(alphabet=string.ascii_letters + string.digits + "._-", min_size=1, max_size=8)


@given(TEXTS, TOPICS)
def test_any_text_is_an_expression_or_refused(text: str, name: str) -> None:
    try:
        matched = Pattern(text).matches(name)
    except PatternError:
        matched = False

    assert matched in (True, False)


SIMPLE = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "-"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)
"""Expressions that mean the same in Python."""


@given(SIMPLE, st.lists(st.text(alphabet="ab1-", min_size=1, max_size=6), max_size=8))
def test_what_python_matches_is_matched_name_after_name(text: str, names: list[str]) -> None:
    pattern = Pattern(text)

    assert [bool(re.fullmatch(text, name)) for name in names] == [pattern.matches(name) for name in names]


@pytest.mark.parametrize("text", ["(a*)*b", "(a|aa)+b", "(a?){60}a{60}b", "(.*a){30}b", "a" * 3_000])
def test_a_catastrophic_expression_takes_linear_time(text: str) -> None:
    pattern = Pattern(text)
    name = "a" * 249

    assert not pattern.matches(name)
    assert pattern.steps < 249 * 4_000
    before = pattern.steps

    assert not pattern.matches(name)
    assert before == pattern.steps


def test_what_is_kept_of_an_expression_is_bounded() -> None:
    pattern = Pattern("(a|b)*a(a|b){12}")
    names = [format(number, "013b").replace("0", "b").replace("1", "a") for number in range(1 << 13)]
    matched = [pattern.matches(name) for name in names]

    assert [name[0] == "a" for name in names] == matched
    assert sum(len(state.moves) + len(state.places) for state in pattern._states.values()) <= KEPT_MAX + 100


def test_nested_plusses_against_a_long_id_end() -> None:
    pattern = Pattern("(a+)+b")

    assert not pattern.matches("a" * 5_000)
    assert pattern.steps < 100


def test_a_sieve_pauses_within_a_text_and_says_the_same() -> None:
    text = "(?s)(.|.)*a(.|.){300}"
    texts = ["\n" * number + "a" + "b" * 300 + "a" * (number % 3) for number in range(1, 4)]
    pattern = Pattern(text)
    steps, found, pauses_count, longest = 0, [], 0, 0
    for one in pattern.sift(texts, 1_000):
        longest = max(longest, pattern.steps - steps)
        steps = pattern.steps
        if one is None:
            pauses_count += 1
        else:
            found.append(one)

    assert [one for one in texts if Pattern(text).matches(one)] == found
    assert pauses_count > len(texts)
    assert longest < 1_000 + 2_000


def test_a_sieve_pauses_between_texts_that_cost_look_ups_only() -> None:
    found = list(Pattern("a*").sift(["a" * 100] * 100, 1_000))

    assert found.count("a" * 100) == 100
    assert found.count(None) == 10


@pytest.mark.parametrize("text", ["((){1000}){1000}", "((((){1000}){1000}){1000}){1000}", "(a()()(){1000}){1000}"])
def test_what_is_empty_cannot_be_repeated_without_end(text: str) -> None:
    with pytest.raises(PatternError, match="too large"):
        Pattern(text)


@pytest.mark.parametrize("text", ["(" * 101 + ")" * 101, "a{1000}{1}", "(a{1000}b{1000}){2}"])
def test_an_expression_that_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(PatternError):
        Pattern(text)
