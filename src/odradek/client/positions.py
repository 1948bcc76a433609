"""Pure core: a consumer's assigned partitions and positions, and where positions come from.

    assigned -> committed offset of the group, if there is a group -> reset by auto.offset.reset, if there is none
    sought   -> that offset, or looked up
    a new leader (KIP-320) -> where its log parts from what was read: there the position goes, or the log was cut

Each state has a generation: what was asked for a partition that was sought, reassigned or unassigned meanwhile is
dropped when it comes.

*Source:* `SubscriptionState`, `OffsetsForLeaderEpochUtils` of Kafka 4.3; KIP-320.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import attrs

from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import NO_EPOCH, TopicPartition

from .errors import ClientUsageError, LogTruncationError, NoOffsetForPartitionError
from .group.committed import OffsetAndMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .cluster import Cluster
    from .fetched_records import FetchedRecords


@attrs.define(eq=False)
class PartitionState:
    """One assigned partition.

    Attributes:
        generation: Answers to requests of an older one are dropped.
        position: Offset of the next record to return; None until it is known.
        position_epoch: Leader epoch of the record before it; -1 when unknown.
        checked_epoch: The newest leader under which the position was found to be right.
        needs_committed: Whether the position is what the group has committed, still to be asked for.
        needs_reset: Whether the position must be looked up.
        reset_timestamp: What to look up.
        is_paused: Whether polls pass it over.
        is_busy: Whether a request about it is under way.
        is_dry: Whether a fetch that did not wait brought nothing of it.
        retry_at_ms: Not to be asked about before, unless another leader is known.
        retry_epoch: The leader epoch in which it failed.
        records: What was fetched and not yet taken.
        error: To be raised by the next poll.
        high_watermark: As of the last fetch; -1 before.
        last_stable_offset: Likewise.
        log_start_offset: Likewise.
        replica_id: A follower that the leader told us to read from.
        replica_until_ms: Until when; then the leader is asked anew.
        replica_epoch: The leader epoch in which it was named.
    """

    generation: int
    position: int | None = None
    position_epoch: int = NO_EPOCH
    checked_epoch: int = NO_EPOCH
    needs_committed: bool = False
    needs_reset: bool = False
    reset_timestamp: int = 0
    is_paused: bool = False
    is_busy: bool = False
    is_dry: bool = False
    retry_at_ms: int = 0
    retry_epoch: int = NO_EPOCH
    records: FetchedRecords | None = None
    error: ClientError | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    replica_id: int | None = None
    replica_until_ms: int = 0
    replica_epoch: int = NO_EPOCH


class Check(NamedTuple):
    """A position that a new leader has to confirm.

    Attributes:
        generation: Of the state.
        position: What was read up to.
        position_epoch: Leader epoch of the last record read.
        leader_epoch: The new leader's.
    """

    generation: int
    position: int
    position_epoch: int
    leader_epoch: int


class Positions:
    """The assigned partitions of one consumer; one owner, no awaits between its calls needed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._states: dict[TopicPartition, PartitionState] = {}
        self._generation = 0

    # Assignment.

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._states)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Those of them that polls pass over."""
        return frozenset(partition for partition, state in self._states.items() if state.is_paused)

    def assign(self, partitions: Iterable[TopicPartition], *, from_committed: bool = False) -> None:
        """Read these partitions from now on; those that were assigned before keep their positions.

        Args:
            partitions: Which.
            from_committed: Whether new ones begin where their group has committed, not by `auto.offset.reset`.
        """
        known = self._states
        self._states = {
            partition: known.get(partition) or self._new_state(needs_committed=from_committed)
            for partition in partitions
        }

    def give(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions too, from where their group has committed."""
        self.assign([*self._states, *partitions], from_committed=True)

    def take_away(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions no more."""
        for partition in partitions:
            self._states.pop(partition, None)

    def _new_state(self, *, needs_committed: bool = False) -> PartitionState:
        self._generation += 1
        return PartitionState(self._generation, needs_committed=needs_committed)

    def _state(self, partition: TopicPartition) -> PartitionState:
        state = self._states.get(partition)
        if state is None:
            raise ClientUsageError(f"{partition} is not assigned")
        return state

    def _current(self, partition: TopicPartition, generation: int) -> PartitionState | None:
        state = self._states.get(partition)
        return state if state is not None and state.generation == generation else None

    # Moving by hand.

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Go on from this offset.

        Args:
            partition: Where.
            offset: The next record to be read.
            leader_epoch: Of the record before it, as it was committed; -1 when unknown.

        Raises:
            ClientUsageError: The partition is not assigned, or the offset negative.
        """
        if offset < 0:
            raise ClientUsageError(f"offset {offset} is negative")
        state = self._moved(partition)
        state.position = offset
        state.position_epoch = leader_epoch

    def seek_to(self, partition: TopicPartition, timestamp: int) -> None:
        """Look the position up, by a special timestamp or a real one, when it is needed next."""
        state = self._moved(partition)
        state.position = None
        state.needs_reset = True
        state.reset_timestamp = timestamp

    def _moved(self, partition: TopicPartition) -> PartitionState:
        """Return the state of a partition after dropping what was fetched or is being fetched."""
        old = self._state(partition)
        fresh = self._new_state()
        fresh.is_paused = old.is_paused
        self._states[partition] = fresh
        return fresh

    def pause(self, partition: TopicPartition, is_paused: bool) -> None:
        """Have polls pass a partition over, or not any more; its position and what was fetched stay."""
        self._state(partition).is_paused = is_paused

    # What is known.

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset of the next record; None while it is not known."""
        return self._state(partition).position

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions that are known: what a group would commit."""
        return {
            partition: OffsetAndMetadata(state.position, leader_epoch=state.position_epoch)
            for partition, state in self._states.items()
            if state.position is not None
        }

    @property
    def errors_count(self) -> int:
        """How many partitions something stands against that nobody has been told yet."""
        return sum(state.error is not None for state in self._states.values())

    def raise_error(self, partition: TopicPartition) -> None:
        """Raise what stands against a partition, if anything."""
        state = self._state(partition)
        error, state.error = state.error, None
        if error is not None:
            raise error

    def failed(
        self, generations: Mapping[TopicPartition, int], retry_at_ms: int, error: ClientError | None = None
    ) -> None:
        """Take note that a request failed: try again later, or have the next poll raise `error`."""
        for partition, generation in generations.items():
            state = self._current(partition, generation)
            if state is not None:
                state.is_busy = False
                self._rest(partition, state, retry_at_ms)
                state.replica_id = None
                state.error = error

    def _rest(self, partition: TopicPartition, state: PartitionState, retry_at_ms: int) -> None:
        """Have a partition pause, or until another leader is known."""
        info = self._cluster.partition(partition)
        state.retry_at_ms = retry_at_ms
        state.retry_epoch = NO_EPOCH if info is None else info.leader_epoch

    def resting(self, partitions: Iterable[TopicPartition], now_ms: int) -> list[TopicPartition]:
        """Return which of these partitions pause, since what was asked about them failed."""
        states = ((partition, self._states.get(partition)) for partition in partitions)
        return [where for where, state in states if state is not None and self._is_resting(where, state, now_ms)]

    def _is_resting(self, partition: TopicPartition, state: PartitionState, now_ms: int) -> bool:
        if state.retry_at_ms <= now_ms:
            return False
        info = self._cluster.partition(partition)
        return info is None or info.leader_epoch <= state.retry_epoch or not info.has_leader

    # What the group has committed.

    def take_uncommitted(self, now_ms: int) -> dict[TopicPartition, int]:
        """Return the generations of partitions whose committed offsets must be asked for; they count as busy then."""
        wanted: dict[TopicPartition, int] = {}
        for partition, state in self._states.items():
            if state.needs_committed and not state.is_busy and state.retry_at_ms <= now_ms and state.error is None:
                state.is_busy = True
                wanted[partition] = state.generation
        return wanted

    def committed(self, partition: TopicPartition, generation: int, offset: OffsetAndMetadata | None) -> None:
        """Take over what the group has committed; None is nothing, and then `auto.offset.reset` decides."""
        state = self._current(partition, generation)
        if state is not None:
            state.is_busy = state.needs_committed = False
            if offset is not None:
                state.position = offset.offset
                state.position_epoch = offset.leader_epoch

    # What has to be looked up.

    def take_resets(self, now_ms: int, default_timestamp: int | None) -> dict[TopicPartition, tuple[int, int]]:
        """Return what must be looked up: timestamp and generation by partition; these count as busy then.

        Args:
            now_ms: Monotonic time.
            default_timestamp: What `auto.offset.reset` means; None for `none`.
        """
        wanted: dict[TopicPartition, tuple[int, int]] = {}
        for partition, state in self._states.items():
            if state.position is not None or state.needs_committed or state.is_busy:
                continue
            if state.retry_at_ms > now_ms or state.error is not None:
                continue
            if not state.needs_reset:
                if default_timestamp is None:
                    state.error = NoOffsetForPartitionError((partition,))
                    continue
                state.needs_reset = True
                state.reset_timestamp = default_timestamp
            state.is_busy = True
            wanted[partition] = (state.reset_timestamp, state.generation)
        return wanted

    def reset(self, partition: TopicPartition, generation: int, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Take a position over that was looked up, and the leader epoch of the record there."""
        state = self._current(partition, generation)
        if state is not None:
            info = self._cluster.partition(partition)
            state.is_busy = False
            state.needs_reset = False
            state.position = offset
            state.position_epoch = leader_epoch
            state.checked_epoch = NO_EPOCH if info is None else info.leader_epoch  # the leader itself has said so

    # What a new leader has to confirm.

    def _is_confirmed(self, partition: TopicPartition, state: PartitionState) -> bool:
        """Say whether the present leader's log is known to contain what was read."""
        info = self._cluster.partition(partition)
        if info is None or info.leader_epoch <= state.checked_epoch:
            return True
        if state.position_epoch == NO_EPOCH:
            state.checked_epoch = info.leader_epoch  # there is nothing to compare
            return True
        return False

    def take_checks(self, now_ms: int) -> dict[TopicPartition, Check]:
        """Return positions that a new leader has to confirm before more is read; they count as busy then."""
        wanted: dict[TopicPartition, Check] = {}
        for partition, state in self._states.items():
            if state.position is None or state.is_busy or state.records is not None or state.error is not None:
                continue
            if self._is_resting(partition, state, now_ms) or self._is_confirmed(partition, state):
                continue
            info = self._cluster.partition(partition)
            assert info is not None, "what is not known is not doubted"
            state.is_busy = True
            wanted[partition] = Check(state.generation, state.position, state.position_epoch, info.leader_epoch)
        return wanted

    def checked(
        self, partition: TopicPartition, check: Check, end_epoch: int, end_offset: int, *, may_reset: bool
    ) -> None:
        """Take over where the new leader's log ends in the epoch that was read last.

        Args:
            partition: Where.
            check: What was asked.
            end_epoch: The largest epoch there that is not newer; -1 when there is none.
            end_offset: Where that epoch ends; -1 likewise.
            may_reset: Whether `auto.offset.reset` says what to do with a position that is gone.
        """
        state = self._current(partition, check.generation)
        if state is None:
            return
        state.is_busy = False
        if end_offset >= check.position and end_epoch >= 0:
            state.checked_epoch = check.leader_epoch
            return
        if not may_reset:
            parted_at = end_offset if end_offset >= 0 else None
            state.error = LogTruncationError(partition, check.position, parted_at)
        elif end_offset < 0:
            state.position = None
        else:
            state.position, state.position_epoch, state.checked_epoch = end_offset, end_epoch, check.leader_epoch

    def unchecked(self, checks: Mapping[TopicPartition, Check]) -> None:
        """Go on without: the broker cannot be asked where epochs end."""
        for partition, check in checks.items():
            state = self._current(partition, check.generation)
            if state is not None:
                state.is_busy = False
                state.checked_epoch = check.leader_epoch
