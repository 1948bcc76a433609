"""Pure core: what this plugin offers under the name `quorum`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import PartitionState

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from odradek.kernel.api import Election, ElectionContext, ElectionReason


class QuorumElectionFactory:
    """Makes elections for replicas, which choose among themselves: the controller is told, not asked. Stateless."""

    changes_voters: bool = True

    def new_election(self, context: ElectionContext) -> Election:
        """See `ElectionFactory.new_election`.

        Raises:
            CorruptionError: What the replica's former life left cannot be understood.
        """
        from .machine import QuorumElection  # a broker without voters starts without it

        return QuorumElection(context)

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        """See `ElectionFactory.choose_leader`: nobody, whatever the reason."""
        del state, live_brokers, reason
        return None

    def initial_state(self, replicas: Sequence[int], live_brokers: Collection[int]) -> PartitionState:
        """See `ElectionFactory.initial_state`: all replicas vote, and nobody leads before they did."""
        isr = tuple(broker for broker in replicas if broker in live_brokers)
        return PartitionState(leader=-1, leader_epoch=0, partition_epoch=0, replicas=tuple(replicas), isr=isr)
