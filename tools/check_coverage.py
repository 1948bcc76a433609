"""Shell: print the combined coverage and fail below the floors: one for everything, a higher one for pure cores.

A core has no excuse: it needs no disk, clock or socket to be tested, so its floor is higher.

    python -m tools.check_coverage        # after `coverage run -m pytest` and `coverage combine`
"""

from __future__ import annotations

import ast
import io
import sys
from pathlib import Path
from typing import Final

import coverage

from tools.rooms import LINKED, REAL

FLOOR_PERCENT: Final = 95.0
CORES_FLOOR_PERCENT: Final = 98.0


def pure_cores() -> list[str]:
    """Return the modules whose docstring begins with "Pure core", as paths below the checkout."""
    sources = Path("src/odradek")
    modules = (path for room in (*LINKED, *REAL) for path in sorted((sources / room).rglob("*.py")))
    return [
        str(path) for path in modules if (ast.get_docstring(ast.parse(path.read_text())) or "").startswith("Pure core")
    ]


def main() -> int:
    """Print the report; return 1 when a floor is not held."""
    measured = coverage.Coverage()
    measured.load()
    everything = measured.report()
    cores = measured.report(include=pure_cores(), file=io.StringIO())
    status = 0
    for name, percent, floor in (("everything", everything, FLOOR_PERCENT), ("cores", cores, CORES_FLOOR_PERCENT)):
        verdict = "holds" if percent >= floor else "BROKEN"
        status |= percent < floor
        print(f"coverage of {name}: {percent:.2f} %, floor {floor:.0f} %: {verdict}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
