"""Shell: what shards have computed beside the reactor's task, on threads of their own.

    reactor's task   begin(computation) ──> queue ──> computation.run() on a thread ──> computation.end() on that task

Who asks a plugin may wait for ever: what takes long is reported with the plugin's name, holds up nothing but what is
computed after it, and is left to its thread when the broker stops.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

import trio

from ..contracts.culprits import culprit_of_error, plugin_of
from ..contracts.signatures import module_of, place_of
from ..machine.threads import Workers
from .shard_timers import Computation

if TYPE_CHECKING:
    from ..machine.threads import Threads

log = logging.getLogger(__name__)

THREADS: Final = 2
"""How much is computed at once: all of it competes with the reactor for the interpreter."""
LONG_S: Final = 10.0
"""After how long it is reported."""


class Computing:
    """The queue and its threads. Owned by the broker's nursery; `begin` is called on the reactor's task.

    Attributes:
        busy_count: How much is waited for: begun, and not ended yet.
    """

    def __init__(self, threads: Threads) -> None:
        """Make it, with nothing to do."""
        self.busy_count = 0
        self._threads = threads
        self._send, self._receive = trio.open_memory_channel[Computation](math.inf)

    def begin(self, computation: Computation) -> None:
        """Have something computed, then ended on the reactor's task."""
        self.busy_count += 1
        self._send.send_nowait(computation)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Do what is begun, until cancelled; what is under way then is never ended: its shard is gone."""
        async with trio.open_nursery() as nursery:
            for _ in range(THREADS):
                nursery.start_soon(self._serve, name="coordinator computing")
            task_status.started()

    async def _serve(self) -> None:
        workers = Workers(self._threads, 1)
        async for computation in self._receive:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_report_if_long, computation, name="coordinator computing watched")
                is_computed = await _is_computed(workers, computation)
                nursery.cancel_scope.cancel()
            self.busy_count -= 1
            try:
                computation.end(is_computed=is_computed)
            except Exception:  # its shard is told by the log: nobody else waits for it
                log.exception("what was computed for %r cannot be taken", computation.key)


async def _is_computed(workers: Workers, computation: Computation) -> bool:
    try:
        await workers.run_sync(computation.run, abandon_on_cancel=True)
    except Exception as error:
        culprit = culprit_of_error(error)
        log.exception("%r cannot be computed", computation.key, extra=culprit._asdict() if culprit is not None else {})
        return False
    return True


async def _report_if_long(computation: Computation) -> None:
    await trio.sleep(LONG_S)
    asked = computation.asked
    plugin, place = (plugin_of(module_of(asked)), place_of(asked)) if asked is not None else ("", "")
    log.error(
        "plugin %r holds up %r: it has been computing for %.0f s (until it is mended, put it into `disable` of "
        "[plugins])",
        plugin,
        computation.key,
        LONG_S,
        extra={"place": place},
    )
