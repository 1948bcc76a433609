"""Shell: watches how busy the reactor is, keeps the last sample for the metrics, and warns when it has little left.

One reactor does what Kafka's network threads and request handler threads do, so both of Kafka's idle metrics are its
one number: the share of time that it waited for sockets. Below 30 % a broker has no room for a peak.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NoReturn

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..network.statistics import NetworkStatistics

log = logging.getLogger(__name__)

SAMPLE_PAUSE_S: Final = 5.0
IDLE_RATIO_MIN: Final = 0.3
SAMPLES_BEFORE_WARNING: Final = 6
"""Half a minute: a short burst is no news."""


class IdleMonitor:
    """Samples the network's statistics, whose idle share is that of the time since the sample before.

    Attributes:
        last: The last sample, None before the first.
    """

    def __init__(self, statistics: Callable[[], NetworkStatistics | None]) -> None:
        """Make a monitor; `statistics` is to be called by nobody else, as each call begins a new measure."""
        self.last: NetworkStatistics | None = None
        self._statistics = statistics
        self._busy_samples = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        """Sample until cancelled."""
        task_status.started()
        while True:
            await trio.sleep(SAMPLE_PAUSE_S)
            self.sample()

    def sample(self) -> None:
        """Take one sample; warn once when the reactor has been busy for long, and tell when that is over."""
        self.last = self._statistics()
        if self.last is None:
            return
        idle_ratio = self.last.idle_ratio
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
