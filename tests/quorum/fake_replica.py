"""A replica of the metadata log whose election is the test: it says who leads, and what is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from odradek.kernel.contracts.election import Role
from odradek.kernel.controller.local_log import LoggedRecord
from odradek.kernel.controller.snapshots import SnapshotId
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.features import METADATA_VERSION_MAX
from odradek.kernel.metadata.records import MetadataRecord, encode_record
from odradek.kernel.records.batch import assign_offset_and_epoch, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import KRaftControlRecord, KRaftVoters, LeaderChange, build_control_batch
from odradek.kernel.records.reader import read_batch

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from odradek.kernel.wire.message import Message


class FakeReplica:
    """What `QuorumLog` shows of itself, in memory; a directory is for snapshots alone.

    Attributes:
        commits_at_once: Whether a leader's `commit` commits; where not, `commit_all` does, or the lead is lost first.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory
        self.role, self.leader_id, self.leader_epoch = Role.FOLLOWER, -1, -1
        self.start_offset = self.high_watermark = 0
        self.epoch_start: int | None = None
        self.commits_at_once = True
        self.batches_here: list[bytes] = []
        self.named: list[tuple[int, KRaftVoters]] = []
        self._snapshot_end = 0
        self._changed = trio.Event()

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        return read_header(self.batches_here[-1]).next_offset if self.batches_here else self._snapshot_end

    @property
    def latest_epoch(self) -> int:
        return read_header(self.batches_here[-1]).partition_leader_epoch if self.batches_here else -1

    def leads(self, leader_epoch: int) -> bool:
        return self.role is Role.LEADER and self.leader_epoch == leader_epoch

    @property
    def voters(self) -> KRaftVoters | None:
        return self.voters_at(self.end_offset)

    async def ask(self, broker_id: int, request: Message) -> Message:
        """Answer as the election that names voters."""
        raise AssertionError(f"nobody asks this election: {broker_id}, {request}")

    def voters_at(self, offset: int) -> KRaftVoters | None:
        return next((record for at, record in reversed(self.named) if at <= offset), None)

    async def wait_changed(self) -> None:
        await self._changed.wait()

    def tell_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # -- what a test does ----------------------------------------------------------------------------------------------

    def win(self, leader_epoch: int) -> None:
        """Lead; the epoch's first record is committed with what is there."""
        self.role, self.leader_id, self.leader_epoch = Role.LEADER, 1, leader_epoch
        self.epoch_start = self.end_offset
        self.append_control(LeaderChange(leader_id=1))
        self.commit_all()

    def lose(self, leader_id: int, leader_epoch: int) -> None:
        """Follow another one; what is not committed stays until `truncate`."""
        self.role, self.leader_id, self.leader_epoch, self.epoch_start = Role.FOLLOWER, leader_id, leader_epoch, None
        self.tell_change()

    def truncate(self) -> None:
        """Give up what is not committed."""
        self.batches_here = [each for each in self.batches_here if read_header(each).next_offset <= self.high_watermark]
        self.tell_change()

    def commit_all(self) -> None:
        """Have all that is here committed."""
        self.high_watermark = self.end_offset
        self.tell_change()

    def append_control(self, *records: KRaftControlRecord) -> None:
        """Append what the quorum says of itself."""
        offset, epoch = self.end_offset, self.leader_epoch
        self.named += [(offset + n, each) for n, each in enumerate(records) if isinstance(each, KRaftVoters)]
        batch = build_control_batch(records, timestamp=0, base_offset=offset, partition_leader_epoch=epoch)
        self.batches_here.append(bytes(batch))
        self.tell_change()

    def fetch(self, *records: MetadataRecord) -> None:
        """Have records that the leader has appended, as one batch."""
        builder = BatchBuilder(partition_leader_epoch=self.leader_epoch)
        for record in records:
            builder.append(None, encode_record(record, METADATA_VERSION_MAX), timestamp=0)
        self._append(builder)

    # -- `ReplicatedLog` and what is fetched into ----------------------------------------------------------------------

    def _append(self, builder: BatchBuilder) -> int:
        batch, base_offset = builder.build(), self.end_offset
        assign_offset_and_epoch(batch, read_header(batch), base_offset, self.leader_epoch)
        self.batches_here.append(bytes(batch))
        self.tell_change()
        return base_offset

    def append_in_steps(self, values: Sequence[bytes], now_ms: int) -> Generator[None, None, int]:
        builder = BatchBuilder(partition_leader_epoch=self.leader_epoch)
        for value in values:
            builder.append(None, value, timestamp=now_ms)
            yield
        if self.role is not Role.LEADER:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return self._append(builder)

    async def commit(self) -> None:
        leader_epoch, end = self.leader_epoch, self.end_offset
        if self.commits_at_once:
            self.commit_all()
        while self.high_watermark < end:
            if not self.leads(leader_epoch):
                raise KafkaError(ErrorCode.NOT_CONTROLLER)
            await self.wait_changed()

    def records(self, start_offset: int) -> Iterator[LoggedRecord]:
        for batch in self.batches_here:
            header = read_header(batch)
            if header.next_offset <= start_offset or header.is_control:
                continue
            for record in read_batch(batch, 0, header):
                yield LoggedRecord(record.offset, header.partition_leader_epoch, bytes(record.value or b""))

    def batches(self, start_offset: int, end_offset: int, max_bytes: int) -> bytes:
        wanted = [each for each in self.batches_here if start_offset < read_header(each).next_offset]
        return b"".join(each for each in wanted if read_header(each).base_offset < end_offset)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        known = [read_header(each) for each in self.batches_here]
        found = [each for each in known if each.partition_leader_epoch <= epoch]
        return (found[-1].partition_leader_epoch, found[-1].next_offset) if found else (-1, self.start_offset)

    async def give_up(self) -> None:
        if self.role is Role.LEADER:
            self.lose(-1, self.leader_epoch)

    def drop_below(self, offset: int) -> None:
        assert offset <= self.high_watermark, "only what is committed is given up"
        self.start_offset = offset
        self.batches_here = [each for each in self.batches_here if read_header(each).next_offset > offset]

    def begin_anew(self, identifier: SnapshotId, voters: KRaftVoters | None) -> None:
        if self.role is not Role.FOLLOWER:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.batches_here = []
        self.start_offset = self.high_watermark = self._snapshot_end = identifier.end_offset
        self.named = [] if voters is None else [(identifier.end_offset - 1, voters)]
        self.tell_change()
