"""Shell: gives replicas whose topic got `odradek.delay.enable` while they served what they need to deliver.

    the key is set ──> the stage is there at once: from now on records wait
                   └─> in its turn: the log is read into a ledger, in slices, while it grows
                                                       └─> what is due is delivered

What waits is a function of the log, so nothing is lost, or told twice, by whatever comes meanwhile: what was appended
is read at the end, and a log that was cut, or is another one now, is read again. Until then retention deletes nothing.
"""

from __future__ import annotations

import logging
from itertools import repeat
from typing import TYPE_CHECKING, Final

import trio

from ..errors import StorageError
from ..machine.turnstile import SLICE_STEPS, run_in_slices
from .delay_recovery import read_delays_in_steps, replay_delays_in_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..delay.ledger import DelayLedger
    from .replica import Replica
    from .replicas import Replicas

log = logging.getLogger(__name__)

AGAIN_S: Final = 1.0
AGAIN_S_MAX: Final = 64.0
"""When a log is read again that could not be read, or was not served: later and later, where it is no other."""


class DelayBeginning:
    """What a replica has until it has a ledger. Owned by the replica, on the reactor's task.

    Attributes:
        ledger: What is filled.
        on_filled: Called with the replica then.
        was_cut: The log was truncated since it was last read from its begin.
    """

    __slots__ = ("ledger", "on_filled", "was_cut")

    def __init__(self, ledger: DelayLedger, on_filled: Callable[[Replica], None]) -> None:
        self.ledger = ledger
        self.on_filled = on_filled
        self.was_cut = False


class DelayBeginnings:
    """A task of the delivery's; works between turns of the reactor, on the same thread."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._waiting: list[Replica] = []
        self._has_work = trio.Event()

    def ask(self, replica: Replica) -> None:
        """Fill the ledger that a replica has begun with, in its turn."""
        self._waiting.append(replica)
        self._has_work.set()

    async def run(self) -> None:
        """Fill them until cancelled: the next start does what was not done."""
        again: list[Replica] = []
        pause_s = AGAIN_S
        while True:
            with trio.move_on_after(pause_s if again else float("inf")):
                await self._has_work.wait()
            self._has_work = trio.Event()
            waiting, self._waiting = [*again, *self._waiting], []
            again = [replica for replica in waiting if not await self.fill(replica)]
            pause_s = min(2 * pause_s, AGAIN_S_MAX) if again == waiting else AGAIN_S

    async def fill(self, replica: Replica) -> bool:
        """Fill a replica's ledger; return False when it is to be tried again."""
        partition, beginning = replica.partition, replica.delay_beginning
        if beginning is None or self._replicas.find(partition.topic, partition.partition) is not replica:
            return True  # deleted, or replaced by one that was opened with its ledger
        try:
            is_filled = await run_in_slices(fill_in_steps(replica, beginning))
        except StorageError as error:  # it is served meanwhile, and may be readable later
            log.error("%s: it cannot be read what waits, and nothing is delivered; tried again: %s", partition, error)
            return False
        except Exception:  # a plugin's, or a damaged log's
            log.exception("%s: it cannot be read what waits, and nothing is delivered; tried again", partition)
            return False
        if is_filled:
            beginning.on_filled(replica)
        return is_filled


def fill_in_steps(replica: Replica, beginning: DelayBeginning) -> Generator[None, None, bool]:
    """Read a log into a ledger while it may grow; then the replica has it.

    Returns:
        False when the log was cut, exchanged, or not served meanwhile: it is to be read again.

    Raises:
        StorageError: It cannot be read.
    """
    ledger, log_read = beginning.ledger, replica.local_log
    beginning.was_cut = False
    end_offset: int | None = None
    while not beginning.was_cut and replica.local_log is log_read and replica.offline_reason is None:
        known_offset = end_offset
        steps = (
            read_delays_in_steps(log_read, ledger)
            if known_offset is None
            else replay_delays_in_steps(log_read, ledger, known_offset)
        )
        end_offset = yield from _while_same(steps, replica, beginning)
        if end_offset is None:
            return False
        if end_offset != known_offset:
            continue
        if not replica.is_dirty:
            ledger.start_advanced(log_read.log_start_offset)
            replica.delays, replica.delay_beginning = ledger, None
            return True
        yield from repeat(None, SLICE_STEPS)  # what is staged is read once it is written, which is another's turn
    return False


def _while_same(
    steps: Generator[None, None, int], replica: Replica, beginning: DelayBeginning
) -> Generator[None, None, int | None]:
    """Run steps to their end, and return what they return; None when the log is not the same any more."""
    log_read = replica.local_log
    while not beginning.was_cut and replica.local_log is log_read and replica.offline_reason is None:
        try:
            next(steps)
        except StopIteration as end:
            found: int = end.value
            return found
        yield
    steps.close()
    return None
