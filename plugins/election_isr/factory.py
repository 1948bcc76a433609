"""Pure core: what this plugin offers under the name `isr`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .choosing import choose_leader, initial_state
from .machine import IsrElection

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from odradek.kernel.api import Election, ElectionContext, ElectionReason, PartitionState


class IsrElectionFactory:
    """Makes elections for replicas, and chooses leaders for the controller. Stateless."""

    def new_election(self, context: ElectionContext) -> Election:
        """See `ElectionFactory.new_election`."""
        return IsrElection(context)

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        """See `ElectionFactory.choose_leader`."""
        return choose_leader(state, live_brokers, reason)

    def initial_state(self, replicas: Sequence[int], live_brokers: Collection[int]) -> PartitionState:
        """See `ElectionFactory.initial_state`."""
        return initial_state(replicas, live_brokers)
