"""Shell: puts the tier around replicas' logs where their topics want it, and takes it off again.

Owned by the reactor's task, as the logs are.

| a topic's `remote.storage.enable` | what becomes of its logs |
| --- | --- |
| is true when a log is opened | it is wrapped, before anything reads it |
| becomes true | the same, under the replica that serves; what it knew when it was tiered before is forgotten |
| becomes false | the log goes on with what is local; its leader has what is remote removed |
| its topic is deleted | what is remote is removed too |
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..contracts.tiering import TieredLog
from ..errors import StorageError
from ..plugin_system.offers import check_made

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..contracts.storage import PartitionLog
    from ..contracts.tiering import Tier, TierSettings
    from ..types import TopicIdPartition
    from .replica import Replica

log = logging.getLogger(__name__)


class Tiers:
    """The broker's tier, or none."""

    def __init__(self, tier: Tier | None) -> None:
        self._tier = tier

    def wrap(
        self, partition_log: PartitionLog, settings: TierSettings | None, *, is_new: bool = False
    ) -> TieredLog | None:
        """Return a log's wrapping, None where its topic wants none.

        Args:
            partition_log: The log.
            settings: What its topic wants.
            is_new: Whether it was served without a tier until now.

        Raises:
            StorageError: The topic is tiered and this broker is not: what is local is not the whole log.
        """
        if settings is None:
            return None
        if self._tier is None:
            raise StorageError(
                f"{partition_log.partition.topic_partition} has records in a remote store, and tiered storage is off: "
                "start with remote.log.storage.system.enable=true, or delete the topic"
            )
        wrapped = self._tier.wrap(partition_log, settings, is_new=is_new)
        check_made(wrapped, TieredLog, "a tiered log", self._tier)
        return wrapped

    def fit(self, replica: Replica, settings: TierSettings | None) -> None:
        """Have a replica's log be what its topic wants now; a tier that cannot remove what it has is logged, no more.

        Raises:
            StorageError: As `wrap`, or the log is offline.
        """
        tiered = replica.tiered_log
        if settings is not None and tiered is not None:
            tiered.reconfigure_tier(settings)
        elif settings is not None:
            # What is there may leave once it was sent: for that it has to be closed, with a snapshot at its end.
            replica.log.roll()
            replica.take_log(replica.log, self.wrap(replica.log, settings, is_new=True))
            replica.keep_producers_at_end()
        elif tiered is not None:
            replica.take_log(tiered.unwrap(), None)
            replica.producers.transactions.advance_log_start(replica.log.log_start_offset)
            self._tell(replica.partition, lambda tier: tier.switch_off(replica.partition))

    @staticmethod
    def give_up(tiered_log: TieredLog) -> None:
        """Have the tier forget a log that is about to be deleted; what is in the store is other brokers'.

        Whatever goes wrong is logged, and nothing else: the log may be offline or closed, and goes all the same.
        """
        try:
            tiered_log.unwrap()
        except StorageError as error:
            log.info("%s", error)
        except Exception:
            log.exception("what the tier keeps of %s is not removed", tiered_log.partition.topic_partition)

    def delete(self, partition: TopicIdPartition) -> None:
        """Have what a partition has in the store removed; a tier that fails is logged, and nothing else."""
        self._tell(partition, lambda tier: tier.delete(partition))

    def _tell(self, partition: TopicIdPartition, tell: Callable[[Tier], None]) -> None:
        """Tell the tier that what a partition has in the store is to be removed: the log goes its way if it fails."""
        if self._tier is not None:
            try:
                tell(self._tier)
            except Exception:
                log.exception("what %s has in the remote store is not removed", partition)
