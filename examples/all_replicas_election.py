"""An election of one's own, as a plugin in one file: a record is committed when *every* replica has it.

The oldest way to replicate: any replica that is left has everything, so of f + 1 replicas f may be lost. Its price is
that the slowest decides, and that nothing is written while one is away. The controller chooses leaders, by Kafka's
rules; who lost the end of its log is out of sync until it has caught up.
"""

# ruff: noqa: D102 - what a method is for stands in the contract: odradek.kernel.contracts.election
from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence

import attrs

from odradek.kernel.api import (
    ZERO_ID,
    Election,
    ElectionContext,
    ElectionFactory,
    ElectionInput,
    ElectionReason,
    IsrChange,
    IsrChangeEnded,
    MetadataChanged,
    PartitionState,
    Ready,
    Role,
    hookimpl,
)

UNKNOWN = -1
NOBODY = PartitionState(leader=-1, leader_epoch=-1, partition_epoch=-1, replicas=(), isr=())


class AllReplicas:
    """The election of one replica: inputs in by `step` and the hot calls, effects out by `ready`."""

    def __init__(self, context: ElectionContext) -> None:
        self._context = context
        self._state = NOBODY
        self._log_end = self._begin = context.log_end_offset
        self._ends: dict[int, int] = {}  # of the followers' logs, as this leader has heard in its epoch
        self._starts: dict[int, int] = {}
        self._asked: IsrChange | None = None
        self._ready = Ready()
        self.role = Role.FOLLOWER
        self.high_watermark = min(context.high_watermark, context.log_end_offset)

    @property
    def leader_epoch(self) -> int:
        return self._state.leader_epoch

    @property
    def isr(self) -> Collection[int]:
        return self._state.isr

    # -- what comes in

    def step(self, event: ElectionInput) -> None:
        if isinstance(event, MetadataChanged) and event.state.partition_epoch >= self._state.partition_epoch:
            self._take(event.state)
        elif isinstance(event, IsrChangeEnded) and event.change == self._asked:
            self._asked = None  # the metadata tells what became of it; a later fetch asks again

    def _take(self, state: PartitionState) -> None:
        before = (self.role, self.leader_epoch)
        is_new_epoch = state.leader_epoch != self.leader_epoch
        me = self._context.broker_id
        self._state = state
        if state.leader == me:
            self.role = Role.LEADER
        else:
            self.role = Role.FOLLOWER if state.leader >= 0 and me in state.replicas else Role.OFFLINE
        others = [each for each in state.replicas if each != me] if self.role is Role.LEADER else []
        known = {} if is_new_epoch else self._ends
        self._ends = {each: known.get(each, UNKNOWN) for each in others}
        self._starts = {each: self._starts.get(each, UNKNOWN) for each in others}
        if is_new_epoch:
            self._begin, self._asked = self._log_end, None
        if (self.role, self.leader_epoch) != before:
            self._ready = attrs.evolve(
                self._ready, role=self.role, leader_id=state.leader, leader_epoch=state.leader_epoch
            )

    def local_append(self, log_end_offset: int) -> int:
        self._log_end = log_end_offset
        self.high_watermark = min(self.high_watermark, log_end_offset)
        return self._count()

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        known = self._context.broker(broker_id)
        if broker_id not in self._ends or known is None or broker_epoch < known.broker_epoch:
            return self.high_watermark  # a stranger, or a process that is gone
        self._ends[broker_id], self._starts[broker_id] = fetch_offset, log_start_offset
        has_all = fetch_offset >= max(self.high_watermark, self._begin)
        if has_all and known.is_live and broker_id not in self._state.isr and self._asked is None:
            isr = (*self._state.isr, broker_id)
            self._asked = IsrChange(isr, self.leader_epoch, self._state.partition_epoch)
            self._ready = attrs.evolve(self._ready, isr_change=self._asked)
        return self._count()

    def leader_high_watermark(self, offset: int) -> int:
        if self.role is Role.FOLLOWER:
            self.high_watermark = max(self.high_watermark, min(offset, self._log_end))
        return self.high_watermark

    def _count(self) -> int:
        if self.role is Role.LEADER:
            self.high_watermark = max(self.high_watermark, min([self._log_end, *self._ends.values()]))
        return self.high_watermark

    def low_watermark(self, log_start_offset: int) -> int:
        return min([log_start_offset, *self._starts.values()])

    def can_acknowledge(self) -> bool:
        return self.role is Role.LEADER and len(self._state.isr) == len(self._state.replicas)

    def tick(self, now_ms: int) -> None:
        """Time changes nothing: who is slow is waited for, who is dead is fenced by the controller."""

    # -- what is to be done

    def ready(self) -> Ready | None:
        return None if self._ready == Ready() else self._ready

    def advance(self, ready: Ready) -> None:
        if ready is self._ready:
            self._ready = Ready()


class AllReplicasFactory:
    """What is offered as `all`."""

    def new_election(self, context: ElectionContext) -> Election:
        return AllReplicas(context)

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        """Choose the first replica that lives and has everything; another one only uncleanly."""
        isr = tuple(each for each in state.isr if each in live_brokers)
        if reason is ElectionReason.PREFERRED:
            return attrs.evolve(state, leader=state.replicas[0]) if state.replicas[0] in isr else None
        has_all = isr or (() if state.isr else state.eligible_leader_replicas or state.last_known_elr)
        able = [each for each in state.replicas if each in has_all and each in live_brokers]
        if reason is ElectionReason.REASSIGNMENT:
            able = [each for each in able if each not in state.removing_replicas]
            return attrs.evolve(state, leader=able[0]) if able else None
        if state.leader in able:
            return attrs.evolve(state, isr=isr)
        if not able and reason is ElectionReason.UNCLEAN:
            able = [each for each in state.replicas if each in live_brokers]
        if not able:
            return None
        left = tuple(each for each in state.eligible_leader_replicas if each != able[0])
        return attrs.evolve(state, leader=able[0], isr=isr or (able[0],), eligible_leader_replicas=left)

    def initial_state(self, replicas: Sequence[int], live_brokers: Collection[int]) -> PartitionState:
        live = tuple(each for each in replicas if each in live_brokers)
        return PartitionState(leader=live[0], leader_epoch=0, partition_epoch=0, replicas=tuple(replicas), isr=live)


@hookimpl
def odradek_elections() -> dict[str, ElectionFactory]:
    """Offer `odradek.election=all`."""
    return {"all": AllReplicasFactory()}
