"""Shell: the clockwork that drives a timing wheel: sleeps until something is due, expires it, sleeps again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

import trio

if TYPE_CHECKING:
    from ..machine.clock import Clock
    from .timing_wheel import TimingWheel

TURN_SIZE: Final = 256
"""Timers expired before other tasks get their turn: about 1 ms of fetches that are answered with nothing."""


async def run(
    wheel: TimingWheel, clock: Clock, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> NoReturn:
    """Advance the wheel by the clock's monotonic time, for ever.

    It sleeps until the wheel's next expiry, and is woken when a timer comes that is due earlier. The wheel stays with
    the task that adds timers: this task touches it between two awaits only. Cancelled, it stops at once; timers stay in
    the wheel.

    Args:
        wheel: Whose entries are expired.
        clock: Its monotonic clock must run as fast as trio's.
        task_status: Started before the first sleep.
    """
    task_status.started()
    while True:
        expired = wheel.advance(clock.monotonic_ms(), TURN_SIZE)
        for entry in expired:
            entry.expire()
        if len(expired) == TURN_SIZE:
            await trio.lowlevel.checkpoint()
            continue
        next_expiry_ms = wheel.next_expiry_ms()
        woken = trio.Event()
        wheel.set_alarm(next_expiry_ms, woken.set)
        if next_expiry_ms is None:
            await woken.wait()
        else:
            # A clock in whole milliseconds may be read just before the millisecond turns: one more round then.
            with trio.move_on_after(max(0, next_expiry_ms - clock.monotonic_ms()) / 1000):
                await woken.wait()
