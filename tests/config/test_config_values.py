"""Values: what golden examples of a real broker do not show."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.config.values import ConfigType, InvalidValueError, parse, render


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (100.0, "100.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (2147483647.0, "2.147483647E9"),
        (99999999999.0, "9.9999999999E10"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00012345, "1.2345E-4"),
        (-1234567890.5, "-1.2345678905E9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert render(value) == text


@given(st.floats(allow_nan=False))
def test_a_double_is_read_back_as_it_was_written(value: float) -> None:
    text = render(value)
    assert text is not None

    assert parse("key", text, ConfigType.DOUBLE) == value


@given(st.sampled_from([ConfigType.INT, ConfigType.SHORT, ConfigType.LONG]), st.integers())
def test_whole_numbers_keep_to_their_width(type_: ConfigType, number: int) -> None:
    bits = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}[type_]
    fits = -(1 << bits) <= number < 1 << bits
    try:
        parsed = parse("key", str(number), type_)
    except InvalidValueError:
        parsed = None

    assert parsed == (number if fits else None)


@given(st.sampled_from(ConfigType), st.text())
def test_any_text_is_a_value_or_an_invalid_value(type_: ConfigType, text: str) -> None:
    try:
        value = parse("key", text, type_)
    except InvalidValueError:
        return
    written = render(value)
    assert written is not None

    assert type_ in {ConfigType.LIST, ConfigType.DOUBLE} or parse("key", written, type_) == value


def test_endless_digits_are_refused_quickly() -> None:
    with pytest.raises(InvalidValueError, match="Not a number of type LONG"):
        parse("key", "1" * 100_000, ConfigType.LONG)


def test_a_password_keeps_its_blanks() -> None:
    assert parse("key", " secret ", ConfigType.PASSWORD) == " secret "
