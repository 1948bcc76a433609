"""Pure core: numbers as a person reads them: three digits, a unit, thousands by their letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .figures import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .figures import Spread

NOT_KNOWN: Final = "-"

_STEP: Final = 1000
_LETTERS: Final = ("", "k", "M", "G", "T", "P")
_SHOWN_UNITS: Final = {
    Unit.RECORDS_PER_S: "/s",
    Unit.BYTES_PER_S: "B/s",
    Unit.MILLISECONDS: " ms",
    Unit.SECONDS: " s",
    Unit.MICROSECONDS: " µs",
    Unit.BYTES: "B",
    Unit.TIMES: "x",
    Unit.COUNT: "",
}
_SCALED: Final = frozenset({Unit.RECORDS_PER_S, Unit.BYTES_PER_S, Unit.BYTES})


def number_text(value: float) -> str:
    """Return a number with three digits that count, as plain as it can be."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    if magnitude >= 0.995:
        return f"{value:.2f}"
    return f"{value:.2g}"


def quantity_text(value: float, unit: Unit) -> str:
    """Return a value with its unit: `48.1k/s`, `3.52 MB/s`, `12.4 ms`, `40,500`."""
    suffix = _SHOWN_UNITS[unit]
    if unit is Unit.COUNT:
        return f"{value:,.0f}"
    if unit not in _SCALED:
        return number_text(value) + suffix
    divisor, letter = _scale(value)
    space = " " if suffix.startswith("B") else ""
    return f"{number_text(value / divisor)}{space}{letter}{suffix}"


def round_text(value: float, unit: Unit) -> str:
    """Return a value that is a round number with its unit: `5k/s`, `0.2 s`."""
    suffix = _SHOWN_UNITS[unit]
    divisor, letter = _scale(value) if unit in _SCALED else (1.0, "")
    space = " " if suffix.startswith("B") else ""
    return f"{float(f'{value / divisor:.3g}'):,g}{space}{letter}{suffix}"


def column_scale(spreads: Iterable[Spread | None], unit: Unit) -> tuple[float, str]:
    """Return what to divide all values of a column by, and the unit that they are then in, such as `MB/s`.

    The largest median of the column decides, so that the numbers in it can be compared as they stand.
    """
    medians = [spread.median for spread in spreads if spread is not None]
    suffix = _SHOWN_UNITS[unit].strip()
    if unit not in _SCALED:
        return 1.0, suffix
    divisor, letter = _scale(max(medians, default=0.0))
    return divisor, letter + suffix


def spread_text(spread: Spread | None, unit: Unit, divisor: float) -> str:
    """Return a median with its range, `48.1 (46.0-51.2)`, all divided; without a range where it shows as one number.

    Args:
        spread: None for what is not known.
        unit: What the values count.
        divisor: Of the column.
    """
    if spread is None:
        return NOT_KNOWN
    median, low, high = (
        f"{value:,.0f}" if unit is Unit.COUNT else number_text(value / divisor)
        for value in (spread.median, spread.low, spread.high)
    )
    return median if low == high else f"{median} ({low}-{high})"


def _scale(value: float) -> tuple[float, str]:
    """Return a power of a thousand that leaves up to three digits, and its letter."""
    power = 0
    while abs(value) / _STEP**power >= _STEP - 0.5 and power < len(_LETTERS) - 1:
        power += 1
    return float(_STEP**power), _LETTERS[power]
