"""Shell: what a leader does with its replica: takes batches that it numbers, and counts what its followers have.

A replica holds the state (`replica`), also that of a follower; what is done with it in a role is a module of that role,
which knows the replica and no other role.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode, KafkaError
from ..records.batch import assign_offset_and_epoch, read_header
from ..records.control import EndTransactionMarker, read_control_record
from .replica import NOT_LEADER

if TYPE_CHECKING:
    from ..contracts.append_stage import Diverted
    from ..records.batch import BatchHeader
    from ..types import Buffer
    from .append_check import Verification
    from .producer_state import ProducedBatch
    from .producer_table import ProducerStateTable
    from .quiet_followers import FollowerFetch
    from .replica import Replica

ACKS_ALL: Final = -1


class AppendOrigin(Enum):
    """Who made a batch: a client, whose sequences are checked, or a coordinator, which has none and ends transactions.

    *Source:* Kafka's AppendOrigin.
    """

    CLIENT = "client"
    COORDINATOR = "coordinator"


CLIENT: Final = AppendOrigin.CLIENT


def append_as_leader(
    replica: Replica,
    batch: memoryview,
    header: BatchHeader,
    acks: int,
    *,
    origin: AppendOrigin = CLIENT,
    verified: Verification | None = None,
) -> ProducedBatch | None:
    """Stage one validated batch, unless it repeats one. Hot.

    An acknowledgement waits until `appended_offset` (acks=1) or the high watermark (acks=all) has passed the
    batch's last offset, or the original's.

    Args:
        replica: Where.
        batch: The batch, writable: base offset and leader epoch are assigned in place. Borrowed until `write`.
        header: Its header; base offset and epoch are set.
        acks: -1, 0 or 1.
        origin: A coordinator's batches have no sequence, so only the producer's epoch and transaction are
            checked; they may be control batches, which end the producer's transaction here.
        verified: Of the first batch of a transaction: what its coordinator has agreed to.

    Returns:
        The original, where an earlier try of the same producer brought the batch already: nothing was staged.

    Raises:
        KafkaError: This replica does not lead, too few replicas are in sync for acks=all, or the producer's
            sequence or epoch does not fit. The log is as it was.
    """
    check_leads(replica, acks)
    has_producer = header.producer_id >= 0
    marker: EndTransactionMarker | None = None
    if has_producer:
        if origin is CLIENT:
            original = replica.producers.check(header, verified)
            if original is not None:
                return original
        else:
            marker = _check_coordinators(replica.producers, batch, header, verified)
    log = replica.log
    base_offset = log.log_end_offset
    assign_offset_and_epoch(batch, header, base_offset, replica.leader_epoch)
    last_offset = base_offset + header.last_offset_delta
    try:
        log.append(batch, base_offset, last_offset, header.max_timestamp)
        if replica.tiered_log is not None:
            replica.keep_producers_at_roll()
        if marker is not None:
            _end_transaction(replica, batch, header, marker)
        elif has_producer:
            replica.producers.append(header)
    except Exception as error:  # a disk, or a bug of the storage: what it has taken is not certain
        raise replica.gone_wrong(error) from error
    return None


def _end_transaction(replica: Replica, batch: memoryview, header: BatchHeader, marker: EndTransactionMarker) -> None:
    replica.end_transaction(header, marker)
    if replica.delays is not None:
        replica.delays.saw(batch, header)


def append_diverted(
    diverted: Diverted,
    replica: Replica,
    batch: memoryview,
    header: BatchHeader,
    acks: int,
    *,
    verified: Verification | None = None,
) -> ProducedBatch | None:
    """Stage a batch of which records were taken out, with what stands around it, unless it repeats one.

    Args:
        diverted: What stands around it.
        replica: As for `append_as_leader`, as are the others.
        batch: What is left of it, writable.
        header: Its header.
        acks: -1, 0 or 1.
        verified: Of the first batch of a transaction.

    Returns:
        As `append_as_leader`.

    Raises:
        KafkaError: As `append_as_leader`.
    """
    check_leads(replica, acks)
    if header.producer_id >= 0:
        original = replica.producers.check(header, verified)
        if original is not None:
            return original
    _append_own(replica, diverted.before, is_told=True)
    append_as_leader(replica, batch, header, acks, verified=verified)
    _tell_delays(replica, batch, header)
    if diverted.behind is not None:
        _append_own(replica, diverted.behind, is_told=False)
    return None


def check_leads(replica: Replica, acks: int) -> None:
    """Refuse what cannot be appended here.

    Raises:
        KafkaError: This replica does not lead, or too few replicas are in sync for acks=all.
    """
    if not replica.is_leader or replica.offline_reason is not None:
        raise KafkaError(NOT_LEADER if replica.offline_reason is None else replica.offline_code)
    if acks == ACKS_ALL and not replica.election.can_acknowledge():
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)


def _append_own(replica: Replica, data: Buffer, *, is_told: bool) -> None:
    """Stage a batch of no producer, a copy: it may be another's."""
    batch = memoryview(bytearray(data))
    header = read_header(batch)
    append_as_leader(replica, batch, header, 1)
    if is_told:
        _tell_delays(replica, batch, header)


def _tell_delays(replica: Replica, batch: memoryview, header: BatchHeader) -> None:
    if replica.delays is not None:
        try:
            replica.delays.saw(batch, header)
        except Exception as error:  # a plugin's bug
            raise replica.gone_wrong(error) from error


def append_companion(replica: Replica, companion: Buffer, records: Buffer | None = None) -> None:
    """Stage a companion that nobody produced: a delivery, a withdrawal, or what is carried forward.

    Args:
        replica: Where.
        companion: Its batch.
        records: The batch behind it that it counts with, of what is delivered; None where it is settled.

    Raises:
        KafkaError: This replica does not lead.
    """
    check_leads(replica, 1)
    _append_own(replica, companion, is_told=True)
    if records is not None:
        _append_own(replica, records, is_told=True)


def advance_log_start(replica: Replica, offset: int) -> None:
    """Hide the records below `offset`; the segments that hold nothing else go in the background, as in Kafka.

    Args:
        replica: Where.
        offset: Above where its log starts, at most its high watermark.
    """
    replica.log.advance_log_start(offset)
    replica.producers.transactions.advance_log_start(offset)
    if replica.delays is not None:
        replica.delays.start_advanced(offset)


def _check_coordinators(
    producers: ProducerStateTable, batch: memoryview, header: BatchHeader, verified: Verification | None
) -> EndTransactionMarker | None:
    """Check a coordinator's batch of a producer; return the marker that it is.

    Raises:
        KafkaError: The producer or the coordinator has been fenced, or the transaction has ended.
    """
    if not header.is_control:
        producers.check_coordinators(header, verified)
        return None
    marker = read_control_record(batch, header)
    assert isinstance(marker, EndTransactionMarker), "a producer's control batch is the end of its transaction"
    producers.check_marker(header.producer_id, header.producer_epoch, marker.coordinator_epoch)
    return marker


def note_follower(replica: Replica, fetch: FollowerFetch) -> None:
    """Take note that a follower has everything below where it fetches.

    Raises:
        PluginError: See `carry_out`.
    """
    election = replica.election
    if replica.quiet:
        replica.quiet.pop(fetch.broker_id, None)  # what it had before is past
    replica.raise_high_watermark(election.follower_fetch(*fetch))
    if election.ready() is not None:
        replica.carry_out()
