"""Shell: this controller's replica of the metadata log, whose voters elect their leader among themselves.

    leader      append ──> flush ──> the election counts it ──> a majority fetched it ──> high watermark: committed
    follower    fetched ──> append ──> flush ──> the election counts it ──> the next fetch says so to the leader

`ReplicatedLog` for the metadata log of a term (`controller/metadata_log.py`), a log that is fetched into for who
follows, and what both and requests ask of it. Roles are as carried out: one that is won counts when what it rests on is
kept; one that is lost, for whatever is appended, from the moment in which the election knows it.

What a log and its snapshot say of voters is told the election as it changes (`voter_history.py`): appended, truncated,
begun anew.

*Source:* KIP-595, KIP-630, KIP-853; KafkaRaftClient and KafkaMetadataLog of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ..contracts.election import NO_BROKER_EPOCH, LeadershipGivenUp, Role
from ..controller.local_log import PartitionRecords
from ..controller.snapshots import SnapshotId
from ..controller.voter_keeper import VoterKeeper
from ..errors import CorruptionError, ErrorCode, KafkaError, StorageError
from ..machine.threads import Workers
from ..partitions.election_driver import leads_in
from ..partitions.following import diverging_offset
from ..records.batch import assign_offset_and_epoch, is_crc_valid, iterate_batches, read_header
from ..records.builder import BatchBuilder
from ..records.control import KRaftVoters, read_control_records
from ..replication.election_service import ElectionService
from .quorum_times import QuorumTimes

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Generator, Sequence

    from ..contracts.election import Election, ElectionInput, PeerMessage
    from ..contracts.log_values import EpochEnd
    from ..contracts.storage import PartitionLog
    from ..controller.quorum_state import QuorumState
    from ..machine.machine import Machine
    from ..records.batch import BatchHeader
    from ..records.control import ControlRecord
    from ..types import Buffer
    from ..wire.message import Message
    from .log_epochs import LogEpochs
    from .voter_history import VoterHistory


class QuorumLog(PartitionRecords):
    """Life: opened (`quorum/opening.py`), `run` as a task beside whoever uses it. Owned by one trio run; plain calls.

    Invariants: `start_offset <= high_watermark <= flushed_offset <= end_offset`; the high watermark only grows, and
    nothing below it is truncated.

    Attributes:
        node_id: This controller.
        directory_id: Of the directory in which the log lies.
        role: As carried out.
        leader_id: Who leads, -1 when unknown.
        leader_epoch: The epoch that goes with it, -1 before the first.
        high_watermark: The first offset that is not known to be committed.
        epoch_start: Where the first record of this leader's epoch stands, None while it does not lead.
        epochs: The leader epochs of the log, and what stands before it.
        service: What runs the election.
        times: How long elections and commits took.
    """

    def __init__(
        self,
        *,
        log: PartitionLog,
        epochs: LogEpochs,
        voters: VoterHistory,
        election: Election,
        state: QuorumState,
        node_id: int,
        directory_id: uuid.UUID,
        fixed: ElectionInput,
        machine: Machine,
        fetch_timeout_ms: int,
    ) -> None:
        """Take an open log, all of which is durable, and its election, which was told nothing yet.

        `fixed` tells it who votes where the log does not.
        """
        super().__init__(log)
        self.node_id, self.directory_id = node_id, directory_id
        self.role, self.leader_id, self.leader_epoch = Role.FOLLOWER, -1, -1
        self.high_watermark = election.high_watermark
        self.epoch_start: int | None = None
        self.epochs = epochs
        self._election, self._voters, self._fixed = election, voters, fixed
        self.times = QuorumTimes()
        self._clock = machine.clock
        self._worker = Workers(machine.threads, 1)
        self._moved: trio.Event | None = None
        self.service = ElectionService(
            election,
            self,
            VoterKeeper(log, state, machine.clock.now_ms, self._take_control_records),
            clock=machine.clock,
            worker=Workers(machine.threads, 1),
            fetch_timeout_ms=fetch_timeout_ms,
        )

    def __repr__(self) -> str:
        return (
            f"QuorumLog({self.node_id}, {self.role.value} in epoch {self.leader_epoch} of {self.leader_id}, "
            f"[{self.start_offset}, {self.end_offset}), committed below {self.high_watermark})"
        )

    # ------------------------------------------------------------------------------------------------ what is known

    @property
    def flushed_offset(self) -> int:
        """Up to where it is durable."""
        return self._log.recovery_point

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last record, here or in the snapshot before; -1 where there was none yet."""
        return self.epochs.end.leader_epoch

    @property
    def voters(self) -> KRaftVoters | None:
        """Who votes, as the log and its snapshot name them; None where they are set from outside (kraft.version 0)."""
        return self._voters.newest

    def voters_at(self, offset: int) -> KRaftVoters | None:
        """Return who voted by what stands up to an offset, it included, of those that no snapshot has made past."""
        return self._voters.at(offset)

    def leads(self, leader_epoch: int) -> bool:
        """Return whether this replica leads in an epoch, and nothing is known that ends it."""
        is_carried_out = self.role is Role.LEADER and self.leader_epoch == leader_epoch
        return is_carried_out and leads_in(self._election, leader_epoch)

    def follows(self, leader_epoch: int) -> bool:
        """Return whether this replica takes what the leader of an epoch has, and nothing is known that ends it."""
        is_carried_out = self.role is Role.FOLLOWER and self.leader_epoch == leader_epoch
        election = self._election
        return is_carried_out and election.role is Role.FOLLOWER and election.leader_epoch == leader_epoch

    async def wait_changed(self) -> None:
        """Wait for the next change of a role, an offset or the voters."""
        if self._moved is None:
            self._moved = trio.Event()
        await self._moved.wait()

    def _tell_change(self) -> None:
        if self._moved is not None:
            self._moved.set()
            self._moved = None

    # --------------------------------------------------------------------------------------------------- the election

    async def run(
        self,
        send: Callable[[Sequence[PeerMessage]], object],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the election until cancelled.

        Args:
            send: Sends messages to other voters, and does not wait for that.
            task_status: Told when it runs.

        Raises:
            StorageError: A disk refused what had to be kept: this replica is to be given up.
        """
        await self.service.run(send, task_status=task_status)

    def step(self, event: ElectionInput) -> None:
        """Have the election take an input."""
        self.service.step(event)

    async def ask(self, broker_id: int, request: Message) -> Message:
        """Have the election answer a request of its protocol; see `ElectionService.ask`."""
        return await self.service.ask(broker_id, request)

    async def give_up(self) -> None:
        """Lead no more, and have the others told who is to; return when they are. Cancelled: they will be."""
        self.step(LeadershipGivenUp())
        while self.role is Role.LEADER and not leads_in(self._election, self.leader_epoch):
            await self.wait_changed()

    def take_role(self, role: Role, leader_id: int, leader_epoch: int) -> None:
        """See `ElectedReplica.take_role`."""
        is_new = (role, leader_epoch) != (self.role, self.leader_epoch)
        self.times.take_role(role, leader_id, self._clock.monotonic_ms())
        self.role, self.leader_id, self.leader_epoch = role, leader_id, leader_epoch
        if role is not Role.LEADER:
            self.epoch_start = None
        elif is_new:
            self.epoch_start = self.end_offset
        self._tell_change()

    def raise_high_watermark(self, offset: int) -> None:
        """See `ElectedReplica.raise_high_watermark`."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            self._tell_change()

    def _take_control_records(self, base_offset: int, records: Sequence[ControlRecord]) -> None:
        """Take note of what the log says of its quorum from an offset on; voters count at once."""
        named = [(base_offset + number, each) for number, each in enumerate(records) if isinstance(each, KRaftVoters)]
        for offset, record in named:
            self._voters.add(offset, record)
        if named:
            self.tell_voters()
        self._tell_change()

    def tell_voters(self) -> None:
        """Tell the election who votes, as log or snapshot name them, or else the configuration."""
        self.step(self._voters.event() or self._fixed)

    def _count_flushed(self) -> None:
        """Tell the election, and whoever waits, how far the log is durable."""
        self.raise_high_watermark(self._election.local_append(self.flushed_offset))
        self.service.wake()
        self._tell_change()

    # ---------------------------------------------------------------------------------------------------- the leader

    def append_in_steps(self, values: Sequence[bytes], now_ms: int) -> Generator[None, None, int]:
        """Append records as one batch and return the first one's offset; nothing is appended before the last step.

        What the quorum says of itself may be appended meanwhile, so that offset is known at the end.

        Raises:
            KafkaError: NOT_CONTROLLER: this replica does not lead, or the lead was lost on the way.
            StorageError: The disk is full or failing; the log is offline.
        """
        assert values, "a batch has records"
        leader_epoch = self.leader_epoch
        self._check_leads(leader_epoch)
        builder = BatchBuilder()
        for value in values:
            builder.append(None, value, timestamp=now_ms)
            yield
        batch = builder.build()
        self._check_leads(leader_epoch)
        base_offset = self.end_offset
        header = read_header(batch)
        assign_offset_and_epoch(batch, header, base_offset, leader_epoch)
        self._append(batch, header)
        self._log.write_pending()
        self._tell_change()
        return base_offset

    def _check_leads(self, leader_epoch: int) -> None:
        if not self.leads(leader_epoch):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this controller does not lead any more")

    async def commit(self) -> None:
        """Wait until everything appended is durable here and on a majority. Cancelled: it may be so later.

        Raises:
            KafkaError: NOT_CONTROLLER: the lead was lost; whether it is committed only the next leader knows.
            StorageError: The log is offline.
        """
        leader_epoch, end_offset, began_ms = self.leader_epoch, self.end_offset, self._clock.monotonic_ms()
        self._check_leads(leader_epoch)
        await self._flush()
        while True:
            self._check_leads(leader_epoch)
            if self.high_watermark >= end_offset:
                break
            await self.wait_changed()
        self.times.commits.record(self._clock.monotonic_ms() - began_ms)

    async def _flush(self) -> None:
        if self.flushed_offset < self.end_offset:
            await self._worker.do(self._log.begin_flush())
            self._count_flushed()

    def drop_below(self, offset: int) -> None:
        """Give up whole segments below `offset`, which a snapshot holds: nothing that is not committed.

        Raises:
            StorageError: The disk is failing.
        """
        assert offset <= self.high_watermark, "what is given up is committed"
        if offset <= self.start_offset:
            return
        start = SnapshotId(offset, self.epochs.at(offset))
        super().drop_below(offset)
        self.epochs.start = start
        self._voters.forget_below(offset)
        self._tell_change()

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch at most `epoch` that the log knows, and where its records end."""
        return self.epochs.end_of(epoch)

    def diverges(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """See `LogEpochs.diverges`; `LogEpochs.needs_snapshot` is to be asked before."""
        return self.epochs.diverges(last_fetched_epoch, fetch_offset)

    def follower_fetch(self, replica_id: int, directory_id: uuid.UUID, fetch_offset: int) -> None:
        """Take note that a replica has everything below `fetch_offset`: it fetched in this epoch, and agrees."""
        now_ms = self._clock.monotonic_ms()
        high_watermark = self._election.follower_fetch(
            replica_id, NO_BROKER_EPOCH, fetch_offset, -1, now_ms, directory_id
        )
        self.raise_high_watermark(high_watermark)
        self.service.wake()

    # -------------------------------------------------------------------------------------------------- the follower

    def append_fetched_in_steps(self, records: Buffer, leader_epoch: int) -> Generator[None, None, None]:
        """Append batches of an epoch's leader as they are; nothing more once role or epoch have changed.

        Args:
            records: As they came; a batch that is cut off at the end is left out.
            leader_epoch: In which they were fetched.

        Raises:
            CorruptionError: A batch is damaged, or does not follow on what is here; those before it are appended.
            StorageError: The disk is full or failing; the log is offline.
        """
        for position, header in iterate_batches(records):
            if not self.follows(leader_epoch):
                return
            self._check_fetched(records, position, header, leader_epoch)
            batch = bytearray(memoryview(records)[position : position + header.length_bytes])
            control = read_control_records(batch, header) if header.is_control else ()
            self._append(batch, header)
            self._log.write_pending()
            self._take_control_records(header.base_offset, control)
            yield

    def _check_fetched(self, records: Buffer, position: int, header: BatchHeader, leader_epoch: int) -> None:
        epoch = header.partition_leader_epoch
        if header.base_offset != self.end_offset or header.last_offset_delta < 0:
            raise CorruptionError(
                f"controller {self.leader_id} sent a batch at offset {header.base_offset}, not {self.end_offset}"
            )
        if not max(self.latest_epoch, 0) <= epoch <= leader_epoch or not is_crc_valid(records, position, header):
            raise CorruptionError(
                f"controller {self.leader_id} sent a damaged batch at offset {header.base_offset}, of epoch {epoch}"
            )

    def _append(self, batch: bytearray, header: BatchHeader) -> None:
        self._log.assign_epoch(header.partition_leader_epoch, header.base_offset)
        self._log.append(batch, header.base_offset, header.last_offset, header.max_timestamp)

    async def flush(self) -> None:
        """Make everything appended durable: to be waited for before each fetch, which tells a leader of it.

        Also before the first in an epoch, as what this replica had appended as a leader itself may not be durable yet.
        Nothing waits where all is. Cancelled: it may be durable later, and is told by the next call.

        Raises:
            StorageError: The log is offline.
        """
        await self._flush()

    def learn_high_watermark(self, offset: int) -> None:
        """Take note of what the leader says is committed: it counts as far as this log is durable."""
        self.raise_high_watermark(self._election.leader_high_watermark(offset))
        self.service.wake()

    def diverging_offset(self, leader_epoch: int, end_offset: int) -> int:
        """Return where this log is to be truncated, as the leader's last epoch up to ours ends there."""
        return max(diverging_offset(self._log, leader_epoch, end_offset), self.start_offset)

    def truncate(self, offset: int) -> None:
        """Give up everything at or above an offset, where the leader's log is another one. Durable on return.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER: this replica follows nobody any more, or another leader.
            StorageError: That is committed, so the leader lost it; or the disk is failing.
        """
        self._check_follows()
        if offset < self.high_watermark:
            raise StorageError(
                f"{self._log.directory}: the controller {self.leader_id}, leader of epoch {self.leader_epoch}, has "
                f"another log from offset {offset} on, and the records below {self.high_watermark} were committed: a "
                "majority of the controllers lost what they had acknowledged"
            )
        self._log.truncate_to(offset)
        has_changed = self._voters.truncate_to(self.end_offset)
        self._count_flushed()
        if has_changed:
            self.tell_voters()

    def begin_anew(self, identifier: SnapshotId, voters: KRaftVoters | None) -> None:
        """Give up the whole log and go on behind a snapshot of the leader, which is kept already. Durable on return.

        Args:
            identifier: Of the snapshot.
            voters: As the snapshot names them.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER: this replica follows nobody any more, or another leader.
            StorageError: The snapshot ends before what is committed here; or the disk is failing.
        """
        self._check_follows()
        if identifier.end_offset < self.high_watermark:
            raise StorageError(
                f"{self._log.directory}: the controller {self.leader_id} sent a snapshot that ends at "
                f"{identifier.end_offset}, and the records below {self.high_watermark} were committed"
            )
        self._log.truncate_fully(identifier.end_offset)
        self._log.flush()  # an empty file: the recovery point moves behind what is given up
        self.epochs.start = identifier
        self._voters.begin_anew(identifier.end_offset, voters)
        self.tell_voters()
        self._count_flushed()
        self.learn_high_watermark(identifier.end_offset)

    def _check_follows(self) -> None:
        """See that nothing is given up that this replica has asked votes for."""
        if not self.follows(self.leader_epoch):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this controller does not follow this leader any more")
