"""Shell: the real machine."""

from __future__ import annotations

import random
from pathlib import Path
from time import perf_counter
from typing import Final
from uuid import UUID

from ..clock import TrioClock
from ..files import OsFiles
from ..machine import Machine
from .network import SystemNetwork
from .processes import SystemProcesses
from .threads import SystemThreads

BOOT_ID_PATH: Final = Path("/proc/sys/kernel/random/boot_id")
"""Where Linux tells it."""


def boot_id(path: Path = BOOT_ID_PATH) -> UUID | None:
    """Return what is new whenever the machine's kernel begins; None where it is not told."""
    try:
        return UUID(path.read_text().strip())
    except (OSError, ValueError):
        return None


def real_machine() -> Machine:
    """Return the machine that this process runs on, for one trio run: its clock is that run's."""
    return Machine(
        clock=TrioClock(),
        timer=perf_counter,
        random=random.SystemRandom(),
        files=OsFiles(),
        threads=SystemThreads(),
        processes=SystemProcesses(),
        network=SystemNetwork(),
        boot_id=boot_id(),
    )
