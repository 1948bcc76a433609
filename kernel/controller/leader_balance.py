"""Shell: leaders go back to the preferred replicas from time to time (`auto.leader.rebalance.enable`).

*Source:* Kafka's `ReplicationControlManager.maybeBalancePartitionLeaders`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ..errors import KafkaError

if TYPE_CHECKING:
    from .metadata_log import MetadataLog

log = logging.getLogger(__name__)


class LeaderBalance:
    """Life: made, `run` as a service of the broker that has the controller."""

    def __init__(self, metadata: MetadataLog, interval_s: float) -> None:
        """Balance the leaders of a metadata log's partitions, once in each interval."""
        self._metadata = metadata
        self._interval_s = interval_s

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Elect preferred leaders whenever the interval is over, until cancelled."""
        task_status.started()
        while True:
            await trio.sleep(self._interval_s)
            if len(self._metadata.image.brokers) > 1:
                await self._balance()

    async def _balance(self) -> None:
        try:
            while await self._metadata.submit(lambda controller, _now_ms: controller.balance_leaders()):
                log.info("leaders went back to preferred replicas; there are more")
        except KafkaError as error:
            log.warning("leaders could not go back to preferred replicas: %s", error)
