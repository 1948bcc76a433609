"""Shell: watches how busy the reactor is, keeps the last share for the metrics, and warns when it has little left.

One reactor does what Kafka's network threads and request handler threads do, so both of Kafka's idle metrics are its
one number: the share of time that it waited for sockets. Below 30 % a broker has no room for a peak.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NoReturn

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import NetworkFigures

log = logging.getLogger(__name__)

SAMPLE_PAUSE_S: Final = 5.0
IDLE_RATIO_MIN: Final = 0.3
SAMPLES_BEFORE_WARNING: Final = 6
"""Half a minute: a short burst is no news."""


class IdleMonitor:
    """Samples the network's statistics, whose idle share is that of the time since the sample before.

    Attributes:
        idle_ratio: Of the time since the sample before the last one, or since the start; None before the first.
    """

    def __init__(self, statistics: Callable[[], NetworkFigures | None]) -> None:
        """Make a monitor of what the network counts."""
        self.idle_ratio: float | None = None
        self._statistics = statistics
        self._served_s = self._busy_s = 0.0
        self._busy_samples = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        """Sample until cancelled."""
        task_status.started()
        while True:
            await trio.sleep(SAMPLE_PAUSE_S)
            self.sample()

    def sample(self) -> None:
        """Take one sample; warn once when the reactor has been busy for long, and tell when that is over."""
        now = self._statistics()
        if now is None:
            return
        served_s, busy_s = now.served_s - self._served_s, now.busy_s - self._busy_s
        self._served_s, self._busy_s = now.served_s, now.busy_s
        idle_ratio = self.idle_ratio = max(0.0, 1 - busy_s / served_s) if served_s > 0 else 1.0
        if idle_ratio < IDLE_RATIO_MIN:
            self._busy_samples += 1
            if self._busy_samples == SAMPLES_BEFORE_WARNING:
                log.warning(
                    "the reactor is busy: more load will make clients wait; larger batches or fewer connections help",
                    extra={"idle_percent": round(100 * idle_ratio)},
                )
            return
        if self._busy_samples >= SAMPLES_BEFORE_WARNING:
            log.warning("the reactor has room again", extra={"idle_percent": round(100 * idle_ratio)})
        self._busy_samples = 0
