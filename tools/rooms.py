"""Shell: the one list of the packages that the distribution holds, read off `src/odradek`.

Rooms that stand at the top of the checkout are links there (on Windows git may check a link out as a text file);
what uses a broker and is none stands there itself, in real folders.

| name | what it holds |
| --- | --- |
| `LINKED` | rooms at the top of the checkout: `kernel` |
| `REAL` | rooms in `src/odradek` itself |
| `FOLDERS` | where each room's source lies, below the checkout: `kernel`, `src/odradek/...` |
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
IMPORT_NAME: Final = ROOT / "src" / "odradek"

_ENTRIES: Final = sorted(
    entry for entry in IMPORT_NAME.iterdir() if not entry.suffix and not entry.name.startswith(("_", "."))
)
LINKED: Final = tuple(entry.name for entry in _ENTRIES if entry.is_symlink() or not entry.is_dir())
REAL: Final = tuple(entry.name for entry in _ENTRIES if entry.name not in LINKED)
FOLDERS: Final = (*LINKED, *(f"src/odradek/{name}" for name in REAL))


def path_of(folder: str) -> str:
    """Return where a folder of the checkout is below site-packages: `odradek/kernel` for `kernel`."""
    return folder.removeprefix("src/") if folder.startswith("src/") else f"odradek/{folder}"
