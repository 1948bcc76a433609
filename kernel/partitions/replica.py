"""Shell: one replica of one partition, where log, election and producer state meet.

A replica is owned by the reactor's task. An append has two halves, so that one gathered write serves everything that a
turn of the reactor brought for a partition::

    append_as_leader   offsets are assigned in the caller's buffer, the batch is staged       (many times a turn)
    write              one write; `appended_offset` moves, and with it the high watermark     (once a turn)

When the log asks for a flush (`flush.messages`, `flush.ms`), `appended_offset` waits for it: nothing is acknowledged or
shown that the topic wanted on disk first.

Watermarks: `log_start_offset <= last_stable_offset <= high_watermark <= appended_offset <= log.log_end_offset`.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..contracts.culprits import blame
from ..contracts.election import MetadataChanged, PartitionState, Role
from ..contracts.storage import EMPTY_READ, LogRead
from ..contracts.tiering import RecordsAreRemoteError
from ..errors import ErrorCode, KafkaError, StorageError
from ..machine.files import DiskError
from ..records.control import ControlRecordType, EndTransactionMarker
from ..types import NO_EPOCH, NO_OFFSET, READ_COMMITTED, IsolationLevel, LogOffsets, TopicIdPartition
from .delay_recovery import keep_delays
from .election_driver import carry_out, leads_in
from .producer_snapshot import SNAPSHOT_KIND, encode_snapshot
from .quiet_followers import tell_heard
from .recovery import keep_producers
from .transaction_index import TRANSACTION_INDEX_KIND, encode_transaction_index
from .unkept_snapshots import UnkeptSnapshots

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..contracts.append_stage import AppendStage
    from ..contracts.election import Election, ElectionInput, IsrChange
    from ..contracts.storage import PartitionLog
    from ..contracts.tiering import TieredLog
    from ..delay.ledger import DelayLedger
    from ..records.batch import BatchHeader
    from ..records.validation import ValidationRules
    from ..wire.frame_template import FrameTemplate
    from .delay_beginnings import DelayBeginning
    from .follower_positions import FollowerPositions
    from .future_log import FutureLog
    from .producer_table import ProducerStateTable
    from .quiet_followers import QuietFollower
    from .voting import Voting

_logger = logging.getLogger(__name__)

NOT_LEADER: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER


@frozen
class TopicSettings:
    """A topic's settings as far as its replicas need them.

    Attributes:
        rules: What a produced batch must fulfil.
        min_insync_replicas: For acks=all.
        throttled_leaders: Of which partitions leaders give followers no more than a rate; `partition:broker`, or `*`.
        throttled_followers: Which replicas take no more than a rate.
        dead_letters_of: The retry topic whose dead letters are taken here; empty for none.
        takes_dead_letters: Whether they are at the moment.
    """

    rules: ValidationRules
    min_insync_replicas: int
    throttled_leaders: frozenset[str] = frozenset()
    throttled_followers: frozenset[str] = frozenset()
    dead_letters_of: str = ""
    takes_dead_letters: bool = True


class Replica:
    """One replica. Life: made by the `ReplicaOpener`, `become`, then appends and reads; `close` at the end.

    Invariants: the watermarks are ordered as the module's docstring says, and none goes back within a leader epoch.
    """

    __slots__ = (
        "_active_base_offset",
        "answer_templates",
        "appended_offset",
        "ask_isr",
        "delay_beginning",
        "delays",
        "election",
        "epoch_begin",
        "flushed_ms",
        "followers",
        "future",
        "high_watermark",
        "is_change_noted",
        "is_dirty",
        "is_in_pass",
        "is_leader",
        "is_paused",
        "lacks_room",
        "leader_epoch",
        "leader_id",
        "local_log",
        "log",
        "lowest_cut",
        "offline_code",
        "offline_reason",
        "on_gone_wrong",
        "partition",
        "producers",
        "quiet",
        "settings",
        "snapshot_offset",
        "stages",
        "state",
        "state_after_pause",
        "tiered_log",
        "topic_partition",
        "unkept",
        "voting",
    )

    def __init__(
        self,
        *,
        partition: TopicIdPartition,
        log: PartitionLog,
        election: Election,
        producers: ProducerStateTable,
        settings: TopicSettings,
        stages: tuple[AppendStage, ...] = (),
        tiered_log: TieredLog | None = None,
        ask_isr: Callable[[Replica, IsrChange], None] | None = None,
        voting: Voting | None = None,
        delays: DelayLedger | None = None,
    ) -> None:
        self.ask_isr = ask_isr
        self.voting = voting
        self.partition = partition
        self.topic_partition = partition.topic_partition
        self.answer_templates: dict[int, FrameTemplate] = {}
        self.unkept = UnkeptSnapshots()
        self.log: PartitionLog
        self.local_log: PartitionLog  # what of it is on this broker's disk: what waits follows from that alone
        self.tiered_log: TieredLog | None
        self.take_log(log, tiered_log)
        self.election = election
        self.producers = producers
        self.settings = settings
        self.stages = stages
        self.delays = delays
        self.delay_beginning: DelayBeginning | None = None
        self.is_change_noted = self.is_dirty = self.is_leader = self.is_in_pass = False
        self.lowest_cut = 0  # of those since a pass of compaction set it
        self.leader_id = -1
        self.leader_epoch = NO_EPOCH
        self.epoch_begin = 0
        self.appended_offset = log.log_end_offset
        self.high_watermark = min(election.high_watermark, log.log_end_offset)
        self.snapshot_offset = NO_OFFSET
        self.state: PartitionState | None = None
        self.flushed_ms = 0
        self.offline_reason: str | None = None
        self.offline_code = ErrorCode.KAFKA_STORAGE_ERROR
        self.on_gone_wrong: Callable[[Replica], None] | None = None
        self.is_paused = self.lacks_room = False
        self.future: FutureLog | None = None
        self.followers: FollowerPositions | None = None
        self.quiet: dict[int, QuietFollower] | None = None
        self.state_after_pause: PartitionState | None = None

    def take_log(self, log: PartitionLog, tiered_log: TieredLog | None) -> None:
        """Have `log` from now on, or what wraps it."""
        self.log = log if tiered_log is None else tiered_log
        self.local_log = log
        self.tiered_log = tiered_log
        self._active_base_offset = log.active_base_offset
        self._hold_uploads()

    def __repr__(self) -> str:
        role = "offline" if self.offline_reason else "leader" if self.is_leader else "follower"
        return (
            f"Replica({self.partition}, {role} of epoch {self.leader_epoch}, start {self.log.log_start_offset}, "
            f"hw {self.high_watermark}, end {self.log.log_end_offset})"
        )

    # ------------------------------------------------------------------------------------------------------ leadership

    def become(self, state: PartitionState) -> bool:
        """Take the partition's state from committed metadata; return whether leader or epoch changed.

        Raises:
            PluginError: See `carry_out`.
        """
        self.state = state
        before = (self.is_leader, self.leader_id, self.leader_epoch)
        self.step(MetadataChanged(state, self.settings.min_insync_replicas))
        return before != (self.is_leader, self.leader_id, self.leader_epoch)

    def step(self, event: ElectionInput) -> None:
        """Have the election take an input, and do what it decides.

        Raises:
            PluginError: See `carry_out`.
        """
        self.election.step(event)
        self.carry_out()

    def tick(self, now_ms: int) -> None:
        """Let time pass for the election; `now_ms` is the monotonic clock.

        Raises:
            PluginError: See `carry_out`.
        """
        self.election.tick(now_ms)
        self.carry_out()

    def carry_out(self) -> None:
        """Do what the election has decided; where replicas vote it is done soon.

        Raises:
            PluginError: See `election_driver.carry_out`.
        """
        if self.voting is not None:
            self.voting.note(self)
            return
        carry_out(self.election, self, partial(self.ask_isr, self) if self.ask_isr is not None else None)

    def take_role(self, role: Role, leader_id: int, leader_epoch: int) -> None:
        """See `ElectedReplica.take_role`."""
        assert leader_epoch >= self.leader_epoch, "leader epochs only grow"
        has_begun = leader_epoch > self.leader_epoch or not self.is_leader  # a candidate has its epoch before it leads
        self.is_leader = role is Role.LEADER
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        if has_begun:
            self.followers = self.quiet = None
        if self.is_leader and has_begun:
            self.epoch_begin = self.log.log_end_offset
            self.log.assign_epoch(leader_epoch, self.epoch_begin)
            self.raise_high_watermark(self.election.local_append(self.appended_offset))

    def check_leader(self, current_leader_epoch: int) -> None:
        """Refuse a request that was sent on old or too new knowledge of the leader.

        Raises:
            KafkaError: The client's epoch (if not -1) is older or newer than ours, or this is no leader: in this order.

        Source: KIP-320.
        """
        if self.offline_reason is not None:
            raise KafkaError(self.offline_code)
        if not self.is_leader:
            self.check_epoch(current_leader_epoch)
            raise KafkaError(NOT_LEADER)
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            self.check_epoch(current_leader_epoch)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a request that was sent on old or too new knowledge of the leader, whoever that is.

        Raises:
            KafkaError: The replica is offline, or the client's epoch (if not -1) is older or newer than ours.
        """
        if self.offline_reason is not None:
            raise KafkaError(self.offline_code)
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            is_old = current_leader_epoch < self.leader_epoch
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH)

    # ------------------------------------------------------------------------------------------------------- producers

    def keep_producers_at_roll(self) -> None:
        """Keep the producers' state at the begin of a segment, of which a batch has just been staged and not counted.

        It goes to the remote store with the segment before; survives the loss of power after a flush.

        Raises:
            StorageError: It cannot be written.
        """
        offset = self.log.active_base_offset
        if offset != self._active_base_offset:
            self._active_base_offset = offset
            self._keep_producers_at(offset)

    def keep_producers_at_end(self) -> None:
        """Keep the producers' state at the log's end as it is now; survives the loss of power after a flush.

        Raises:
            StorageError: It cannot be written.
        """
        self._keep_producers_at(self.log.log_end_offset)

    def _keep_producers_at(self, offset: int) -> None:
        if offset in self.log.sidecars(SNAPSHOT_KIND):
            return
        if self.unkept.begin(offset, self.producers):
            self._hold_uploads()
        else:
            self.log.append_sidecar(offset, SNAPSHOT_KIND, encode_snapshot(self.producers.snapshot()))

    def _hold_uploads(self) -> None:
        if self.tiered_log is not None:
            first = self.unkept.first
            self.tiered_log.hold_uploads(first.offset if first else None)

    def note_pass(self, *, is_under_way: bool) -> None:
        """Take note that a pass of compaction begins to read the log, or is over; meanwhile its segments stay."""
        self.is_in_pass = is_under_way
        if self.tiered_log is not None:
            self.tiered_log.hold_segments(are_read=is_under_way)

    def note_first_kept(self) -> None:
        """Take note that the first of `unkept` was written, or cannot be."""
        self.unkept.take()
        self._hold_uploads()

    def end_transaction(self, header: BatchHeader, marker: EndTransactionMarker) -> None:
        """Take note of a marker that is staged.

        Raises:
            StorageError: The transaction index cannot be written.
        """
        is_commit = marker.type is ControlRecordType.COMMIT
        aborted = self.producers.append_marker(header, is_commit=is_commit, coordinator_epoch=marker.coordinator_epoch)
        if aborted is not None:
            entry = encode_transaction_index((aborted,))
            self.log.append_sidecar(self.log.active_base_offset, TRANSACTION_INDEX_KIND, entry)

    def keep_producers(self) -> None:
        """Keep the producers' state beside the log, so that a start need not read the log; durable on return."""
        self.unkept.write_all(self.log)
        if len(self.producers):
            keep_producers(self.log, self.producers, self.tiered_log)
        if self.delays is not None:
            keep_delays(self.local_log, self.delays)

    # ----------------------------------------------------------------------------------------------------------- write

    def write(self) -> bool:
        """Write what is staged; return whether a flush has to come before it counts.

        Raises:
            StorageError: The log failed; the replica is offline and nothing of the staged batches counts.
        """
        self.is_dirty = False
        try:
            needs_flush = self.log.write_pending()
        except StorageError as error:
            self.go_offline(str(error))
            raise
        if not needs_flush:
            self.note_appended(self.log.log_end_offset)
        return needs_flush

    def note_appended(self, offset: int) -> None:
        """Take note that everything below `offset` is in the log as the topic's settings want it."""
        if offset > self.appended_offset:
            if self.quiet:
                tell_heard(self)  # what followers had before
            self.appended_offset = offset
            self.raise_high_watermark(self.election.local_append(offset))

    def note_cut(self, offset: int) -> None:
        """Take note that all from `offset` on was cut: watermarks fall, or rise to the new start; nothing is unkept."""
        self.lowest_cut = min(self.lowest_cut, offset)
        end = self.log.log_end_offset
        self.appended_offset = end
        self.high_watermark = min(self.election.local_append(end), end)
        self.unkept = UnkeptSnapshots()  # whoever writes one sees that it is of what is no more
        self.snapshot_offset = NO_OFFSET
        self._active_base_offset = self.log.active_base_offset
        self._hold_uploads()
        if self.delay_beginning is not None:
            self.delay_beginning.was_cut = True

    def is_follower(self, broker_id: int) -> bool:
        """Return whether a broker is another replica of this partition."""
        return self.state is not None and broker_id != self.leader_id and broker_id in self.state.replicas

    def raise_high_watermark(self, offset: int) -> None:
        """Show what lies below `offset`, as far as it is in the log as the topic's settings want it."""
        if offset > self.appended_offset:
            offset = self.appended_offset
        if offset > self.high_watermark:
            self.high_watermark = offset

    def go_offline(self, reason: str, code: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        """Serve nothing any more: the log failed, or what `code` tells those who wait for it."""
        self.offline_reason, self.offline_code = reason, code
        self.is_leader = False

    def gone_wrong(self, error: Exception) -> KafkaError:
        """Go offline because of what the log has raised; return what a client is told, `on_gone_wrong` tells others."""
        if isinstance(error, StorageError):
            _logger.error("partition %s goes offline: %s", self.partition, error, extra=blame(error))
        else:
            _logger.error("partition %s goes offline", self.partition, exc_info=error)
        self.failed(error)
        if self.on_gone_wrong is not None:
            self.on_gone_wrong(self)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    def failed(self, error: Exception) -> None:
        """Serve nothing any more because of an error; `lacks_room` tells that it passes when the disk has room."""
        self.go_offline(str(error) or repr(error))
        self.lacks_room = self.lacks_room or (isinstance(error, DiskError) and error.is_disk_full)

    def pause(self, reason: str) -> None:
        """Serve nothing until `resume`; a state that metadata has meanwhile waits in `state_after_pause`."""
        self.go_offline(reason)
        self.is_paused = True

    def resume(self, log: PartitionLog, tiered_log: TieredLog | None) -> None:
        """Serve again, from `log`, or what wraps it; what of it is durable counts."""
        self.take_log(log, tiered_log)
        self.end_pause()
        self.note_appended(log.recovery_point)

    def end_pause(self) -> None:
        """Serve again, from the log that it has."""
        self.offline_reason = None
        self.is_leader = leads_in(self.election, self.leader_epoch) and self.leader_id >= 0  # and it was carried out
        if self.is_leader:  # a log that was closed has forgotten an epoch without records, and followers ask for it
            self.log.assign_epoch(self.leader_epoch, self.epoch_begin)

    # ------------------------------------------------------------------------------------------------------------ read

    @property
    def low_watermark(self) -> int:
        """The offset below which no live replica has records any more, -1 while that of one is not known.

        A copy on its way to another log directory begins where this log does, and holds nobody up.
        """
        return self.election.low_watermark(self.log.log_start_offset)

    @property
    def is_moving(self) -> bool:
        """Whether its log is copied to another directory just now: its segments are to stay what they are."""
        return self.future is not None and self.future.is_under_way

    @property
    def last_stable_offset(self) -> int:
        """The first offset that a read_committed consumer may not see."""
        return self.producers.transactions.last_stable_offset(self.high_watermark)

    @property
    def offsets(self) -> LogOffsets:
        """All offsets that clients ask for."""
        return LogOffsets(
            self.log.log_start_offset, self.last_stable_offset, self.high_watermark, self.log.log_end_offset
        )

    def visible_end(self, isolation: IsolationLevel) -> int:
        """Return the first offset that a consumer of this isolation level may not read."""
        return self.last_stable_offset if isolation == READ_COMMITTED else self.high_watermark

    def read(
        self, offset: int, max_bytes: int, isolation: IsolationLevel, *, is_follower: bool, at_least_one: bool
    ) -> LogRead:
        """Read whole batches from the one that holds `offset` on, as far as the reader may see.

        Args:
            offset: Where to begin.
            max_bytes: At most so many bytes.
            isolation: What a consumer sees of transactions.
            is_follower: Whether a replica reads: it sees everything that is appended.
            at_least_one: Whether the first batch is given even when it is larger.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE when the offset is below the log start or above the end.
            RecordsAreRemoteError: They are not at hand, or a replica asks for what is no more local.
        """
        log = self.log
        end = self.appended_offset if is_follower else self.visible_end(isolation)
        if offset >= end:
            if offset > log.log_end_offset:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            return EMPTY_READ
        if offset < log.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if is_follower and self.tiered_log is not None and offset < self.tiered_log.local_log_start_offset:
            raise RecordsAreRemoteError  # at hand or not
        try:
            return log.read(offset, max_bytes, end, at_least_one=at_least_one)
        except (KafkaError, StorageError):
            raise
        except Exception as error:
            raise self.gone_wrong(error) from error

    def close(self) -> None:
        """Close the log; nothing may be called afterwards."""
        self.log.close()
