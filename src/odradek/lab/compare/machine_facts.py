"""Shell: facts about the machine that a reader of figures wants to know."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import trio

from .figures import Unit
from .quantities import NOT_KNOWN, quantity_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.plugin_system.manager import LoadedPlugin

PROC: Final = Path("/proc")
"""Where Linux tells of itself."""

_KIBIBYTE: Final = 1024


def machine_facts(folder: Path, plugins: Sequence[LoadedPlugin]) -> dict[str, str]:
    """Return facts by what they are about, in the order in which they are shown.

    Args:
        folder: Where brokers keep their data.
        plugins: Those that are active.
    """
    from odradek import __version__

    shippers = sorted({plugin.found.distribution for plugin in plugins if plugin.found.distribution})
    return {
        "processor": f"{_processor()}, {os.cpu_count() or NOT_KNOWN} cores",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "file system": _file_system(folder),
        "load when it began": _load(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}, trio {trio.__version__}",
        "odradek": __version__,
        "plugins from": ", ".join(shippers) or NOT_KNOWN,
    }


def _processor() -> str:
    try:
        lines = (PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _memory() -> str:
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
    except OSError:
        return NOT_KNOWN
    sizes = (line.split()[1] for line in lines if line.startswith("MemTotal:"))
    size = next(sizes, "")
    return quantity_text(int(size) * _KIBIBYTE, Unit.BYTES) if size.isdigit() else NOT_KNOWN


def _file_system(folder: Path) -> str:
    """Return the kind of the file system that a folder is on: the longest mount point that it is below."""
    try:
        lines = (PROC / "mounts").read_text().splitlines()
    except OSError:
        return NOT_KNOWN
    mounts = [Mount(fields[1], fields[2]) for line in lines if len(fields := line.split()) > 2]
    real = folder.resolve()
    above = [mount for mount in mounts if real.is_relative_to(mount.point)]
    return max(above, key=lambda mount: len(mount.point)).kind if above else NOT_KNOWN


@attrs.frozen
class Mount:
    """Where a file system of which kind is."""

    point: str
    kind: str


def _load() -> str:
    if not hasattr(os, "getloadavg"):
        return NOT_KNOWN
    return f"{os.getloadavg()[0]:.2f} processes wanted a core"
