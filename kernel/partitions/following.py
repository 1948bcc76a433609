"""Shell: what a follower does with its replica: takes batches as its leader numbered them, and gives up what diverges.

    append      as many batches as a fetch brought: headers and CRCs are checked, no record is looked at
    truncate    where the leader's log went another way: never by the high watermark (KIP-101, KIP-279, KIP-595)
    begin anew  where the leader's log starts behind this one's end; where the store's part of a tiered log ends

Whatever falls, falls with everything that was derived of it: producers, their snapshots, transaction and time indexes,
leader epochs, `appended_offset`, and the high watermark of what an unclean election lost. What is left of the producers
is read from the log again, which may take long: `truncate` pauses the replica, `rebuild_after_cut` has it served again.

*Source:* Kafka 4.3's UnifiedLog.appendAsFollower, LocalLog.truncateTo, AbstractFetcherThread.getOffsetTruncationState,
Partition.appendRecordsToFollowerOrFutureReplica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from ..errors import ErrorCode, KafkaError
from ..machine.turnstile import Slices
from ..records.batch import CorruptRecordsError, is_crc_valid, iterate_batches
from ..records.control import EndTransactionMarker, read_control_record
from ..types import NO_EPOCH
from .delay_recovery import delete_checkpoints, read_delays_in_steps
from .leading import advance_log_start
from .recovery import knows_producers, rebuild_in_steps, rebuild_producers
from .replica import NOT_LEADER

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..contracts.storage import PartitionLog
    from ..contracts.tiering import TierStart
    from ..records.batch import BatchHeader
    from ..types import Buffer
    from .replica import Replica
    from .replica_lifecycle import ReplicaLifecycle

REBUILDING: Final = "its log was truncated, and its producers are read from it again"
"""Why a replica is paused from a truncation until `rebuild_after_cut` is done."""


class Batch(NamedTuple):
    """One batch that a leader sent, whose CRC is right."""

    header: BatchHeader
    data: memoryview


def append_as_follower(replica: Replica, records: Buffer) -> int:
    """Stage the batches of a fetch, all or none; return how many bytes.

    Batches of an epoch that this replica does not know yet, and a batch that is cut off, are left for the next fetch.

    Args:
        replica: Where.
        records: As the leader sent them. Borrowed until `write`.

    Raises:
        KafkaError: This replica leads, or is offline.
        CorruptRecordsError: A batch is damaged, or not behind the one before; nothing was staged.
    """
    check_follower(replica)
    batches = _checked(replica, memoryview(records))
    try:
        for batch in batches:
            _append(replica, batch)
    except Exception as error:  # a disk, or a bug of the storage: what it has taken is not certain
        raise replica.gone_wrong(error) from error
    return sum(len(batch.data) for batch in batches)


def check_follower(replica: Replica) -> None:
    """See that a replica takes what another leads.

    Raises:
        KafkaError: It leads itself, or is offline.
    """
    if replica.offline_reason is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    if replica.is_leader:
        raise KafkaError(NOT_LEADER)


def _checked(replica: Replica, records: memoryview) -> list[Batch]:
    batches = []
    next_offset = replica.log.log_end_offset
    for position, header in iterate_batches(records):
        if header.partition_leader_epoch > replica.leader_epoch:
            break
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            raise CorruptRecordsError(
                f"{replica.partition}: the leader sent a batch [{header.base_offset}, {header.next_offset}) where one "
                f"from {next_offset} on was expected",
                position=position,
            )
        if not is_crc_valid(records, position, header):
            raise CorruptRecordsError(
                f"{replica.partition}: the batch at offset {header.base_offset} does not carry its own CRC",
                position=position,
            )
        batches.append(Batch(header, records[position : position + header.length_bytes]))
        next_offset = header.next_offset
    return batches


def _append(replica: Replica, batch: Batch) -> None:
    log, header = replica.log, batch.header
    if header.partition_leader_epoch > log.latest_epoch:
        log.assign_epoch(header.partition_leader_epoch, header.base_offset)
    log.append(batch.data, header.base_offset, header.last_offset, header.max_timestamp)
    if replica.tiered_log is not None:
        replica.keep_producers_at_roll()
    if replica.delays is not None:
        replica.delays.saw(batch.data, header)
    if header.producer_id < 0:
        return
    if not header.is_control:
        replica.producers.append(header)
    elif header.records_count:  # else compaction left it: of its transaction there is nothing any more
        marker = read_control_record(batch.data, header)
        if isinstance(marker, EndTransactionMarker):
            replica.end_transaction(header, marker)


def note_leader(replica: Replica, high_watermark: int, log_start_offset: int) -> None:
    """Take note of what the leader says is committed, and where its log starts; both count as far as this log goes.

    Whoever follows tells `Replicas.changed` of it, after this and after a truncation: upkeep looks at no other replica.

    Raises:
        KafkaError: The log failed.
    """
    replica.raise_high_watermark(replica.election.leader_high_watermark(high_watermark))
    start_offset = min(log_start_offset, replica.high_watermark)
    if start_offset > replica.log.log_start_offset:
        try:
            advance_log_start(replica, start_offset)
        except Exception as error:
            raise replica.gone_wrong(error) from error


def diverging_offset(log: PartitionLog, leader_epoch: int, end_offset: int) -> int:
    """Return where a log is to be truncated whose leader's largest epoch at most the log's latest ends there.

    If the follower does not know that epoch either, it goes back to the end of the largest one before it, and asks
    again.
    """
    mine = log.end_offset_for_epoch(leader_epoch)
    if mine.leader_epoch < 0:
        return min(end_offset, log.log_end_offset)
    if mine.leader_epoch != leader_epoch:
        return min(mine.end_offset, log.log_end_offset)
    return min(mine.end_offset, end_offset, log.log_end_offset)


def truncate(replica: Replica, offset: int) -> bool:
    """Give up every batch with an offset at or above `offset`; return whether anything was given up. Durable.

    A replica that knew producers is paused then: `rebuild_after_cut` is to follow.

    Args:
        replica: A follower.
        offset: From where on the leader's log is another one.

    Raises:
        KafkaError: This replica leads, or its log failed.
    """
    check_follower(replica)
    log = replica.log
    before = (log.log_end_offset, log.latest_epoch)
    try:
        log.truncate_to(offset)
        replica.note_cut(offset)
        knows_more = replica.delays is not None or knows_producers(log, replica.producers)
        is_stale = log.log_end_offset < before[0] and knows_more
    except Exception as error:
        raise replica.gone_wrong(error) from error
    if is_stale:
        replica.pause(REBUILDING)
    return before != (log.log_end_offset, log.latest_epoch)


def begin_anew(replica: Replica, start_offset: int, now_ms: int, start_epoch: int = NO_EPOCH) -> None:
    """Give up the whole log, and go on at `start_offset`, where the leader's begins; durable on return.

    How new the leader's log is there is known from then on: where all was deleted, and nothing is written, no record
    ever tells it, and a voter that does not know it counts for nothing (`has_all_below`).

    Args:
        replica: A follower.
        start_offset: Where the leader's log begins.
        now_ms: The wall clock.
        start_epoch: Of the leader's log at that offset; where it does not know it, a record that follows tells.

    Raises:
        KafkaError: This replica leads, or its log failed.
    """
    check_follower(replica)
    try:
        replica.log.truncate_fully(start_offset, start_epoch)
        replica.note_cut(0)
        rebuild_producers(replica.log, replica.producers, now_ms)  # of an empty log
        if replica.delays is not None:
            replica.delays.clear()
            replica.delays.start_advanced(start_offset)
    except Exception as error:
        raise replica.gone_wrong(error) from error
    note_leader(replica, start_offset, start_offset)  # what the leader gave up was committed


def begin_at_store(replica: Replica, start: TierStart) -> None:
    """Give up what is local of a tiered log, and go on where the store's part ends; durable on return.

    The replica is paused then: `rebuild_after_cut` is to follow, and reads the producers from the store's snapshot.

    Args:
        replica: A follower.
        start: What the store has, with all that stands beside the log kept.

    Raises:
        KafkaError: This replica leads, or its log failed.
    """
    check_follower(replica)
    log = replica.log
    try:
        start.apply()
        delete_checkpoints(replica.local_log)
        replica.note_cut(0)
    except Exception as error:
        raise replica.gone_wrong(error) from error
    note_leader(replica, log.log_end_offset, log.log_start_offset)  # what is in the store was committed
    replica.pause(REBUILDING)


async def rebuild_after_cut(lifecycle: ReplicaLifecycle, replica: Replica, now_ms: int) -> None:
    """Read the producers of a truncated replica from its log again, in slices, and have it served again.

    To follow on `truncate` and `begin_at_store` at once; nothing happens where these did not pause it. Cancelled: it
    goes on to its end, for a log that is closed as cleanly shut down has to know its producers.

    Args:
        lifecycle: Of the broker's replicas.
        replica: Which.
        now_ms: The wall clock.
    """
    if not replica.is_paused:
        return
    failure: Exception | None = None
    with trio.CancelScope(shield=True):
        try:
            await Slices().run(_rebuild_while_paused(replica, now_ms))
        except Exception as error:  # its disk's: its partition pays, nobody else
            failure = error
    lifecycle.end_pause(replica, REBUILDING, failure)


def _rebuild_while_paused(replica: Replica, now_ms: int) -> Generator[None, None, None]:
    for _ in _rebuild_in_steps(replica, now_ms):
        yield
        if replica.offline_reason != REBUILDING:
            return  # deleted, moved to other brokers, or failed: there may be another log in the place of this one


def _rebuild_in_steps(replica: Replica, now_ms: int) -> Generator[None, None, None]:
    yield from rebuild_in_steps(replica.log, replica.producers, now_ms)
    if replica.delays is not None:
        yield from read_delays_in_steps(replica.local_log, replica.delays)
