"""Shell: fences brokers whose sessions are over."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ..machine.clock import Clock
    from .metadata_log import MetadataLog
    from .rules import ControllerRules

log = logging.getLogger(__name__)

LOOKS_MS_MAX: Final = 1000
"""So often the sessions are looked at, at least: who wakes much later than that stood still himself."""
LATE_MS_MIN: Final = 500


class SessionWatch:
    """Life: made, `run` as a service of the broker that has the controller."""

    def __init__(self, metadata: MetadataLog, rules: ControllerRules, clock: Clock) -> None:
        """Watch the sessions of the brokers of a metadata log, which is loaded; not of one that is the controller's."""
        self._metadata = metadata
        self._sessions = rules.sessions
        self._clock = clock
        others = [broker for broker in metadata.image.brokers.values() if not rules.is_own(broker.broker_id)]
        self._sessions.begin(broker for broker in others if not broker.is_fenced)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Fence whoever is not heard of, until cancelled."""
        task_status.started()
        while True:
            pause_ms = min(self._sessions.until_next_ms() + 1, LOOKS_MS_MAX)
            due_ms = self._clock.monotonic_ms() + pause_ms
            await trio.sleep(pause_ms / 1000)
            late_ms = self._clock.monotonic_ms() - due_ms
            if late_ms >= LATE_MS_MIN:
                # This process stood still: the heartbeats of that time are still unread.
                self._sessions.extend(late_ms)
            elif self._sessions.overdue(self._metadata.image):
                await self._fence()
            self._sessions.drop_over(self._metadata.image)

    async def _fence(self) -> None:
        try:
            while overdue := await self._metadata.submit(lambda controller, _now_ms: controller.fence_overdue()):
                log.warning("broker %d was not heard of for broker.session.timeout.ms, and is fenced", overdue[0])
        except KafkaError as error:
            log.log(level_of(error), "brokers that are not heard of could not be fenced: %s", error)


def level_of(error: KafkaError) -> int:
    """Return how loud it is that a broker could not be fenced: the next controller does what this one no more can."""
    return logging.INFO if error.code is ErrorCode.NOT_CONTROLLER else logging.ERROR
