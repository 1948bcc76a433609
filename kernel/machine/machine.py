"""Shell: the machine: all that a broker, a client or a plugin's service takes and that is not computation.

Whoever needs time, chance, files, threads, processes or sockets is given a `Machine`, or the part of one that it needs.
The real one is `system.machine.real_machine`; a simulator brings another, and everything above runs as it does here.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..classes import frozen
from .ids import RandomIds

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from uuid import UUID

    from .clock import Clock
    from .files import Files
    from .ids import IdSource
    from .network import Network
    from .processes import Processes
    from .threads import Threads


@frozen(kw_only=True)
class Machine:
    """What one host gives to those who live on it. `attrs.evolve` exchanges parts.

    Tasks sleep by the clock of their trio run: `clock` has to follow it, as `TrioClock` does.

    Attributes:
        clock: The wall clock, and the monotonic one of deadlines.
        timer: Monotonic, in seconds: for latencies, and how long a turn takes.
        random: The root of all chance.
        ids: New identifiers; made from `random` unless given.
        files: The file system.
        threads: Where what blocks, or computes for long, is done.
        processes: Processes for work; None where there are none: then it is done on a thread.
        network: Listening, connecting, waiting for sockets.
        boot_id: Of its kernel's life, which the page cache has, too; None where that is not known.
    """

    clock: Clock
    timer: Callable[[], float]
    random: random.Random
    files: Files
    threads: Threads
    processes: Processes | None
    network: Network
    ids: IdSource = attrs.field(default=attrs.Factory(lambda self: RandomIds(self.random), takes_self=True))
    boot_id: UUID | None = None
