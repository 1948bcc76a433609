"""Pure core: which replica the controller makes leader, and who is in sync afterwards.

| reason | who may lead | in-sync set afterwards |
| --- | --- | --- |
| offline, controlled shutdown | the first in-sync replica that lives | those of it that live |
| preferred | the first replica, if it lives and is in sync | as before |
| reassignment | as offline, but nobody who is being removed | as before |
| unclean | as offline, else the first replica that lives | as offline, or the leader alone: records may be lost |

A leader that may go on leading does, except for `preferred`. When nobody is in sync, an eligible replica counts as one
that is, and the in-sync set is the leader alone afterwards; when nobody is eligible either, the last leader leads again
once it lives, though it may have lost records (KIP-966).

*Source:* PartitionChangeBuilder, ReplicationControlManager.createTopic of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import ElectionReason, PartitionState

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def choose_leader(
    state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
) -> PartitionState | None:
    """See `ElectionFactory.choose_leader`."""
    if not state.isr and state.eligible_leader_replicas:
        return _choose_eligible(state, live_brokers, reason)
    live_isr = tuple(broker for broker in state.isr if broker in live_brokers)
    if reason is ElectionReason.PREFERRED:
        preferred = state.replicas[0]
        return attrs.evolve(state, leader=preferred) if preferred in live_isr else None
    if reason is ElectionReason.REASSIGNMENT:
        candidates = [b for b in state.replicas if b in live_isr and b not in state.removing_replicas]
        isr = state.isr
    else:
        candidates = [b for b in state.replicas if b in live_isr]
        isr = live_isr
    if state.leader in candidates:
        return attrs.evolve(state, isr=isr)
    if candidates:
        return attrs.evolve(state, leader=candidates[0], isr=isr)
    if not state.isr:
        for broker in state.last_known_elr:
            if broker in live_brokers:
                return _alone(state, broker)
    return _choose_any(state, live_brokers, reason)


def _choose_eligible(
    state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
) -> PartitionState | None:
    candidates = state.replicas[:1] if reason is ElectionReason.PREFERRED else state.replicas
    for broker in candidates:
        if broker in state.eligible_leader_replicas and broker in live_brokers:
            others = tuple(other for other in state.eligible_leader_replicas if other != broker)
            return attrs.evolve(state, leader=broker, isr=(broker,), eligible_leader_replicas=others)
    return _choose_any(state, live_brokers, reason)


def _choose_any(state: PartitionState, live_brokers: Collection[int], reason: ElectionReason) -> PartitionState | None:
    if reason is ElectionReason.UNCLEAN:
        for broker in state.replicas:
            if broker in live_brokers:
                return _alone(state, broker)
    return None


def _alone(state: PartitionState, broker: int) -> PartitionState:
    """Return the state after an unclean election: what others have that this one has not is lost."""
    return attrs.evolve(state, leader=broker, isr=(broker,), eligible_leader_replicas=(), last_known_elr=())


def initial_state(replicas: Sequence[int], live_brokers: Collection[int]) -> PartitionState:
    """See `ElectionFactory.initial_state`: the replicas that live are in sync, the first of them leads."""
    isr = tuple(broker for broker in replicas if broker in live_brokers)
    assert isr, "a partition is made when one of its replicas lives"
    return PartitionState(leader=isr[0], leader_epoch=0, partition_epoch=0, replicas=tuple(replicas), isr=isr)
