"""Pure core: the controller that the ensemble of the election kit has: who is fenced, who leads, who is in sync.

It keeps the rules that elections may rely on (KIP-966, KIP-903):

* who is fenced leaves the in-sync set; below `min.insync.replicas` whoever leaves it stays *eligible*, as nothing is
  committed without him from then on;
* whose machine lost its power is neither in sync nor eligible when it comes back;
* the in-sync set changes as its leader asks, in the state that the leader knows, for processes that live.

Where replicas choose among themselves it decides nothing, and only tells who is there.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.contracts.election import ElectionReason, IsrChangeEnded, is_among_replicas
from odradek.kernel.errors import ErrorCode

from .election_base import Broker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.contracts.election import ElectionFactory, IsrChange, PartitionState


@attrs.frozen
class Image:
    """The metadata as it was committed at some time: what a broker knows of it may be old."""

    state: PartitionState
    brokers: Mapping[int, Broker]


class KitController:
    """Decides about one partition. Owned by an ensemble.

    Attributes:
        image: What is committed now.
    """

    def __init__(self, factory: ElectionFactory, replicas: Sequence[int], min_isr: int) -> None:
        self._factory = factory
        self._min_isr = min_isr
        self._epochs = 0
        self._chooses = not is_among_replicas(factory)
        brokers = {each: Broker(self._next_epoch()) for each in replicas}
        self.image = Image(factory.initial_state(replicas, replicas), brokers)

    @property
    def chooses(self) -> bool:
        """Whether leaders are chosen here."""
        return self._chooses

    @property
    def state(self) -> PartitionState:
        """The partition, as it is committed now."""
        return self.image.state

    def _next_epoch(self) -> int:
        self._epochs += 1
        return self._epochs

    def fence(self, broker_id: int) -> None:
        """Take note that a broker is not heard of any more."""
        known = self.image.brokers[broker_id]
        self._put_broker(broker_id, Broker(known.broker_epoch, is_fenced=True, is_live=False))
        self._put_in_sync([each for each in self.state.isr if each != broker_id])

    def register(self, broker_id: int, *, has_lost: bool) -> int:
        """Take a new process of a broker; return its epoch.

        Args:
            broker_id: Whose.
            has_lost: Whether it may have lost the end of its log.
        """
        if not self.image.brokers[broker_id].is_fenced:
            self.fence(broker_id)
        if has_lost and self._chooses:
            state = self.state
            self._put(
                attrs.evolve(
                    state,
                    isr=tuple(each for each in state.isr if each != broker_id),
                    eligible_leader_replicas=tuple(b for b in state.eligible_leader_replicas if b != broker_id),
                )
            )
        epoch = self._next_epoch()
        self._put_broker(broker_id, Broker(epoch))
        self._elect()
        return epoch

    def change(self, asked: IsrChange) -> IsrChangeEnded:
        """Change the in-sync set as a leader asks, or refuse it."""
        state = self.state
        epochs = asked.broker_epochs or (-1,) * len(asked.isr)
        if asked.leader_epoch != state.leader_epoch:
            return IsrChangeEnded(asked, ErrorCode.FENCED_LEADER_EPOCH)
        if asked.partition_epoch != state.partition_epoch:
            return IsrChangeEnded(asked, ErrorCode.INVALID_UPDATE_VERSION)
        for broker_id, epoch in zip(asked.isr, epochs, strict=True):
            known = self.image.brokers[broker_id]
            if known.is_fenced or epoch not in (-1, known.broker_epoch):
                return IsrChangeEnded(asked, ErrorCode.INELIGIBLE_REPLICA)
        self._put_in_sync(list(asked.isr))
        after = self.state
        return IsrChangeEnded(asked, ErrorCode.NONE, after.isr, after.leader_epoch, after.partition_epoch)

    # ------------------------------------------------------------------------------------------------------- deciding

    def _put_broker(self, broker_id: int, broker: Broker) -> None:
        self.image = Image(self.state, {**self.image.brokers, broker_id: broker})

    def _put(self, state: PartitionState) -> None:
        if state != self.state:
            self.image = Image(attrs.evolve(state, partition_epoch=state.partition_epoch + 1), self.image.brokers)

    def _put_in_sync(self, isr: list[int]) -> None:
        """Commit another in-sync set, with what follows from it: who is eligible, who leads."""
        if not self._chooses:
            return
        state = self.state
        left = [each for each in (*state.isr, *state.eligible_leader_replicas) if each not in isr]
        eligible = tuple(dict.fromkeys(left)) if len(isr) < self._min_isr else ()
        last = state.last_known_elr if isr or eligible else (state.leader,)
        self._put(attrs.evolve(state, isr=tuple(isr), eligible_leader_replicas=eligible, last_known_elr=last))
        self._elect()

    def _elect(self) -> None:
        """Have somebody lead where nobody does who lives."""
        state = self.state
        live = {broker_id for broker_id, broker in self.image.brokers.items() if not broker.is_fenced}
        if not self._chooses or (state.leader in live and state.leader in state.isr):
            return
        chosen = self._factory.choose_leader(state, live, ElectionReason.OFFLINE)
        chosen = attrs.evolve(state, leader=-1) if chosen is None else chosen
        if chosen.leader != state.leader or chosen.isr != state.isr:
            self._put(attrs.evolve(chosen, leader_epoch=state.leader_epoch + (chosen.leader != state.leader)))
