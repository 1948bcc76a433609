"""Pure core: what can be said of a comparison in a few sentences: the largest differences that are none by chance.

Everything is said against the first combination that was measured, under the same fault: the baseline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from .figures import ALL
from .quantities import quantity_text

if TYPE_CHECKING:
    from .figures import Figure, Spread
    from .report import Report, Row

FINDINGS_MAX: Final = 6
OF_ONE_MAX: Final = 2
RATIO_MIN: Final = 1.15
"""A difference below is not worth a sentence, even if it is real."""

_TOLD: Final = (
    "produce_records",
    "read_bytes",
    "cold_read_bytes",
    "ack_p99",
    "end_to_end_p99",
    "unavailable_s",
    "p99_ms",
    "bytes_per_record",
    "cpu",
    "memory",
    "recovery",
    "disk",
    "store",
    "write_amplification",
    "read_amplification",
)


@attrs.frozen
class Finding:
    """A figure in which a combination differs from the baseline.

    Attributes:
        figure: Which.
        row: Whose.
        ratio: Its median, of the baseline's.
        text: A sentence.
    """

    figure: Figure
    row: Row
    ratio: float
    text: str


def is_better(figure: Figure, spread: Spread, baseline: Spread) -> bool | None:
    """Return whether a figure is better than the baseline's; None where they do not differ, or neither is better."""
    if figure.is_better_high is None or not spread.is_apart_from(baseline):
        return None
    return (spread.median > baseline.median) is figure.is_better_high


def findings(report: Report) -> list[Finding]:
    """Return the largest differences from the baseline, largest first: one a figure and fault, two a row."""
    found = [
        finding
        for row in report.measured
        if (baseline := report.baseline_of(row)) is not row
        for figure in ALL
        if figure.name in _TOLD and (finding := _finding(figure, row, baseline)) is not None
    ]
    found.sort(key=lambda finding: max(finding.ratio, 1 / finding.ratio), reverse=True)
    kept: list[Finding] = []
    for finding in found:
        fault = finding.row.combination.fault
        of_fault = [other for other in kept if other.row.combination.fault == fault]
        is_new = all(other.figure is not finding.figure for other in of_fault)
        if is_new and sum(other.row is finding.row for other in kept) < OF_ONE_MAX and len(kept) < FINDINGS_MAX:
            kept.append(finding)
    return kept


def _finding(figure: Figure, row: Row, baseline: Row) -> Finding | None:
    one, other = row.figures.get(figure.name), baseline.figures.get(figure.name)
    if one is None or other is None or not one.is_apart_from(other) or not one.median or not other.median:
        return None
    ratio = one.median / other.median
    if max(ratio, 1 / ratio) < RATIO_MIN:
        return None
    times = f"{ratio:.3g} times" if ratio > 1 else f"1/{1 / ratio:.3g} of"
    values = [quantity_text(spread.median, figure.unit) for spread in (one, other)]
    return Finding(
        figure,
        row,
        ratio,
        f"{row.combination.label}: {figure.words} {values[0]}, {times} the {values[1]} of {baseline.combination.label}",
    )
