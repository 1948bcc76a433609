"""Shell: opens this controller's replica of the metadata log: what its directory says, under an election that votes.

What an election must never forget is kept beside the log. A directory that has lost it might vote a second time in an
epoch, so it is refused where the log says that this replica has voted; so is one that cannot be read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..config.topic import TopicConfig
from ..contracts.election import ElectionContext, MetadataChanged, PartitionState
from ..controller.opening import choose_metadata_election
from ..controller.quorum_state import QuorumState
from ..controller.small_files import telling_disk_errors
from ..controller.snapshots import SnapshotId, SnapshotStore
from ..errors import CorruptionError, StorageError
from ..records.batch import is_crc_valid, read_header
from ..records.control import KRaftVoters, LeaderChange, read_control_records
from ..types import ZERO_ID
from .log_epochs import NO_SNAPSHOT, LogEpochs
from .quorum_log import QuorumLog
from .voter_history import VoterHistory

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..config.broker import BrokerConfig
    from ..contracts.election import Election, ElectionFactory
    from ..contracts.storage import PartitionLog
    from ..machine.files import Files
    from ..machine.machine import Machine
    from ..records.control import ControlRecord

BEGIN_ANEW: Final = (
    "restore the directory from a backup of this very moment, or, where a majority of the other controllers lives, "
    "remove this controller from the voters, empty its directory, and add it as a new one"
)


@frozen(kw_only=True)
class BesideLog:
    """What stands beside a controller's log, and who votes by it.

    Attributes:
        snapshot: The newest that can be read.
        voters: As the snapshot names them, None where it does not.
        founding: As the founding of the cluster left them, for where snapshot and log say nothing.
        static_voters: Their ids by the configuration, for where nothing of these says it (kraft.version 0).
    """

    snapshot: SnapshotId = NO_SNAPSHOT
    voters: KRaftVoters | None = None
    founding: KRaftVoters | None = None
    static_voters: tuple[int, ...] = ()


def open_quorum_log(
    *,
    log: PartitionLog,
    beside: BesideLog,
    config: BrokerConfig,
    live_config: Callable[[], BrokerConfig],
    elections: Mapping[str, ElectionFactory],
    machine: Machine,
    directory_id: uuid.UUID,
) -> QuorumLog:
    """Open a controller's replica of the metadata log. Blocks; reads the log behind the snapshot.

    Args:
        log: The partition's log, open; owned by the replica from here on.
        beside: What stands beside it.
        config: The node's, as it started.
        live_config: Returns it as it is now, for the election.
        elections: By name; the one that `odradek.metadata.election` names.
        machine: The node's.
        directory_id: Of the log's directory.

    Raises:
        ConfigError: The election is none that votes.
        StorageError: The directory has lost what was promised, or the disk is failing.
        CorruptionError: What was promised cannot be read, or the log is damaged.
    """
    factory, snapshot = choose_metadata_election(config, elections, is_founded=True), beside.snapshot
    epochs = _epochs(log, snapshot, machine.files)
    records = list(_control_records(log, snapshot.end_offset))
    history = _history(records, beside)
    state = QuorumState(log.directory, machine.files)
    context = ElectionContext(
        partition=log.partition,
        broker_id=config.node_id,
        directory_id=directory_id,
        log_end_offset=log.log_end_offset,
        high_watermark=max(snapshot.end_offset, log.log_start_offset),
        log_end=lambda: epochs.end,
        hard_state=_kept(
            state, log, (config.node_id, directory_id), [*_in_snapshot(beside), *(each for _, each in records)]
        ),
        config=live_config,
        settings=TopicConfig.resolve(config).extra,
        random=machine.random,
        broker=lambda _broker_id: None,  # controllers are known by their fetches
    )
    opened = QuorumLog(
        log=log,
        epochs=epochs,
        voters=history,
        election=_new_election(factory, state, context),
        state=state,
        node_id=config.node_id,
        directory_id=directory_id,
        fixed=_by_ids(beside.static_voters),
        machine=machine,
        fetch_timeout_ms=config.get_int("controller.quorum.fetch.timeout.ms"),
    )
    opened.tell_voters()
    return opened


def _by_ids(voters: tuple[int, ...]) -> MetadataChanged:
    """Return what tells an election who votes where the log does not; nobody: it observes, until the log does."""
    return MetadataChanged(PartitionState(leader=-1, leader_epoch=0, partition_epoch=0, replicas=voters, isr=voters), 1)


def _in_snapshot(beside: BesideLog) -> tuple[ControlRecord, ...]:
    """Return what a snapshot of a log says of its quorum; the founding's is no log's yet."""
    return (beside.voters,) if beside.voters is not None and beside.snapshot.end_offset else ()


def _history(records: Sequence[tuple[int, ControlRecord]], beside: BesideLog) -> VoterHistory:
    """Return who votes, as the snapshot and these records of the log behind it name them, or else the founding."""
    history = VoterHistory()
    if beside.voters is not None:
        history.begin_anew(beside.snapshot.end_offset, beside.voters)
    else:
        history.begin_anew(0, beside.founding)
    for offset, record in records:
        if isinstance(record, KRaftVoters):
            history.add(offset, record)
    return history


def _epochs(log: PartitionLog, snapshot: SnapshotId, files: Files) -> LogEpochs:
    """Make what is there durable, begin behind the snapshot where the log does not go with it, and return its epochs.

    A snapshot of a larger epoch, or behind the log's end, was fetched, and a crash came before the log was begun anew:
    it may be another one than the leader's, and nobody may take it for committed.
    """
    if log.log_start_offset == log.log_end_offset:
        log.truncate_fully(
            log.log_end_offset
        )  # a log that was begun may be on no disk yet, and votes are kept beside it
    log.flush()  # what a crash left in memory alone counts as durable from here on
    epochs = LogEpochs(log, _before(log, snapshot, files))
    end = epochs.end
    if snapshot.end_offset and (snapshot.epoch > end.leader_epoch or snapshot.end_offset > end.end_offset):
        log.truncate_fully(snapshot.end_offset)
        log.flush()
        epochs.start = snapshot
    return epochs


def _before(log: PartitionLog, newest: SnapshotId, files: Files) -> SnapshotId:
    """Return what stands before the log's first record."""
    start_offset = log.log_start_offset
    if start_offset == 0:
        return NO_SNAPSHOT
    ids = [newest] if log.directory is None else SnapshotStore(directory=log.directory, files=files).ids()
    found = next((identifier for identifier in ids if identifier.end_offset == start_offset), None)
    if found is None:  # it is damaged, or was removed: the first epoch that is known is the least that it had
        entries = log.epoch_entries()
        found = SnapshotId(start_offset, entries[0][0] if entries else newest.epoch)
    return found


