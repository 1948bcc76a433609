"""Shell: what becomes of a leader's answer for one partition.

| the leader says | the follower |
| --- | --- |
| records | appends them as they are |
| a diverging epoch | truncates, and asks from there; once more if that was not all (`rebuild_after_cut` follows) |
| one below what is local of a tiered log | begins where the store's part ends |
| OFFSET_OUT_OF_RANGE | asks where the leader's log begins and ends (`Reset`), and goes there |
| OFFSET_MOVED_TO_TIERED_STORAGE | begins where the store's part ends (`tier_starts`) |
| FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER | waits for metadata, its own or the leader's |
| UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID, anything else | waits |

What has to wait is asked again after a growing pause.

*Source:* AbstractFetcherThread.processFetchRequest of Kafka 4.3.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ..errors import CorruptionError, ErrorCode, KafkaError, error_code
from ..partitions.following import append_as_follower, begin_anew, diverging_offset, truncate
from ..records.batch import HEADER_SIZE, read_header

if TYPE_CHECKING:
    from ..partitions.replica import Replica
    from ..types import Buffer
    from ..wire.messages.api_01_fetch import PartitionData


class Taken(Enum):
    """What was made of an answer."""

    APPENDED = "appended"
    """Records are staged, or there were none."""
    TRUNCATED = "truncated"
    OUT_OF_RANGE = "out of range"
    IN_STORE = "in store"
    """What it lacks is in the remote store alone."""
    REFUSED = "refused"
    """It is to be asked again after a pause."""


class Outcome(NamedTuple):
    """What was made of an answer, and why it was refused; empty where that passes by itself, as new metadata comes."""

    taken: Taken
    reason: str = ""


class KnownOffset(NamedTuple):
    """An offset of the leader's log, and the epoch that its log knows to be there, -1 for none."""

    offset: int
    leader_epoch: int


_APPENDED = Outcome(Taken.APPENDED)
_PASSES = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""What a leader says while metadata travels, or its disk fails: it tells its own log of the latter."""
_LOST = {
    ErrorCode.OFFSET_OUT_OF_RANGE: Taken.OUT_OF_RANGE,
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: Taken.IN_STORE,
}
"""What it says of where a follower asked from."""


def tells_of_leader(answer: PartitionData) -> bool:
    """Return whether an answer tells anything to a follower that is somewhere else by now: of who leads, say."""
    return error_code(answer.error_code) not in _LOST


def take_answer(
    replica: Replica, answer: PartitionData, records: Buffer, now_ms: int, *, is_still: bool = True
) -> Outcome:
    """Do what an answer asks for; records are staged, and to be written by the caller.

    Args:
        replica: A follower.
        answer: The leader's.
        records: Its records.
        now_ms: The wall clock.
        is_still: Whether the follower stands where it asked from: else only what `tells_of_leader` is taken.
    """
    code = error_code(answer.error_code)
    if code in _LOST:
        return Outcome(_LOST[code])
    if code is not ErrorCode.NONE:
        return Outcome(Taken.REFUSED, "" if code in _PASSES else code.name)
    if not is_still:
        return _APPENDED
    try:
        diverging = answer.diverging_epoch
        if diverging is not None and diverging.end_offset >= 0:
            offset = diverging_offset(replica.log, diverging.epoch, diverging.end_offset)
            if replica.tiered_log is not None and offset < replica.tiered_log.local_log_start_offset:
                return Outcome(Taken.IN_STORE)
            if truncate(replica, offset):
                return Outcome(Taken.TRUNCATED)
            return Outcome(Taken.REFUSED, f"its log diverges at {offset}, and there is nothing to give up")
        if len(records):
            _append(replica, records, now_ms)
    except KafkaError as error:  # it leads by now, or its log failed, which was told
        return Outcome(Taken.REFUSED, "" if error.code is not ErrorCode.UNKNOWN_SERVER_ERROR else str(error))
    except CorruptionError as error:
        return Outcome(Taken.REFUSED, str(error))
    return _APPENDED


def _append(replica: Replica, records: Buffer, now_ms: int) -> None:
    log = replica.log
    if log.log_start_offset == log.log_end_offset and len(records) >= HEADER_SIZE:
        base_offset = read_header(records).base_offset
        if base_offset < log.log_end_offset:  # the leader's log starts inside a batch, which comes whole
            begin_anew(replica, base_offset, now_ms)
    append_as_follower(replica, records)


def go_to(replica: Replica, start: KnownOffset, end_offset: int, now_ms: int) -> bool:
    """Bring a follower that asked outside of its leader's log back into it; return whether it was outside.

    Args:
        replica: The follower.
        start: Where the leader's log begins.
        end_offset: Where it ends.
        now_ms: The wall clock.

    Raises:
        KafkaError: This replica leads by now, or its log failed.
    """
    mine = replica.log.log_end_offset
    if end_offset < mine:  # after an unclean election
        truncate(replica, end_offset)
        return True
    if start.offset > mine:
        begin_anew(replica, start.offset, now_ms, start.leader_epoch)
        return True
    return False
