"""Pure core: plots as SVG, to stand inside a page whose style sheet colours them.

One form serves all figures: rows of lanes. A lane shows the median (a bar from zero and a tick, or a dot where the
scale is logarithmic), the range from the smallest to the largest round, and each round as a small dot.

    segment · delete
    p50  ├─•─┤                       2.08 ms
    p99        ├────────•────┤       21.5 ms

A row's label stands above its lanes, so that a plot is as narrow as a telephone and its letters are as large as the
page's.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

import attrs

from .figures import Unit
from .quantities import NOT_KNOWN, quantity_text, round_text, spread_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .figures import Spread

COLOURS_COUNT: Final = 8

_WIDTH: Final = 370
_LETTER: Final = 6.7
"""How wide a letter of the labels is, about."""
_LABEL: Final = 18
"""How high a label is."""
_LEFT: Final = 10
_TICK_WIDTH: Final = 46
"""How far apart the words below the axis are at least."""
_LANE_NAME_WIDTH: Final = 62
_VALUE_WIDTH: Final = 84
_LANE: Final = 17
_ROW_GAP: Final = 10
_TOP: Final = 6
_AXIS: Final = 26
_TICKS: Final = 5
_NOTHING: Final = 1e-12
"""No figure is smaller, but zero."""
_DECADES_OF_STEPS: Final = 2.2
_DECADES_MAX: Final = 1e9
"""How far the ends of a logarithmic scale may be apart: what is smaller stands at its left edge."""
_STEPS: Final = (1.0, 2.0, 5.0, 10.0)


@attrs.frozen
class Lane:
    """One figure of one combination.

    Attributes:
        name: Which of the figures in the row; empty where there is one.
        spread: What the rounds say; None for what is not known.
    """

    name: str
    spread: Spread | None


@attrs.frozen
class PlotRow:
    """One combination.

    Attributes:
        label: Its name.
        colour: A number; rows that have something in common share it.
        lanes: Its figures.
    """

    label: str
    colour: int
    lanes: Sequence[Lane]


@attrs.frozen
class _Axis:
    """Where values lie between `left` and `right`."""

    left: float
    right: float
    low: float
    high: float
    is_log: bool

    def place(self, value: float) -> float:
        """Return the place of a value, in pixels; values outside stand at the edge."""
        if self.is_log:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.left + (self.right - self.left) * min(max(share, 0.0), 1.0)

    @property
    def ticks(self) -> list[float]:
        """Where lines help to read values."""
        return _log_ticks(self.low, self.high) if self.is_log else _linear_ticks(self.high)


def plot(title: str, rows: Sequence[PlotRow], unit: Unit, *, is_log: bool = False) -> str:
    """Return a plot as an `svg` element.

    Args:
        title: What it shows, for those who do not see it.
        rows: From above.
        unit: What the values count.
        is_log: Whether the scale is logarithmic; zero is then at its left edge.
    """
    values = [value for row in rows for lane in row.lanes if lane.spread for value in lane.spread.values]
    has_names = any(lane.name for row in rows for lane in row.lanes)
    axis = _axis(values, _LANE_NAME_WIDTH if has_names else _LEFT, _WIDTH - _VALUE_WIDTH, is_log=is_log)
    body: list[str] = []
    top = float(_TOP)
    for row in rows:
        body.append(_text(0, top + _LABEL - 5, _cut(row.label), "label", title=row.label))
        top += _LABEL
        for number, lane in enumerate(row.lanes):
            body.append(_lane(row, lane, axis, top + _LANE * (number + 0.5), unit))
        top += _LANE * len(row.lanes) + _ROW_GAP
    bottom = top - _ROW_GAP / 2
    return "".join(
        [
            f'<svg class="plot" viewBox="0 0 {_WIDTH} {bottom + _AXIS:.0f}" role="img" aria-label="{escape(title)}">',
            *_grid(axis, bottom, unit),
            *body,
            "</svg>",
        ]
    )


def _axis(values: Sequence[float], left: float, right: float, *, is_log: bool) -> _Axis:
    if is_log:
        positive = [value for value in values if value > _NOTHING] or [1.0]
        low, high = _down(max(min(positive), max(positive) / _DECADES_MAX)), _up(max(positive))
        return _Axis(left, right, low, high if high > low else low * 10, is_log=True)
    top = max((value for value in values if value > _NOTHING), default=1.0)
    return _Axis(left, right, 0.0, _linear_ticks(top)[-1], is_log=False)


def _lane(row: PlotRow, lane: Lane, axis: _Axis, y: float, unit: Unit) -> str:
    parts = [_text(axis.left - 8, y + 4, lane.name, "lane", anchor="end")] if lane.name else []
    right = _WIDTH - _VALUE_WIDTH + 10
    spread = lane.spread
    if spread is None:
        return "".join([*parts, _text(right, y + 4, NOT_KNOWN, "unknown")])
    median, low, high = (axis.place(value) for value in (spread.median, spread.low, spread.high))
    told = f"{row.label} {lane.name}".strip()
    parts.append(f'<g class="c{row.colour % COLOURS_COUNT}"><title>{escape(_told(told, spread, unit))}</title>')
    if not axis.is_log:
        width = max(median - axis.left, 0.0)
        parts.append(f'<rect class="bar" x="{axis.left:.1f}" y="{y - 5:.1f}" width="{width:.1f}" height="10" rx="2"/>')
    parts.append(
        f'<path class="range" d="M{low:.1f} {y - 4:.1f}v8M{low:.1f} {y:.1f}H{high:.1f}M{high:.1f} {y - 4:.1f}v8"/>'
    )
    parts += [f'<circle class="round" cx="{axis.place(value):.1f}" cy="{y:.1f}" r="2"/>' for value in spread.values]
    mark = (
        f'<circle class="median" cx="{median:.1f}" cy="{y:.1f}" r="4"/>'
        if axis.is_log
        else f'<rect class="median" x="{median - 1.5:.1f}" y="{y - 6:.1f}" width="3" height="12" rx="1"/>'
    )
    return "".join([*parts, mark, "</g>", _text(right, y + 4, quantity_text(spread.median, unit), "value")])


def _told(label: str, spread: Spread, unit: Unit) -> str:
    """Return what is shown when somebody points at a lane."""
    rounds = ", ".join(quantity_text(value, unit) for value in spread.values)
    return f"{label}: {spread_text(spread, unit, 1.0)} {unit.value}; rounds: {rounds}"


def _grid(axis: _Axis, bottom: float, unit: Unit) -> list[str]:
    lines = []
    told = -math.inf
    for tick in axis.ticks:
        x = axis.place(tick)
        lines.append(f'<path class="grid" d="M{x:.1f} 0V{bottom:.1f}"/>')
        if x - told >= _TICK_WIDTH:
            lines.append(_text(x, bottom + 16, round_text(tick, unit), "tick", anchor="middle"))
            told = x
    return lines


def _text(x: float, y: float, text: str, style: str, *, anchor: str = "start", title: str = "") -> str:
    told = f"<title>{escape(title)}</title>" if title != "" and title != text else ""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{told}{escape(text)}</text>'


def _cut(label: str) -> str:
    """Return a label that fits, cut in its middle if need be: both its ends may tell it from others."""
    fits = int(_WIDTH / _LETTER)
    if len(label) <= fits:
        return label
    half = (fits - 1) // 2
    return f"{label[:half]}…{label[-half:]}"


def _linear_ticks(top: float) -> list[float]:
    """Return about five round numbers from 0 to `top` or just above."""
    raw = top / _TICKS
    power = 10 ** math.floor(math.log10(raw))
    step = next(step for step in _STEPS if step * power >= raw * (1 - 1e-9)) * power
    return [number * step for number in range(math.ceil(top / step * (1 - 1e-9)) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten, with their doubles and halves where there are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = _STEPS[:1] if math.log10(high / low) > _DECADES_OF_STEPS else _STEPS[:3]
    ticks = [factor * 10.0**decade for decade in decades for factor in factors]
    return [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def _down(value: float) -> float:
    """Return the next 1, 2 or 5 of a power of ten below."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(step for step in _STEPS[:3] if step * power <= value * (1 + 1e-9)) * power


def _up(value: float) -> float:
    """Return the next 1, 2 or 5 of a power of ten above."""
    power = 10.0 ** math.floor(math.log10(value))
    return min(step for step in _STEPS if step * power >= value * (1 - 1e-9)) * power
