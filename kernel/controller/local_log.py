"""Shell: the partition of the metadata log on a single broker: a quorum of one, committed as soon as it is flushed.

Who leads and what is committed is the election's to say, here as for every partition: the plugin that
`odradek.metadata.election` names is told that this broker is the only voter, and answers. What it wants kept is kept
(`quorum_state.py`), what it wants appended is appended; one that wants something sent is refused, and one that does not
commit what its only voter has flushed stops the log: readers here see whatever is flushed. With several controllers an
object around a replica takes this one's place behind `ReplicatedLog`, which is what the metadata log needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ..classes import define
from ..contracts.election import MetadataChanged, PartitionState, Role
from ..errors import ConfigError, CorruptionError, PluginError, StorageError
from ..partitions.election_driver import carry_out
from ..records.batch import is_crc_valid, read_header
from ..records.builder import BatchBuilder
from ..records.reader import read_batch
from ..types import NO_EPOCH
from .snapshot_upkeep import ShortenedLog

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from ..contracts.election import Election
    from ..contracts.storage import PartitionLog
    from ..machine.threads import Workers
    from .voter_keeper import VoterKeeper


FIRST_EPOCH: Final = 1
"""Epoch 0 is a quorum's that has not elected anybody yet."""


class LoggedRecord(NamedTuple):
    """A record of the log: where it stands, and its value."""

    offset: int
    epoch: int
    value: bytes


