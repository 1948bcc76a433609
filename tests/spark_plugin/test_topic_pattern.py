"""`subscribePattern`: what finds which topics, and what is refused."""

from __future__ import annotations

import pytest

from odradek.spark_plugin.errors import OptionError
from odradek.spark_plugin.options.topic_pattern import compile_pattern

# What `java.util.regex.Pattern` of Java 17 finds, computed with it on 2026-11-22 (`Matcher.find`).
FOUND = [
    ("orders", "orders", True),
    ("orders", "eu.orders-1", True),
    ("^orders$", "eu.orders-1", False),
    ("^orders$", "orders", True),
    ("orders-(eu|us)", "orders-us", True),
    ("^orders-[0-9]+$", "orders-17", True),
    ("^orders-[^0-9]+$", "orders-17", False),
    (r"^orders\.v\d{1,2}$", "orders.v12", True),
    (r"^\w+$", "a_b9", True),
    (r"^\w+$", "a-b", False),
    ("(?i)ORDERS", "orders", True),
    ("^(?i:OR)ders$", "orders", True),
    ("^(?i:OR)ders$", "orDERS", False),
    ("^a*+b$", "aaab", True),
    ("^a?+a$", "a", False),
    ("^(?>a|ab)c$", "abc", False),
    ("^(?!internal-).*", "internal-x", False),
    ("(?<=eu-)orders", "eu-orders", True),
    ("^[]a]$", "a", True),
    (r"^[\]a]+$", "a", True),
    (r"^[a\-z]+$", "b", False),
    (r"^\x61$", "a", True),
    (r"^a\Z", "a", True),
    (r"\Aa", "ba", False),
]


@pytest.mark.parametrize(("pattern", "name", "is_found"), FOUND)
def test_a_pattern_finds_what_java_finds(pattern: str, name: str, is_found: bool) -> None:
    assert (compile_pattern(pattern).search(name) is not None) is is_found


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "Pattern to subscribe is empty"),
        ("  ", "Pattern to subscribe is empty"),
        (r"\p{Alpha}+", r"'\p' is Java's alone: name the characters, for instance [A-Za-z]"),
        (r"[\p{Lower}_]+", r"'\p' is Java's alone"),
        (r"\P{Alpha}", r"'\P' is Java's alone"),
        (r"\Qa.b\E", r"'\Q' is Java's alone"),
        (r"a\z", r"'\z' is Java's alone: write $"),
        (r"\Ga", r"'\G' is Java's alone"),
        (r"\h", r"'\h' is Java's alone"),
        (r"(a)\k<x>", r"'\k' is Java's alone"),
        (r"\0101", r"'\0' is Java's alone"),
        ("[a-z&&[^b]]", "in a class join and cross classes in Java alone"),
        ("[a[bc]]", "in a class join and cross classes in Java alone"),
        ("[[:alpha:]]", "in a class join and cross classes in Java alone"),
        ("(?<name>a)", "a named group '(?<name>' is Java's alone: write '('"),
        ("a(?i)b", "stand at the very beginning"),
        ("(?i-s)b", "stand at the very beginning"),
        ("(?d)a", "mean another thing in Python"),
        ("(?x) a", "mean another thing in Python"),
        ("(?U:a)", "mean another thing in Python"),
        ("(", "it is no regular expression"),
        ("*a", "it is no regular expression"),
        ("[a", "it is no regular expression"),
        ("a\\", "it is no regular expression"),
        (r"\y", "it is no regular expression"),
        ("(?<=a+)b", "it is no regular expression"),
        ("a{99999999999}", "it is no regular expression"),
        ("(" * 5_000 + ")" * 5_000, "it is no regular expression"),
    ],
)
def test_what_means_another_thing_in_python_is_refused_and_says_what_to_write(pattern: str, why: str) -> None:
    with pytest.raises(OptionError) as refused:
        compile_pattern(pattern)

    assert refused.value.option == "subscribePattern"
    assert why in str(refused.value)
