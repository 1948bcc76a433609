"""Shell: tells the controller of log directories of its own node that failed: other brokers say it by heartbeats."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from uuid import UUID

    from .metadata_log import MetadataLog

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0


class OwnDirectories:
    """Life: made, `run` as a service of the broker that has the controller."""

    def __init__(self, metadata: MetadataLog, *, node_id: int, failed: Callable[[], Collection[UUID]]) -> None:
        """Look at the directories of this node; `failed` returns the ids of those that failed, all of them."""
        self._metadata = metadata
        self._node_id = node_id
        self._failed = failed

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Have other brokers lead what lay in a directory that failed, until cancelled."""
        task_status.started()
        while True:
            await trio.sleep(LOOK_S)
            broker = self._metadata.image.brokers.get(self._node_id)
            lost = set(self._failed()).intersection(broker.log_dirs if broker is not None else ())
            if broker is not None and lost:
                await self._tell(broker.broker_epoch, lost)

    async def _tell(self, broker_epoch: int, lost: Collection[UUID]) -> None:
        try:
            await self._metadata.submit(
                lambda controller, _now_ms: controller.own_directories_failed(self._node_id, broker_epoch, lost)
            )
        except KafkaError as error:
            log.error("log directories of this node failed, and the controller could not take note: %s", error)
