"""Shell: what replicas tell, and whom it concerns: requests that wait, coordinators, plugins, the network."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..contracts.election import IsrChange
    from ..coordinator.runtimes import CoordinatorRuntimes
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..purgatory.purgatory import Purgatory
    from ..replication.replication import Replication
    from ..types import TopicIdPartition

log = logging.getLogger(__name__)


class ReplicaEvents:
    """Made before the replicas, which are given its methods; whom it tells is made after them, and attached.

    Attributes:
        coordinators: Attached with the requests' parts.
        replicas: Attached with the logs' parts.
        replication: Attached where other brokers hold replicas, too.
        want_turn: Has the network make a turn soon; attached by who runs it.
    """

    def __init__(
        self,
        produce_purgatory: Purgatory,
        fetch_purgatory: Purgatory,
        tell_plugins: Callable[[TopicIdPartition, int, int], None],
    ) -> None:
        """Take the requests that wait for replicas, and how plugins are told of a new leader."""
        self._produce_purgatory = produce_purgatory
        self._fetch_purgatory = fetch_purgatory
        self._tell_plugins = tell_plugins
        self.coordinators: CoordinatorRuntimes | None = None
        self.replicas: Replicas | None = None
        self.replication: Replication | None = None
        self.want_turn: Callable[[], None] = lambda: None

    def progressed(self, replicas: Collection[Replica]) -> None:
        """The watermarks of replicas moved, or they went offline. Hot: each turn comes by."""
        if self._produce_purgatory.watchers:
            self._produce_purgatory.check(replicas)
        if self._fetch_purgatory.watchers:
            self._fetch_purgatory.check(replicas)
        assert self.coordinators is not None, "replicas are opened when all parts are made"
        for replica in replicas:
            try:
                self.coordinators.progressed(replica)
            except Exception as error:  # a plugin's: its partition pays, nobody else
                self._fail(replica, error)

    def _fail(self, replica: Replica, error: Exception) -> None:
        if replica.offline_reason is None and self.replicas is not None:
            self.replicas.fail(replica, error)
        else:  # told that its replica is offline
            log.exception("the coordinator of %s failed", replica.partition)

    def staged(self) -> None:
        """Something is staged: the turn that writes it is to come soon."""
        self.want_turn()

    def ask_isr(self, replica: Replica, change: IsrChange) -> None:
        """An election asks for another in-sync set; a broker alone has nobody to take in."""
        if self.replication is not None:
            self.replication.ask_isr(replica, change)

    def role_changed(self, replica: Replica) -> None:
        """A vote has changed a replica's role, leader or epoch."""
        self.leader_changed(replica.partition, replica.leader_id, replica.leader_epoch)

    def leader_changed(self, partition: TopicIdPartition, leader_id: int, leader_epoch: int) -> None:
        """A replica's leader or epoch changed."""
        assert self.coordinators is not None, "replicas are opened when all parts are made"
        self.coordinators.leader_changed(partition)
        if self.replication is not None:
            self.replication.leader_changed(partition)
        self._tell_plugins(partition, leader_id, leader_epoch)
