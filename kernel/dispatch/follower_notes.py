"""Shell: what a follower's Fetch tells of what it has, told to the elections of the replicas that it asks for.

Most fetches of most partitions repeat what the one before said of them: of these an election is told when that counts
(`partitions/quiet_followers.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import KafkaError
from ..machine.turnstile import take_turn
from ..partitions.leading import note_follower
from ..partitions.quiet_followers import FollowerFetch, begin_quiet
from ..types import NO_EPOCH
from .fetch_operation import find_replica, has_all_below
from .replica_selection import note_position

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..partitions.quiet_followers import Stamp
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from .fetch_operation import FetchLimits
    from .fetch_target import FetchTarget

TARGETS_PER_SLICE: Final = 200


def note_positions(
    replicas: Replicas, targets: Iterable[FetchTarget], limits: FetchLimits, stamp: Stamp | None = None
) -> bool:
    """Take note of what a follower has, once for each of its requests: that may commit records others wait for.

    Targets that cannot be read are passed over here: reading them tells the follower why. So are those whose reader is
    to truncate first: what it has beyond this log's end, or from another leader, is not what it says it has.

    Args:
        replicas: Where.
        targets: What it asks for.
        limits: Of the request.
        stamp: Of its session, which gets its time for all targets of which the request says what the one before did.

    Returns:
        Whether that was so of all, and each was told all that there is: within a session a read would give nothing.
    """
    if limits.keeps_positions:
        stamp = None
    if limits.is_stale:
        return False
    is_quiet = _note_some(replicas, targets, limits, stamp)
    _note_heard(stamp, limits)
    return is_quiet


async def note_in_slices(
    replicas: Replicas, targets: Sequence[FetchTarget], limits: FetchLimits, stamp: Stamp | None
) -> None:
    """Do as `note_positions`, some targets at a time. If it is cancelled, of the others nothing is noted."""
    if limits.keeps_positions:
        stamp = None
    if limits.is_stale:
        return
    for first in range(0, len(targets), TARGETS_PER_SLICE):
        await take_turn()
        _note_some(replicas, targets[first : first + TARGETS_PER_SLICE], limits, stamp)
    _note_heard(stamp, limits)


def _note_heard(stamp: Stamp | None, limits: FetchLimits) -> None:
    if stamp is not None:
        stamp.heard_ms = limits.now_ms


def _note_some(replicas: Replicas, targets: Iterable[FetchTarget], limits: FetchLimits, stamp: Stamp | None) -> bool:
    is_quiet = True
    for target in targets:
        quiet = target.quiet
        if quiet is not None:
            if stamp is not None and quiet.is_repeated(stamp, limits.broker_epoch):
                is_quiet = is_quiet and target.is_told_all_of(quiet.replica)
                continue
            target.end_quiet()
        is_quiet = False
        try:
            replica = find_replica(replicas, target, limits.version)
            replica.check_leader(max(target.current_leader_epoch, NO_EPOCH))
        except KafkaError:
            continue
        if replica.is_follower(limits.replica_id) and has_all_below(replica, target):
            _note(replicas, replica, target, limits, stamp)
    return is_quiet


def _note(replicas: Replicas, replica: Replica, target: FetchTarget, limits: FetchLimits, stamp: Stamp | None) -> None:
    high_watermark = replica.high_watermark
    fetch = FollowerFetch(
        limits.replica_id,
        limits.broker_epoch,
        target.fetch_offset,
        target.follower_log_start_offset,
        limits.now_ms,
    )
    note_follower(replica, fetch)
    if stamp is not None:
        target.quiet = begin_quiet(replica, fetch, stamp)
    if limits.keeps_positions:
        note_position(replica, target, limits.replica_id, limits.now_ms)
    log_start_offset = target.follower_log_start_offset
    if replica.high_watermark != high_watermark or target.noted_log_start_offset != log_start_offset:
        target.noted_log_start_offset = log_start_offset
        replicas.progressed((replica,))
