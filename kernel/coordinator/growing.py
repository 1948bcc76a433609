"""Shell: has internal topics grow when brokers have come: on the node that has the controller."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..errors import KafkaError
from .replica_growth import growth

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ..metadata.controller_calls import ControllerCalls
    from ..metadata.image import MetadataImage
    from .internal_topics import WantedReplicas

log = logging.getLogger(__name__)

SETTLES_S: Final = 1
"""So long after a change others are waited for: brokers often come together."""
TIMEOUT_MS: Final = 30_000
RETRY_S: Final = 30


class InternalTopicGrowth:
    """Life: made, told of images, `run` as a service."""

    def __init__(
        self,
        calls: ControllerCalls,
        image: Callable[[], MetadataImage],
        wanted: Callable[[], Iterable[WantedReplicas]],
        is_controller: Callable[[], bool] = lambda: True,
        *,
        voted: Collection[str],
    ) -> None:
        """Look once the service runs.

        Args:
            calls: The way to the controller.
            image: Returns the newest metadata.
            wanted: Returns what internal topics shall have, by the configuration as it is now.
            is_controller: Returns whether this node has the controller now: otherwise another one looks.
            voted: The names of elections that are votes among the replicas.
        """
        self._calls = calls
        self._image = image
        self._wanted = wanted
        self._is_controller = is_controller
        self._voted = voted
        self._changed = trio.Event()
        self._changed.set()

    def image_changed(self) -> None:
        """Look again soon."""
        self._changed.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look after each change, until cancelled; what was asked for then stands."""
        task_status.started()
        while True:
            await self._changed.wait()
            await trio.sleep(SETTLES_S)
            self._changed = trio.Event()
            requests = growth(self._image(), self._wanted(), self._voted) if self._is_controller() else []
            try:
                for request in requests:
                    await self._calls.ask(request, TIMEOUT_MS)
            except KafkaError as error:
                log.warning("internal topics could not get their replicas, and will be looked at again: %s", error)
                self._changed.set()
                await trio.sleep(RETRY_S)
            else:
                if requests:
                    log.info("internal topics grow, as brokers have come")