def reached_snapshot_end(directory: Path, files: Files) -> int:
    """Return where the newest snapshot ends that this log is known to have reached; 0 without one.

    A log is rolled behind each snapshot of its own. One that was fetched is kept before the log is begun anew behind
    it: a crash between the two leaves a log that ends before, and has lost nothing.

    Raises:
        StorageError: The directory cannot be read.
    """
    with telling_disk_errors("list", directory):
        names = [Path(entry.name) for entry in files.listdir(directory)]
    newest_base = max((int(name.stem) for name in names if name.suffix == ".log" and name.stem.isdigit()), default=0)
    ends = (identifier.end_offset for identifier in SnapshotStore(directory=directory, files=files).ids())
    return max((end for end in ends if end <= newest_base), default=0)


def _control_records(log: PartitionLog, start_offset: int) -> Iterator[tuple[int, ControlRecord]]:
    """Iterate over what the log says of its quorum, each with its offset.

    Raises:
        CorruptionError: A batch is damaged.
    """
    for batch in log.batches(max(start_offset, log.log_start_offset)):
        header = read_header(batch)
        if not header.is_control:
            continue
        if not is_crc_valid(batch, 0, header):
            raise CorruptionError(f"{log.directory}: the control batch at offset {header.base_offset} is damaged")
        for number, record in enumerate(read_control_records(bytes(batch), header)):
            yield header.base_offset + number, record


def _kept(
    state: QuorumState, log: PartitionLog, replica: tuple[int, uuid.UUID], records: Sequence[ControlRecord]
) -> bytes | None:
    """Return what was kept last, None for a directory in which this replica has never voted.

    Raises:
        StorageError: It was lost.
    """
    kept = state.read()
    if kept is None and any(_names(record, replica) for record in records):
        raise StorageError(
            f"{log.directory}: the log says that controller {replica[0]} votes, and its quorum-state is gone, so it "
            f"may have promised what it does not know any more; nothing was changed: {BEGIN_ANEW}"
        )
    return kept


def _names(record: ControlRecord, replica: tuple[int, uuid.UUID]) -> bool:
    """Return whether a record names a replica as one that votes; one without a directory means any of its node's."""
    if not isinstance(record, LeaderChange | KRaftVoters):
        return False
    named = [(voter.voter_id, voter.voter_directory_id) for voter in record.voters]
    return replica in named or (replica[0], ZERO_ID) in named


def _new_election(factory: ElectionFactory, state: QuorumState, context: ElectionContext) -> Election:
    try:
        return factory.new_election(context)
    except CorruptionError as error:
        raise CorruptionError(f"{state}: {error}; nothing was changed: {BEGIN_ANEW}") from error
