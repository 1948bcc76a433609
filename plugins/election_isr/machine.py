"""Pure core: one replica's view of its partition under a leader with in-sync replicas.

A record is committed when every in-sync replica has it: the high watermark is the smallest log end offset among them,
of which the leader knows the others' from their fetches. It only grows while the replica leads.

    in-sync set    as the controller has committed it
    asked for      a larger or a smaller one, until it is known what the controller made of it: one question at a time
    counted        the *maximal* set: the committed one and what is asked for, for the controller may have taken it
                   already; and whoever has caught up, and is about to come in

* **Shrink**: `tick` asks the set without those who have not caught up for `replica.lag.time.max.ms`.
* **Expand**: a follower's fetch asks it in when it has reached the high watermark and the begin of the leader's epoch,
  and its broker is alive, stays, and is the incarnation that the metadata knows.
* Fewer than `min.insync.replicas` in the committed set: nothing is committed (KIP-966), where a partition with fewer
  replicas than that counts with all it has.
* A refusal that says the question was never looked at takes it back. After any other the answer may not be all that
  happened: the maximal set counts on, until the metadata says what is.

*Source:* Kafka 4.3's Partition (maybeIncrementLeaderHW, maybeExpandIsr, maybeShrinkIsr, handleAlterPartitionError,
effectiveMinIsr); KIP-497, KIP-841, KIP-903.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import (
    ZERO_ID,
    ElectionContext,
    ElectionInput,
    ErrorCode,
    IsrChange,
    IsrChangeEnded,
    MetadataChanged,
    PartitionState,
    Ready,
    Role,
)

from .followers import NEVER, UNKNOWN, Follower

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection

LAG_KEY: Final = "replica.lag.time.max.ms"
_NOT_DONE: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""Refusals of a change that has not taken place."""
_METADATA_WILL_TELL: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Refusals after which this leader is not what it thought: to ask again would not help."""


class IsrElection:
    """The election of one replica. Owned by the replica.

    Invariants: `high_watermark <= log end offset`; followers are known only while the replica leads; `_has_enough` says
    that it leads and that enough replicas are in sync; `isr` is the committed set. Effects stand in `ready`; the high
    watermark of the hot calls is returned.
    """

    def __init__(self, context: ElectionContext) -> None:
        self._broker_id = context.broker_id
        self._broker = context.broker
        self._config = context.config
        self._log_end_offset = context.log_end_offset
        self._partition_epoch = -1
        self._leader_high_watermark = UNKNOWN
        self._epoch_begin = 0
        self._min_isr = 1
        self._followers: dict[int, Follower] = {}
        self._counted: tuple[Follower, ...] = ()
        self._outside: tuple[tuple[int, Follower], ...] = ()
        self._has_enough = False
        self._asked: IsrChange | None = None
        self._lag_ms_max = 0
        self._now_ms = NEVER
        self._ready: Ready | None = None
        self.role = Role.FOLLOWER
        self.leader_epoch = -1
        self.high_watermark = min(context.high_watermark, context.log_end_offset)
        self.isr: Collection[int] = ()

    # ---------------------------------------------------------------------------------------------------- hot calls

    def local_append(self, log_end_offset: int) -> int:
        """See `Election.local_append`."""
        self._log_end_offset = log_end_offset
        if (self._has_enough and not self._followers) or log_end_offset < self.high_watermark:
            self.high_watermark = log_end_offset
        elif self._has_enough:
            self._count()
        elif self._leader_high_watermark > self.high_watermark:
            self.leader_high_watermark(self._leader_high_watermark)
        return self.high_watermark

    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        """See `Election.follower_fetch`; the fetch of a broker that has no replica changes nothing."""
        follower = self._followers.get(broker_id)
        known = self._broker(broker_id)
        if follower is None or known is None or broker_epoch < known.broker_epoch:
            return self.high_watermark
        self._now_ms = now_ms
        follower.fetched(broker_epoch, fetch_offset, log_start_offset, self._log_end_offset, now_ms)
        if (
            broker_id not in self.isr
            and self._asked is None
            and fetch_offset >= self.high_watermark
            and fetch_offset >= self._epoch_begin
            and self._may_join(broker_id, follower)
        ):
            self._ask((*self.isr, broker_id))
        if self._has_enough:
            self._count()
        return self.high_watermark

    def leader_high_watermark(self, offset: int) -> int:
        """See `Election.leader_high_watermark`; what is committed stays so, known to a new leader or not."""
        if self.role is Role.FOLLOWER:
            self._leader_high_watermark = offset
            self.high_watermark = max(self.high_watermark, min(offset, self._log_end_offset))
        return self.high_watermark

    @property
    def asked_isr(self) -> tuple[int, ...]:
        """The in-sync set that the controller is asked for, and may have taken by now; empty when it is not asked."""
        return self._asked.isr if self._asked is not None else ()

    def _count(self) -> None:
        committed = self._log_end_offset
        for follower in self._counted:
            if follower.end < committed:
                committed = follower.end
        for broker_id, follower in self._outside:
            if (
                follower.end < committed
                and follower.is_caught_up(self._log_end_offset, self._now_ms, self._lag_ms_max)
                and self._may_join(broker_id, follower)
            ):
                committed = follower.end
        if committed > self.high_watermark:
            self.high_watermark = committed

    def _may_join(self, broker_id: int, follower: Follower) -> bool:
        known = self._broker(broker_id)
        return known is not None and known.is_live and known.broker_epoch == follower.broker_epoch

    def can_acknowledge(self) -> bool:
        """See `Election.can_acknowledge`."""
        return self._has_enough

    def low_watermark(self, log_start_offset: int) -> int:
        """See `Election.low_watermark`."""
        lowest = log_start_offset
        for broker_id, follower in self._followers.items():
            known = self._broker(broker_id)
            if known is not None and not known.is_fenced:
                lowest = min(lowest, follower.log_start)
        return lowest

    # ------------------------------------------------------------------------------------------------------- inputs

    def step(self, event: ElectionInput) -> None:
        """See `Election.step`; messages of peers change nothing."""
        high_watermark = self.high_watermark
        if isinstance(event, MetadataChanged):
            self._min_isr = event.min_insync_replicas
            if event.state.partition_epoch >= self._partition_epoch:
                self._take(event.state)
            elif self.role is Role.LEADER:  # the controller's answer came before the metadata; settings count at once
                self._recount()
        elif isinstance(event, IsrChangeEnded):
            self._end_change(event)
        self._tell_committed(high_watermark)

    def _take(self, state: PartitionState) -> None:
        before = (self.role, self.leader_epoch)
        is_new_epoch = state.leader_epoch != self.leader_epoch
        if is_new_epoch or state.partition_epoch > self._partition_epoch:
            self._asked = None
        self._partition_epoch = state.partition_epoch
        self.leader_epoch = state.leader_epoch
        self.isr = state.isr
        self.role = self._role_in(state)
        if self.role is Role.LEADER:
            if is_new_epoch:
                self._epoch_begin = self._log_end_offset
                self._lag_ms_max = self._config().get_int(LAG_KEY)
            # A new leader knows nothing of the others until they fetch in its epoch.
            known = {} if is_new_epoch else self._followers
            self._followers = {
                broker_id: known.get(broker_id) or Follower(is_in_sync=broker_id in state.isr)
                for broker_id in state.replicas
                if broker_id != self._broker_id
            }
            self._recount()
        else:
            self._followers, self._counted, self._outside = {}, (), ()
            self._has_enough = False
        if is_new_epoch:
            self._leader_high_watermark = UNKNOWN
        self._gather(before, state.leader)

    def _role_in(self, state: PartitionState) -> Role:
        if state.leader == self._broker_id:
            return Role.LEADER
        return Role.FOLLOWER if state.leader >= 0 and self._broker_id in state.replicas else Role.OFFLINE

    def _recount(self) -> None:
        """Count anew after the in-sync set, what is asked for, or the settings changed."""
        maximal = {*self.isr, *(self._asked.isr if self._asked is not None else ())}
        followers = self._followers.items()
        self._counted = tuple(follower for broker_id, follower in followers if broker_id in maximal)
        self._outside = tuple(each for each in followers if each[0] not in maximal)
        self._has_enough = len(self.isr) >= min(self._min_isr, 1 + len(self._followers))
        if self._has_enough:
            self._count()

    def _gather(self, before: tuple[Role, int], leader_id: int) -> None:
        pending = self._ready or Ready()
        if (self.role, self.leader_epoch) != before or pending.role is not None:
            pending = attrs.evolve(pending, role=self.role, leader_id=leader_id, leader_epoch=self.leader_epoch)
        if pending.isr_change is not None and self._asked is None:
            pending = attrs.evolve(pending, isr_change=None)  # overtaken before it was asked
        self._ready = None if pending == Ready() else pending

    def _tell_committed(self, high_watermark_before: int) -> None:
        """Have the replica told of a high watermark that an input or time has moved."""
        if self.high_watermark != high_watermark_before:
            self._ready = attrs.evolve(self._ready or Ready(), high_watermark=self.high_watermark)

    # ----------------------------------------------------------------------------------------------- the in-sync set

    def tick(self, now_ms: int) -> None:
        """See `Election.tick`; whoever has not caught up for `replica.lag.time.max.ms` is to leave the in-sync set."""
        self._now_ms = now_ms
        if not self._followers:
            return
        high_watermark = self.high_watermark
        self._lag_ms_max = self._config().get_int(LAG_KEY)
        for follower in self._followers.values():
            follower.note_time(now_ms)
        if self._asked is None:
            stays = tuple(broker_id for broker_id in self.isr if self._keeps_up(broker_id))
            if len(stays) < len(self.isr):
                self._ask(stays)
        if self._has_enough:
            self._count()
        self._tell_committed(high_watermark)

    def _keeps_up(self, broker_id: int) -> bool:
        follower = self._followers.get(broker_id)
        return follower is None or follower.is_caught_up(self._log_end_offset, self._now_ms, self._lag_ms_max)

    def _ask(self, isr: tuple[int, ...]) -> None:
        self._asked = IsrChange(
            isr=isr,
            leader_epoch=self.leader_epoch,
            partition_epoch=self._partition_epoch,
            broker_epochs=tuple(map(self._epoch_of, isr)),
        )
        self._ready = attrs.evolve(self._ready or Ready(), isr_change=self._asked)
        self._recount()

    def _epoch_of(self, broker_id: int) -> int:
        if broker_id != self._broker_id:
            return self._followers[broker_id].broker_epoch if broker_id in self._followers else UNKNOWN
        known = self._broker(broker_id)
        return known.broker_epoch if known is not None else UNKNOWN

    def _end_change(self, ended: IsrChangeEnded) -> None:
        if ended.change != self._asked or ended.error in _METADATA_WILL_TELL:
            return  # the metadata was faster, or will tell
        if ended.error is ErrorCode.NONE:
            if ended.leader_epoch != self.leader_epoch or ended.partition_epoch < self._partition_epoch:
                return
            self._asked = None
            self.isr, self._partition_epoch = ended.isr, ended.partition_epoch
        elif ended.error in _NOT_DONE:
            self._asked = None
        else:
            self._ready = attrs.evolve(self._ready or Ready(), isr_change=self._asked)
        self._recount()

    # ------------------------------------------------------------------------------------------------------ effects

    def ready(self) -> Ready | None:
        """See `Election.ready`."""
        return self._ready

    def advance(self, ready: Ready) -> None:
        """See `Election.advance`; effects that gathered since `ready` was returned stay."""
        if ready is self._ready:
            self._ready = None

    def __repr__(self) -> str:
        return (
            f"<IsrElection {self.role.value} of epoch {self.leader_epoch}, isr {list(self.isr)}, "
            f"high watermark {self.high_watermark} of {self._log_end_offset}>"
        )
