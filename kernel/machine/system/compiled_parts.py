"""Shell: which compiled parts this installation lacks, and what a person reads of it.

Each has a twin in Python that does the same, slowly. They are left out where there was no compiler when the package was
built, with a warning of the build that pip does not show.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PARTS: Final[Mapping[str, str]] = {
    "records._kernel": "records",
    "records._runs": "compaction",
    "records._columns": "columns for Spark",
    "dispatch.handlers._repeated": "repeated requests",
    **({"network._pump": "the network's loop"} if sys.platform == "linux" else {}),
}
"""Module to what it does; as `setup.py` builds them. The last is for epoll."""


def missing_parts() -> list[str]:
    """Return what is done in Python here though it could be compiled; imports what is compiled."""
    missing = []
    for module, what in PARTS.items():
        try:
            import_module(f"odradek.kernel.{module}")
        except ImportError:
            missing.append(what)
    return missing


def told(missing: Sequence[str]) -> str:
    """Return the line that a person reads of them, empty where none is missing."""
    if not missing:
        return ""
    return (
        f"Not compiled: {', '.join(missing)}. Everything works, and is several times slower: there was no C compiler "
        "when it was installed. Install one (gcc, clang, MSVC), then Odradek anew with `pip install --force-reinstall`."
    )
