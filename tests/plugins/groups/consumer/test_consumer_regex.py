"""Regular expressions of RE2's syntax: RE2/J's answers, and that no expression can hold the broker up."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.plugins.groups.consumer.regex import Pattern, PatternError
from odradek.plugins.groups.consumer.regex.matcher import STATES_MAX

LINES = [
    line
    for line in (Path(__file__).parent / "golden/re2j.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("# ")
]
NAMES = LINES[0].split()[1:]
OTHERWISE = {"(a{100}){100}": "!expression is too large"}
"""What we say otherwise: counted repetitions are written out, within a limit."""


@pytest.mark.parametrize("line", LINES[1:])
def test_an_expression_is_taken_or_refused_as_by_re2j(line: str) -> None:
    text, expected = line.split("\t")
    try:
        pattern = Pattern(text)
        actual = " ".join(name for name in NAMES if pattern.matches(name))
    except PatternError as error:
        actual = f"!{error}"

    assert OTHERWISE.get(text, expected) == actual


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
    assert len(pattern._states) <= STATES_MAX


@pytest.mark.parametrize("text", ["(" * 101 + ")" * 101, "a{1000}{1}", "(a{1000}b{1000}){2}"])
def test_an_expression_that_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(PatternError):
        Pattern(text)
