"""Shell: names the plugin that holds the broker up: everything is served by one task, so what blocks stops it all.

A thread asks trio's run for a sign of life, and where none comes in time it looks at what the run is doing:

    thread   ── sign of life? ──>  trio's run        once a second, by `run_sync_soon`: nothing on the hot path
             <── here ───────────  or nothing for `LIMIT_S`:  whose code is it in? the same call still, a little later?

A broker that is merely busy, or starved of its processor, is in no plugin's call for long, and is not reported.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..contracts.culprits import culprit_of_stack

if TYPE_CHECKING:
    from types import FrameType

    from ..contracts.culprits import Culprit
    from ..machine.threads import Silence, Threads

log = logging.getLogger(__name__)

PAUSE_S: Final = 1.0
LIMIT_S: Final = 1.0
SECOND_LOOK_S: Final = 0.25


async def watch_hold_ups(threads: Threads, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Watch the run that this belongs to until cancelled."""
    task_status.started()
    await threads.watch_run(_look, pause_s=PAUSE_S, limit_s=LIMIT_S)


def _look(silence: Silence) -> None:
    """Look twice, as a single look may fall into any short call; report a plugin that is in the same one still."""
    first = _outermost_of_plugin(silence.frame())
    if first is None or silence.wait(SECOND_LOOK_S):
        return
    frame = silence.frame()
    culprit = culprit_of_stack(frame)
    if culprit is not None and _outermost_of_plugin(frame) is first:
        report(culprit)


def report(culprit: Culprit) -> None:
    """Say who holds the broker up, where, and what its author should do."""
    log.error(
        "plugin %r holds the broker up: nobody has been served for %.1f s; what waits belongs in a DiskWork, "
        "a service or a thread of `broker.machine` (until then, put it into `disable` of [plugins])",
        culprit.plugin,
        LIMIT_S + SECOND_LOOK_S,
        extra={"place": culprit.place},
    )


def _outermost_of_plugin(frame: FrameType | None) -> FrameType | None:
    """Return the frame by which the kernel called a plugin; the same object as long as that call lasts."""
    found = None
    while frame is not None:
        if culprit_of_stack(frame) is not None:
            found = frame
        frame = frame.f_back
    return found
