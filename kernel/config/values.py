"""Pure core: the types of configuration values: parse a text, check it, write it back, all as Kafka's clients see it.

The wordings of the refusals are part of the wire: an admin client shows them behind INVALID_CONFIG, and tests of other
projects compare them. They follow what a running Apache Kafka 4.3.1 answers.

*Source:* Kafka 4.3 `ConfigDef` (types, parse rules, validators), `ConfigResponse.ConfigType` (numbers on the wire).
"""

from __future__ import annotations

import math
import re
from enum import IntEnum
from typing import Final, Protocol, TypeAlias

from ..classes import frozen
from ..errors import ConfigError

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None
"""A parsed configuration value; `None` is "not set", which is not the same as an empty text."""

TEN_YEARS_MS: Final = 315_576_000_000


class ConfigType(IntEnum):
    """Kafka's types of configuration values, by their numbers in DescribeConfigs (version 3 and later)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class InvalidValueError(ValueError):
    """A text is not a value of its key; the message is fit for a client."""

    @classmethod
    def of(cls, name: str, value: object, why: str) -> InvalidValueError:
        """Make the error in Kafka's usual wording.

        Args:
            name: The key.
            value: What was given, as text or parsed.
            why: What was expected instead; a sentence without full stop.
        """
        return cls(f"Invalid value {value} for configuration {name}: {why}")


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
_COMMA: Final = re.compile(r"\s*,\s*")
_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def parse(name: str, text: str, type_: ConfigType) -> Value:
    """Parse a text as Kafka does: trimmed (passwords are not), booleans in any case, lists split at commas.

    Raises:
        InvalidValueError: The text is no value of this type.
    """
    trimmed = text.strip()
    if type_ is ConfigType.BOOLEAN:
        return _parse_boolean(name, text, trimmed)
    if type_ in _BITS:
        return _parse_integer(name, text, trimmed, type_)
    if type_ is ConfigType.DOUBLE:
        if not _DOUBLE.fullmatch(trimmed):
            raise InvalidValueError.of(name, text, "Not a number of type DOUBLE")
        return float(trimmed.rstrip("fFdD"))
    if type_ is ConfigType.LIST:
        return tuple(_COMMA.split(trimmed)) if trimmed else ()
    return text if type_ is ConfigType.PASSWORD else trimmed


def _parse_boolean(name: str, text: str, trimmed: str) -> bool:
    lowered = trimmed.lower()
    if lowered not in {"true", "false"}:
        raise InvalidValueError.of(name, text, "Expected value to be either true or false")
    return lowered == "true"


def _parse_integer(name: str, text: str, trimmed: str, type_: ConfigType) -> int:
    limit = 1 << (_BITS[type_] - 1)
    # The length is bounded first: Python refuses to convert thousands of digits with an error of its own.
    if _INTEGER.fullmatch(trimmed) and len(trimmed) <= 64 and -limit <= (number := int(trimmed)) < limit:
        return number
    raise InvalidValueError.of(name, text, f"Not a number of type {type_.name}")


def render(value: Value) -> str | None:
    """Write a value as DescribeConfigs does; `None` stays `None`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _render_double(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return None if value is None else str(value)


def _render_double(value: float) -> str:
    """Write a double as Java does: plain from 0.001 to 10,000,000, otherwise digits and an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits)) - 1
    digits = digits.rstrip("0")
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{power}"


class Validator(Protocol):
    """What a key demands of a value beyond its type.

    Nobody compares or prints validators, and each method that attrs generates costs the start of a broker 0.2 ms: so
    they are made without.
    """

    def check(self, name: str, value: Value) -> None:
        """Accept a parsed value, or say what is wrong with it.

        Raises:
            InvalidValueError: The value is out of bounds.
        """
        ...

    def describe(self) -> str:
        """Say what is valid, for the reference page."""
        ...


@frozen(eq=False, repr=False)
class AtLeast:
    """A number not below `low`."""

    low: int | float

    def check(self, name: str, value: Value) -> None:
        """Refuse a smaller number. Not-a-number passes, as it does in Kafka."""
        if isinstance(value, int | float) and value < self.low:
            raise InvalidValueError.of(name, render(value), f"Value must be at least {self.low}")

    def describe(self) -> str:
        """Say it as Kafka's pages do."""
        return f"[{self.low},...]"


@frozen(eq=False, repr=False)
class Between:
    """A number from `low` to `high`, both included."""

    low: int | float
    high: int | float

    def check(self, name: str, value: Value) -> None:
        """Refuse a number outside."""
        if isinstance(value, int | float):
            if value < self.low:
                raise InvalidValueError.of(name, render(value), f"Value must be at least {self.low}")
            if value > self.high:
                raise InvalidValueError.of(name, render(value), f"Value must be no more than {self.high}")

    def describe(self) -> str:
        """Say it as Kafka's pages do."""
        return f"[{self.low},...,{self.high}]"


@frozen(eq=False, repr=False)
class BetweenOr:
    """A number from `low` to `high`, or one `special` number."""

    low: int
    high: int
    special: int

    def check(self, name: str, value: Value) -> None:
        """Refuse any other number."""
        if isinstance(value, int) and value != self.special and not self.low <= value <= self.high:
            why = f"Value must be between {self.low} and {self.high} or equal to {self.special}"
            raise InvalidValueError.of(name, value, why)

    def describe(self) -> str:
        """Say it as Kafka's pages do."""
        return f"[{self.low},...,{self.high}] or {self.special}"


@frozen(eq=False, repr=False)
class OneOf:
    """A text out of a few; of none where plugins offer the choices, and none is active that does."""

    choices: tuple[str, ...]

    def check(self, name: str, value: Value) -> None:
        """Refuse any other text."""
        if value is not None and value not in self.choices:
            known = ", ".join(self.choices) or "(nothing: no active plugin offers one)"
            raise InvalidValueError.of(name, value, f"String must be one of: {known}")

    def describe(self) -> str:
        """Say it as Kafka's pages do."""
        return f"[{', '.join(self.choices)}]"


@frozen(eq=False, repr=False)
class OneOfAnyCase:
    """A text out of a few, in capitals or not."""

    choices: tuple[str, ...]

    def check(self, name: str, value: Value) -> None:
        """Refuse any other text."""
        if value is not None and str(value).upper() not in {choice.upper() for choice in self.choices}:
            why = f"String must be one of (case insensitive): {', '.join(self.choices)}"
            raise InvalidValueError.of(name, value, why)

    def describe(self) -> str:
        """Say it as Kafka's pages do."""
        return f"(case insensitive) [{', '.join(self.choices)}]"


class NotEmpty:
    """A text that, where it is given, is not empty."""

    def check(self, name: str, value: Value) -> None:
        """Refuse the empty text."""
        if value == "":
            raise InvalidValueError.of(name, value, "String must be non-empty")

    def describe(self) -> str:
        """Say it as Kafka's pages do."""
        return "non-empty string"


@frozen(eq=False, repr=False)
class ListOf:
    """A list without repetition and without empty entries.

    Attributes:
        choices: What may stand in it; None means anything.
        may_be_empty: Whether a list of nothing is one.
        remedy: What is said after the choices to who asked for something else.
    """

    choices: tuple[str, ...] | None = None
    may_be_empty: bool = True
    remedy: str = ""

    def check(self, name: str, value: Value) -> None:
        """Refuse an empty list where it must have something, a repetition, an empty entry, an unknown entry."""
        if not isinstance(value, tuple):
            return
        if not value and not self.may_be_empty:
            valid = f"[{', '.join(self.choices)}]" if self.choices else "any non-empty value"
            raise InvalidValueError(f"Configuration '{name}' must not be empty. Valid values include: {valid}")
        if len(set(value)) != len(value):
            raise InvalidValueError(f"Configuration '{name}' values must not be duplicated.")
        for entry in value:
            if not entry:
                raise InvalidValueError(f"Configuration '{name}' values must not be empty.")
            if self.choices is not None and entry not in self.choices:
                why = f"String must be one of: {', '.join(self.choices)}{self.remedy}"
                raise InvalidValueError.of(name, entry, why)

    def describe(self) -> str:
        """Say it as Kafka's pages do."""
        return f"[{', '.join(self.choices)}]" if self.choices else ""


@frozen(eq=False, repr=False)
class Shaped:
    """A text, or a list whose every entry, matches a regular expression.

    Attributes:
        pattern: What matches as a whole.
        why: What is said of a text that does not: with `{name}` and `{value}`.
        shown: How the reference page describes it.
    """

    pattern: str
    why: str
    shown: str

    def check(self, name: str, value: Value) -> None:
        """Refuse the first entry of another shape."""
        entries = value if isinstance(value, tuple) else (value,)
        for entry in entries:
            if entry is not None and not re.fullmatch(self.pattern, str(entry)):
                raise InvalidValueError(self.why.format(name=name, value=entry))

    def describe(self) -> str:
        """Say it as Kafka's pages do."""
        return self.shown


@frozen(eq=False, repr=False)
class Durations:
    """A list of durations as people write them, at least one, each of `low_ms` to ten years.

    Ten years are what a record may wait if nobody says otherwise.
    """

    low_ms: int

    def ms_of(self, text: str) -> int | None:
        """Return how many milliseconds an entry is; None where it is none, or out of bounds."""
        from .durations import parse_duration  # a broker without such topics does not pay for it

        try:
            duration_ms = parse_duration(text)
        except ConfigError:
            return None
        return duration_ms if self.low_ms <= duration_ms <= TEN_YEARS_MS else None

    def check(self, name: str, value: Value) -> None:
        """Refuse an empty list, and the first entry that is no duration or out of bounds."""
        if not value or not isinstance(value, tuple):
            raise InvalidValueError(f"Configuration '{name}' must name a duration at least, such as 5s")
        for entry in value:
            if self.ms_of(entry) is None:
                bounds = f"from {self.low_ms} ms to ten years"
                why = f"{entry!r} is no duration {bounds}, such as 5s, 250ms, 1m30s"
                raise InvalidValueError(f"Configuration '{name}': {why}")

    def describe(self) -> str:
        """Say what is valid, for the reference page."""
        return "durations, such as 5s,1m,2h"


class ThrottledReplicas:
    """`*`, or a list of `partition:broker`."""

    def check(self, name: str, value: Value) -> None:
        """Refuse any other list."""
        if not isinstance(value, tuple) or not value or value == ("*",):
            return
        if not all(re.fullmatch(r"([0-9]+:[0-9]+)?", entry) for entry in value):
            shape = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
            why = f"{name} must be the literal '*' or a list of replicas in the following format: {shape}"
            raise InvalidValueError.of(name, f"[{', '.join(value)}]", why)

    def describe(self) -> str:
        """Say it as Kafka's pages do."""
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
