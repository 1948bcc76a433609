"""Shell: tells the controller which log directories of its own node are cordoned; others say it by heartbeats."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ..errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from uuid import UUID

    from .metadata_log import MetadataLog

log = logging.getLogger(__name__)


class OwnCordons:
    """Life: made, `run` as a service of the broker that alone keeps the metadata. `changed` by its task."""

    def __init__(self, metadata: MetadataLog, *, node_id: int, cordoned: Callable[[], Collection[UUID] | None]) -> None:
        """Tell of this node; `cordoned` returns the ids of all that are, None where the metadata cannot hold it."""
        self._metadata = metadata
        self._node_id = node_id
        self._cordoned = cordoned
        self._is_wanted = trio.Event()

    def changed(self) -> None:
        """Look whether the controller knows what is cordoned by now."""
        self._is_wanted.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Tell what changes until cancelled. It has begun when the controller knows what is cordoned from the start."""
        await self._tell()
        task_status.started()
        while True:
            await self._is_wanted.wait()
            self._is_wanted = trio.Event()
            await self._tell()

    async def _tell(self) -> None:
        cordoned, broker = self._cordoned(), self._metadata.image.brokers.get(self._node_id)
        if cordoned is None or broker is None or set(cordoned) == set(broker.cordoned_log_dirs):
            return
        try:
            await self._metadata.submit(
                lambda controller, _now_ms: controller.own_directories_cordoned(
                    self._node_id, broker.broker_epoch, cordoned
                )
            )
        except KafkaError as error:
            log.error("log directories of this node are cordoned, and the controller could not take note: %s", error)
