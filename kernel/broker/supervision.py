"""Shell: runs a long-running service and starts it again when it crashes, but not for ever: never half alive."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from ..errors import OdradekError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..machine.clock import Clock

log = logging.getLogger(__name__)

FAILURES_MAX: Final = 5
FAILURES_WINDOW_MS: Final = 60_000
PAUSE_S_MIN: Final = 0.1
PAUSE_S_MAX: Final = 10.0


class ServiceFailedError(OdradekError):
    """A service crashed again and again: the broker stops rather than go on without it."""


async def supervise(
    name: str,
    run: Callable[..., Awaitable[None]],
    clock: Clock,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run a service until it returns, is cancelled, or has crashed `FAILURES_MAX` times within a minute.

    Args:
        name: The service's, with its plugin's: for the log.
        run: `run(task_status=...)`.
        clock: Measures the minute.
        task_status: Told when the service stands for the first time.

    Raises:
        ServiceFailedError: It crashed too often.
    """
    failures: deque[int] = deque(maxlen=FAILURES_MAX)
    is_started = False
    while True:
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(run, name=name)
                if not is_started:
                    is_started = True
                    task_status.started()
        except* Exception as group:
            log.exception("service %s crashed", name)
            failures.append(clock.monotonic_ms())
            if len(failures) == FAILURES_MAX and failures[-1] - failures[0] <= FAILURES_WINDOW_MS:
                raise ServiceFailedError(f"service {name} crashed {FAILURES_MAX} times within a minute") from group
            if not is_started:
                raise ServiceFailedError(f"service {name} could not be started") from group
        else:
            return
        await trio.sleep(min(PAUSE_S_MAX, PAUSE_S_MIN * 2 ** len(failures)))
