"""Pure core: one replica's view of its partition under a leader with in-sync replicas.

A record is committed when every in-sync replica has it: the high watermark is the smallest log end offset among the
in-sync set, of which the leader knows the others' from their fetches. It only grows while the replica leads, and it
stands still while fewer than `min.insync.replicas` are in sync (KIP-966), where a partition with fewer replicas than
that counts with all it has.

*Source:* Partition.maybeIncrementLeaderHW, Partition.effectiveMinIsr of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ElectionContext, ElectionInput, MetadataChanged, PartitionState, Ready, Role

if TYPE_CHECKING:
    from collections.abc import Collection

_UNKNOWN: Final = -1


class IsrElection:
    """The election of one replica. Owned by the replica.

    Invariants: `high_watermark <= log end offset`; positions are kept only while the replica leads; `_has_enough` says
    that it leads and that enough replicas are in sync. Effects stand in `ready` for what `step` changed; what the two
    hot calls change they return.
    """

    def __init__(self, context: ElectionContext) -> None:
        self._broker_id = context.broker_id
        self._log_end_offset = context.log_end_offset
        self._partition_epoch = -1
        self._positions: dict[int, int] = {}
        self._others: tuple[int, ...] = ()
        self._has_enough = False
        self._ready: Ready | None = None
        self.role = Role.FOLLOWER
        self.leader_epoch = -1
        self.high_watermark = min(context.high_watermark, context.log_end_offset)
        self.isr: Collection[int] = ()

    def local_append(self, log_end_offset: int) -> int:
        """See `Election.local_append`; a truncation is told the same way."""
        self._log_end_offset = log_end_offset
        if (self._has_enough and not self._others) or log_end_offset < self.high_watermark:
            self.high_watermark = log_end_offset
        elif self._has_enough:
            self._count()
        return self.high_watermark

    def follower_fetch(self, broker_id: int, fetch_offset: int, now_ms: int) -> int:  # contract
        """See `Election.follower_fetch`; the fetch of a broker that has no replica changes nothing."""
        if broker_id in self._positions:
            self._positions[broker_id] = fetch_offset
            if self._has_enough:
                self._count()
        return self.high_watermark

    def _count(self) -> None:
        positions = self._positions
        committed = self._log_end_offset
        for broker_id in self._others:
            committed = min(committed, positions[broker_id])
        self.high_watermark = max(self.high_watermark, committed)

    def can_acknowledge(self) -> bool:
        """See `Election.can_acknowledge`."""
        return self._has_enough

    def step(self, event: ElectionInput) -> None:
        """See `Election.step`; metadata older than what is known, and messages of peers, change nothing."""
        if not isinstance(event, MetadataChanged) or event.state.partition_epoch < self._partition_epoch:
            return
        state = event.state
        before = (self.role, self.leader_epoch, self.high_watermark)
        is_new_epoch = state.leader_epoch != self.leader_epoch
        self._partition_epoch = state.partition_epoch
        self.leader_epoch = state.leader_epoch
        self.isr = state.isr
        self.role = self._role_in(state)
        if self.role is Role.LEADER:
            # A new leader knows nothing of the others until they fetch in its epoch.
            known = {} if is_new_epoch else self._positions
            self._positions = {b: known.get(b, _UNKNOWN) for b in state.replicas if b != self._broker_id}
            self._others = tuple(b for b in state.isr if b != self._broker_id)
            self._has_enough = len(state.isr) >= min(event.min_insync_replicas, len(state.replicas))
            if self._has_enough:
                self._count()
        else:
            self._positions, self._others = {}, ()
            self._has_enough = False
        self._gather(before, state.leader)

    def _role_in(self, state: PartitionState) -> Role:
        if state.leader == self._broker_id:
            return Role.LEADER
        return Role.FOLLOWER if state.leader >= 0 and self._broker_id in state.replicas else Role.OFFLINE

    def _gather(self, before: tuple[Role, int, int], leader_id: int) -> None:
        role, leader_epoch, high_watermark = before
        has_moved = self.high_watermark != high_watermark
        pending = self._ready or Ready()
        if (self.role, self.leader_epoch) != (role, leader_epoch) or pending.role is not None:
            self._ready = Ready(
                role=self.role,
                leader_id=leader_id,
                leader_epoch=self.leader_epoch,
                high_watermark=self.high_watermark if has_moved else pending.high_watermark,
            )
        elif has_moved:
            self._ready = Ready(high_watermark=self.high_watermark)

    def tick(self, now_ms: int) -> None:
        """See `Election.tick`; nothing here waits for time."""

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
