"""Java's properties syntax."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.config.properties import parse_properties
from odradek.kernel.errors import ConfigError

EXAMPLES = {
    "a=b": [("a", "b")],
    "a = b ": [("a", "b ")],
    "  a\t=\tb": [("a", "b")],
    "a:b": [("a", "b")],
    "a : b": [("a", "b")],
    "a b c": [("a", "b c")],
    "a": [("a", "")],
    "a=": [("a", "")],
    "=b": [("", "b")],
    "a==b": [("a", "=b")],
    "a = :b": [("a", ":b")],
    "# comment\n! another\n\n   \n  # indented\na=b": [("a", "b")],
    "a=b # no comment": [("a", "b # no comment")],
    "a=1,\\\n   2,\\\n   3": [("a", "1,2,3")],
    "a=1\\\\\nb=2": [("a", "1\\"), ("b", "2")],
    "a=1\\": [("a", "1")],
    "a=1\\\n# no comment": [("a", "1# no comment")],
    "a=1\\\n\nb=2": [("a", "1"), ("b", "2")],
    "a\\ b\\=c\\:d=e": [("a b=c:d", "e")],
    "a=\\t\\n\\r\\f": [("a", "\t\n\r\f")],
    "a=C:\\dir\\new": [("a", "C:dir\new")],
    "a=\\u00e9\\u4e2d": [("a", "\u00e9\u4e2d")],
    "a=\\ud83d\\ude00": [("a", "\U0001f600")],
    "a=\u4e2d": [("a", "\u4e2d")],
    "a=1\r\nb=2\rc=3": [("a", "1"), ("b", "2"), ("c", "3")],
    "a=1\na=2": [("a", "1"), ("a", "2")],
    "listeners=PLAINTEXT://:9092,CONTROLLER://:9093": [("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093")],
}
"""By hand from the documentation of `java.util.Properties.load`."""


@pytest.mark.parametrize("text", EXAMPLES)
def test_properties_read_as_java_reads_them(text: str) -> None:
    assert [(entry.key, entry.value) for entry in parse_properties(text, "f")] == EXAMPLES[text]


def test_an_entry_knows_the_line_it_begins_on() -> None:
    entries = parse_properties("# one\na=1,\\\n  2\n\nb=2", "f")

    assert [(entry.key, entry.line) for entry in entries] == [("a", 2), ("b", 5)]


def test_a_broken_escape_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_properties("a=1\nb=\\u12", "server.properties")

    assert refusal.value.where == "server.properties, line 2"


def escape(text: str) -> str:
    """Write a text so that every character is taken as it is: the plainest writer there is."""
    return "".join(f"\\u{ord(c):04x}" for c in text)


PLAIN = st.text(st.characters(max_codepoint=0xD7FF), max_size=20)


@given(st.lists(st.tuples(PLAIN, PLAIN)))
def test_what_is_written_in_escapes_is_read_back(entries: list[tuple[str, str]]) -> None:
    text = "\n".join(f"{escape(key)}={escape(value)}" for key, value in entries if key)

    assert [(e.key, e.value) for e in parse_properties(text, "f")] == [(k, v) for k, v in entries if k]


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_properties(text, "f")
