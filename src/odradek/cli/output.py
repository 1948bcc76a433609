"""Shell: what commands print: aligned columns, JSON, sizes and counts as people read them.

Columns are never cut and carry terminal codes only on a terminal (and not with `NO_COLOR`), so that `grep`, `awk` and
people see the same text.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_STEP: Final = 1000
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, tell: Callable[[str], None] | None = None
) -> None:
    """Print rows under the names of their columns; columns of numbers stand to the right.

    Args:
        columns: The names.
        rows: A cell for each column.
        tell: Takes the lines, if they are not for standard output; plain text then.
    """
    kept = [tuple(row) for row in rows]
    shown = [[cell_text(cell) for cell in row] for row in kept]
    widths = [max(len(text) for text in column) for column in zip(columns, *shown, strict=True)]
    right = [_are_numbers([row[number] for row in kept]) for number in range(len(columns))]
    for number, line in enumerate((columns, *shown)):
        cells = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        text = "  ".join(cells).rstrip()
        if tell is not None:
            tell(text)
        else:
            print(text if number else dim(text))


def moment_text(ms: Any) -> str:
    """Return epoch milliseconds as a date and time of UTC; what no calendar has as it is."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def _are_numbers(cells: Sequence[object]) -> bool:
    """Whether a column holds numbers, among which some may be unknown."""
    known = [cell for cell in cells if cell is not None]
    return bool(known) and all(isinstance(cell, int) and not isinstance(cell, bool) for cell in known)


def cell_text(cell: object) -> str:
    """Return a cell as text: nothing as a dash, lists between commas."""
    match cell:
        case None | "":
            return "-"
        case bool():
            return "yes" if cell else "no"
        case list() | tuple():
            return ",".join(map(str, cell)) or "-"
        case _:
            return str(cell)


def print_json(value: object) -> None:
    """Print a value as JSON, indented."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def has_colours() -> bool:
    """Whether terminal codes may be written to standard output."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def dim(text: str) -> str:
    """Return text that stands back, where the terminal can show it."""
    return f"{_DIM}{text}{_PLAIN}" if has_colours() else text


def size_text(size_bytes: float) -> str:
    """Return a size as a person reads it: `1.4 MB`, thousands as everywhere outside of memory chips."""
    units = iter(_UNITS)
    unit = next(units)
    while abs(size_bytes) >= _STEP and unit != _UNITS[-1]:
        size_bytes /= _STEP
        unit = next(units)
    return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.3g} {unit}"


def plural(count: int, noun: str) -> str:
    """Return `1 record`, `36,055 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