class StoredLog(ShortenedLog, Protocol):
    """The metadata partition as it stands on a disk, whoever appends to it."""

    @property
    def directory(self) -> Path | None:
        """Where it lives, None without a disk."""
        ...

    @property
    def end_offset(self) -> int:
        """The next offset."""
        ...

    def batches(self, start_offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Return whole batches of `[start_offset, end_offset)`, at least one, as they stand in the log."""
        ...

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch at most `epoch` that the log knows, and where its records end."""
        ...


class ReplicatedLog(StoredLog, Protocol):
    """The metadata partition as its leader uses it. Belongs to one task."""

    @property
    def leader_epoch(self) -> int:
        """The epoch that appended records get."""
        ...

    def append_in_steps(self, values: Sequence[bytes], now_ms: int) -> Generator[None, None, int]:
        """Append records as one batch, all or none of which survive a crash; return the first one's offset."""
        ...

    async def commit(self) -> None:
        """Wait until everything that was appended is committed. Cancelled: it may become so.

        Raises:
            KafkaError: NOT_CONTROLLER: somebody else leads, who may commit it, or not.
            StorageError: The disk is full or failing.
        """
        ...

    def records(self, start_offset: int) -> Iterator[LoggedRecord]:
        """Iterate over the records from `start_offset` on."""
        ...


@define
class _OnlyVoter:
    """The replica, as its election sees it."""

    role: Role = Role.FOLLOWER
    leader_epoch: int = NO_EPOCH

    def take_role(self, role: Role, leader_id: int, leader_epoch: int) -> None:
        """See `ElectedReplica.take_role`."""
        self.role, self.leader_epoch = role, leader_epoch

    def raise_high_watermark(self, offset: int) -> None:
        """Do nothing: readers here see whatever is flushed, and each flush asks whether that is committed."""


def _refused(reason: str) -> ConfigError:
    return ConfigError(reason, where="odradek.metadata.election", hint="choose another one")


class PartitionRecords:
    """The metadata log of a node over the partition's log on its disk, whoever commits it. Belongs to one task."""

    def __init__(self, log: PartitionLog) -> None:
        """Take an open log."""
        self._log = log

    @property
    def directory(self) -> Path | None:
        """Where it lives, None without a disk."""
        return self._log.directory

    @property
    def start_offset(self) -> int:
        """The first offset that is still there."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """The next offset."""
        return self._log.log_end_offset

    def records(self, start_offset: int) -> Iterator[LoggedRecord]:
        """Iterate over the records from `start_offset` on; what is not committed may be taken back.

        Raises:
            CorruptionError: A batch is damaged or missing.
        """
        return logged_records(self._log, start_offset)

    def batches(self, start_offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Return whole batches of `[start_offset, end_offset)`, at least one, as they stand in the log.

        Raises:
            StorageError: The disk is failing.
        """
        parts: list[bytes] = []
        size_bytes = 0
        for batch in self._log.batches(start_offset, end_offset):
            if parts and size_bytes + len(batch) > max_bytes:
                break
            parts.append(bytes(batch))
            size_bytes += len(batch)
        return b"".join(parts)

    def drop_below(self, offset: int) -> None:
        """Give up whole segments below `offset`.

        Raises:
            StorageError: The disk is failing.
        """
        self._log.roll()
        self._log.advance_log_start(offset)
        self._log.delete_segments_below(offset)


class LocalLog(PartitionRecords):
    """`ReplicatedLog` on a log of this broker alone. Every life of the process leads in an epoch of its own."""

    def __init__(
        self,
        log: PartitionLog,
        election: Election,
        broker_id: int,
        *,
        worker: Workers,
        snapshot_epoch: int = NO_EPOCH,
        keeper: VoterKeeper | None = None,
    ) -> None:
        """Take an open log and have its only replica elected; appends nothing but what the election begins with.

        Args:
            log: The partition's log.
            election: Of this replica, fresh from its factory.
            broker_id: This broker, the only voter.
            worker: The thread that flushes.
            snapshot_epoch: Of the newest snapshot, behind which the log may have no record that tells an epoch.
            keeper: Keeps and appends for the election; None for one that may not want that.

        Raises:
            ConfigError: The election does not let a single voter lead, or wants what one broker alone cannot do.
        """
        super().__init__(log)
        self._election = election
        self._worker = worker
        voters = (broker_id,)
        state = PartitionState(
            leader=broker_id,
            leader_epoch=max(log.latest_epoch + 1, snapshot_epoch + 1, FIRST_EPOCH),
            partition_epoch=0,
            replicas=voters,
            isr=voters,
        )
        voter = _OnlyVoter()
        election.step(MetadataChanged(state, 1))
        try:
            carry_out(election, voter, keeper=keeper)
        except PluginError as error:
            raise _refused(str(error)) from error
        if voter.role is not Role.LEADER:
            raise _refused(f"the election of the metadata log leaves its only voter a {voter.role.value}")
        self._leader_epoch = voter.leader_epoch

    def __repr__(self) -> str:
        return f"LocalLog([{self.start_offset}, {self.end_offset}), epoch {self._leader_epoch})"

    @property
    def leader_epoch(self) -> int:
        """The epoch that appended records get."""
        return self._leader_epoch

    def append_in_steps(self, values: Sequence[bytes], now_ms: int) -> Generator[None, None, int]:
        """Append records as one batch and return the first one's offset; nothing is appended before the last step.

        Raises:
            StorageError: The disk is full or failing; the log is offline.
        """
        assert values, "a batch has records"
        base_offset = self._log.log_end_offset
        builder = BatchBuilder(base_offset=base_offset, partition_leader_epoch=self._leader_epoch)
        for value in values:
            builder.append(None, value, timestamp=now_ms)
            yield
        self._log.assign_epoch(self._leader_epoch, base_offset)
        self._log.append(builder.build(), base_offset, base_offset + len(values) - 1, now_ms)
        self._log.write_pending()
        return base_offset

    async def commit(self) -> None:
        """Make everything that was appended durable, which commits it. Cancelled: it is done, or not begun.

        Raises:
            StorageError: The disk is full or failing; or the election does not commit it.
        """
        await self._worker.do(self._log.begin_flush())
        flushed = self._log.recovery_point
        committed = self._election.local_append(flushed)
        if committed < flushed:
            raise StorageError(
                f"{self._log.directory}: the election {type(self._election).__name__} commits the records below "
                f"offset {committed}, and its only voter has flushed those below {flushed}"
            )

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch at most `epoch` that the log knows, and where its records end."""
        found = self._log.end_offset_for_epoch(epoch)
        return found.leader_epoch, found.end_offset


def logged_records(log: PartitionLog, start_offset: int) -> Iterator[LoggedRecord]:
    """Iterate over the records of a metadata log from `start_offset` on.

    Raises:
        CorruptionError: A batch is damaged or missing.
    """
    next_offset = start_offset
    for batch in log.batches(start_offset):
        header = read_header(batch)
        if header.base_offset > next_offset or not is_crc_valid(batch, 0, header):
            raise CorruptionError(f"{log.directory}: the record batch at offset {next_offset} is damaged or gone")
        next_offset = header.next_offset
        if header.is_control:
            continue
        for record in read_batch(batch, 0, header):
            if record.offset >= start_offset:
                yield LoggedRecord(record.offset, header.partition_leader_epoch, bytes(record.value or b""))
    if next_offset < log.log_end_offset:
        raise CorruptionError(f"{log.directory}: the records from offset {next_offset} on are gone")
