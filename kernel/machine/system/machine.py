"""Shell: the real machine."""

from __future__ import annotations

import random
from time import perf_counter

from ..clock import TrioClock
from ..files import OsFiles
from ..machine import Machine
from .network import SystemNetwork
from .processes import SystemProcesses
from .threads import SystemThreads


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
    )
