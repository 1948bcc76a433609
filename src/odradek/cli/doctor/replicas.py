"""Pure core: what replicas that are not in sync say: of one broker, of its disk, or of themselves.

A replica that is not in sync says little; which ones are not says a lot:

* all that one broker follows: it is down, a disk of it failed, or it does not keep up
* those alone that one broker leads, of several followers: that one feeds them slowly, or has a slow disk
* any others: each by itself

and what becomes of one between two looks tells the rest:

| its size | the gap to its leader | it is |
| --- | --- | --- |
| grows | shrinks | *returned*: catching up |
| grows | does not shrink | *slow*: its leader gets more than it does |
| stands | there is one | *stuck* |
| any | none | about to join |
| any | any, and a reassignment adds it | *raised*: being made, which is no fault |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import Enum
from typing import TYPE_CHECKING, Final

import attrs

from odradek.cli.output import plural, size_text

from .observations import Finding, Severity, some

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.kernel.types import TopicPartition

    from .observations import BrokerSeen, Observations

_NOBODY: Final = -1


class Pace(Enum):
    """What a replica does between two looks."""

    RAISED = "raised"
    RETURNED = "returned"
    SLOW = "slow"
    STUCK = "stuck"
    JOINING = "joining"
    UNKNOWN = "unknown"


@attrs.frozen
class Lagging:
    """A replica that is not in sync.

    Attributes:
        partition: Of what.
        follower: The broker that has it.
        leader: Who leads; -1 for nobody.
        pace: What it does.
        gap_bytes: So much it lacked at the second look, as far as it is known.
        left_s: How long that takes as it goes; None where it does not go.
        is_measured: Whether the gap is known: somebody could say how large the leader's is.
    """

    partition: TopicPartition
    follower: int
    leader: int
    pace: Pace
    gap_bytes: int = 0
    left_s: float | None = None
    is_measured: bool = True


def lagging_of(seen: Observations) -> list[Lagging]:
    """Return the replicas that are not in sync, by partition."""
    return [
        _lagging(seen, partition, follower, info.leader_id)
        for partition, info in sorted(seen.after.partitions())
        for follower in info.replicas
        if follower not in info.isr
    ]


def _lagging(seen: Observations, partition: TopicPartition, follower: int, leader: int) -> Lagging:
    moving = seen.ongoing.get(partition)
    sizes = [
        (look.sizes.get(leader, {}).get(partition), look.sizes.get(follower, {}).get(partition))
        for look in (seen.before, seen.after)
    ]
    if moving is not None and follower in moving.adding_replicas:
        whole, own = sizes[1]
        is_measured = whole is not None  # one that has no size yet has nothing yet
        gap = max((whole or 0) - (own or 0), 0)
        return Lagging(partition, follower, leader, Pace.RAISED, gap, is_measured=is_measured)
    (whole_before, own_before), (whole_after, own_after) = sizes
    if whole_before is None or own_before is None or whole_after is None or own_after is None:
        return Lagging(partition, follower, leader, Pace.UNKNOWN)
    gap_before, gap = max(whole_before - own_before, 0), max(whole_after - own_after, 0)
    if not gap:
        return Lagging(partition, follower, leader, Pace.JOINING)
    if gap < gap_before and own_after > own_before:  # the leader's may have lost what is kept no longer
        speed = (gap_before - gap) / max(seen.after.at_s - seen.before.at_s, 0.001)
        return Lagging(partition, follower, leader, Pace.RETURNED, gap, gap / speed)
    pace = Pace.SLOW if own_after > own_before else Pace.STUCK
    return Lagging(partition, follower, leader, pace, gap)


def replica_findings(seen: Observations) -> Iterator[Finding]:
    """Yield what replicas that are not in sync say."""
    left = lagging_of(seen)
    for broker in seen.brokers.values():
        mine = [each for each in left if each.follower == broker.broker_id]
        finding = _of_one_broker(seen, broker, mine)
        if finding is not None:
            yield finding
            left = [each for each in left if each not in mine]
    raised = [each for each in left if each.pace is Pace.RAISED]
    left = [each for each in left if each.pace is not Pace.RAISED]
    if raised:
        yield _raised(raised)
    feeding = _slow_feeder(seen, left)
    if feeding is not None:
        yield feeding
        return
    yield from _by_follower(left)


# ----------------------------------------------------------------------------------------------- one broker's replicas


def _of_one_broker(seen: Observations, broker: BrokerSeen, lagging: Sequence[Lagging]) -> Finding | None:
    """Return what is wrong with a broker, where that explains all of its replicas that are not in sync."""
    number, partitions = broker.broker_id, [each.partition for each in lagging]
    if broker.is_fenced:
        count = sum(number in info.replicas for _partition, info in seen.after.partitions())
        return _down(number, count, partitions)
    if broker.error:
        return _hanging(broker, partitions) if partitions else None
    failed = [each.path for each in broker.log_dirs or () if each.is_failed]
    if failed:
        paths = f"{'directory' if len(failed) == 1 else 'directories'} {', '.join(failed)} of broker {number} failed"
        what = f"{paths}: {plural(len(partitions), 'replica')} there {_out(partitions)} not in sync"
        remedy = "mend or replace the disk and start the broker again; its log says what the disk said"
        return Finding("disk-failed", Severity.WRONG, what, remedy, number, partitions)
    caught = [each for each in lagging if each.pace is not Pace.RAISED]
    followed = sum(number in info.replicas and info.leader_id != number for _partition, info in seen.after.partitions())
    if len(caught) > 1 and len(caught) == followed == len(lagging):
        return _behind(number, caught)
    return None


def _out(partitions: Sequence[TopicPartition]) -> str:
    return "is" if len(partitions) == 1 else "are"


def _down(number: int, count: int, partitions: Sequence[TopicPartition]) -> Finding:
    share = f"of its {plural(count, 'replica')} {len(partitions)} {_out(partitions)} missing from the in-sync sets"
    remedy = f"start it again; where it is gone for good: odradek cluster drain {number} --replicas"
    if not count:
        what = f"broker {number} is away, and has no replica"
        remedy = f"odradek cluster unregister {number}, where it is gone for good"
        return Finding("broker-down", Severity.NOTE, what, remedy, number)
    severity = Severity.WRONG if partitions else Severity.WARNING
    return Finding("broker-down", severity, f"broker {number} is down: {share}", remedy, number, partitions)


def _hanging(broker: BrokerSeen, partitions: Sequence[TopicPartition]) -> Finding:
    number = broker.broker_id
    missing = f"{plural(len(partitions), 'replica')} of it {_out(partitions)} missing from the in-sync sets"
    what = f"broker {number} does not answer ({broker.error}), and {missing}: it hangs, or is cut off"
    remedy = "look at its log, its host and the network; then start it again"
    return Finding("broker-unreached", Severity.WRONG, what, remedy, number, partitions)


def _behind(number: int, lagging: Sequence[Lagging]) -> Finding:
    """Return what to say of a broker that lags with all that it follows."""
    paces = Counter(each.pace for each in lagging)
    partitions = [each.partition for each in lagging]
    all_of_it = f"broker {number} is not in sync with any of the {len(lagging)} partitions that it follows"
    gap = size_text(sum(each.gap_bytes for each in lagging))
    if paces[Pace.STUCK] + paces[Pace.UNKNOWN] == len(lagging):
        what = f"{all_of_it}, and fetches nothing: it does not reach their leaders, or hangs"
        remedy = "look at its log and at the network between the brokers; then start it again"
        return Finding("broker-stuck", Severity.WRONG, what, remedy, number, partitions)
    if not paces[Pace.SLOW] and not paces[Pace.STUCK]:
        left_s = max((each.left_s or 0 for each in lagging), default=0)
        what = f"broker {number} came back, and catches up: {gap} to go, about {left_s:.0f} s"
        return Finding("broker-returned", Severity.NOTE, what, "wait", number, partitions)
    what = f"{all_of_it}: it is slow, {gap} behind"
    remedy = "look at its processor, disk and network; fewer partitions on it (odradek reassign generate) help, too"
    return Finding("broker-slow", Severity.WRONG, what, remedy, number, partitions)


# ---------------------------------------------------------------------------------------------------- one broker leads


def _slow_feeder(seen: Observations, lagging: Sequence[Lagging]) -> Finding | None:
    """Return that a broker feeds its followers slowly, where only what it leads is not in sync, with several."""
    leaders = {each.leader for each in lagging} - {_NOBODY}
    if len(leaders) != 1 or len({each.follower for each in lagging}) == 1:
        return None
    (leader,) = leaders
    led = [partition for partition, info in seen.after.partitions() if info.leader_id == leader and info.replicas[1:]]
    behind = sorted({each.partition for each in lagging})
    if len(behind) < len(led):
        return None
    what = (
        f"all {plural(len(led), 'partition')} that broker {leader} leads lag, with several followers, and no other "
        "does: it answers slowly, or its disk does"
    )
    remedy = f"look at its processor, disk and network; odradek cluster drain {leader} lets others lead meanwhile"
    return Finding("leader-slow", Severity.WRONG, what, remedy, leader, behind)


# ------------------------------------------------------------------------------------------------------ each by itself


def _raised(raised: Sequence[Lagging]) -> Finding:
    gap = f"{size_text(sum(each.gap_bytes for each in raised))} to go"
    unmeasured_count = sum(not each.is_measured for each in raised)
    if unmeasured_count:
        gap = f"{gap}, but for {unmeasured_count} whose leader could not say how large it is"
    what = f"{plural(len(raised), 'replica')} being added by a reassignment: {gap}"
    return Finding(
        "replicas-raised",
        Severity.NOTE,
        what,
        "wait; odradek reassign cancel ends it",
        partitions=[each.partition for each in raised],
    )


_PACES: Final[Mapping[Pace, tuple[str, Severity, str, str]]] = {
    Pace.RETURNED: ("replicas-returned", Severity.NOTE, "catching up", "wait"),
    Pace.JOINING: (
        "replicas-joining",
        Severity.NOTE,
        "not in sync, with as many bytes as their leaders",
        "look again in some seconds; where that stays, the leader's log says why it does not take them",
    ),
    Pace.SLOW: (
        "replicas-slow",
        Severity.WRONG,
        "slower than what is produced",
        "a throttle (odradek configs describe topic), its disk, or too few num.replica.fetchers: see which it is",
    ),
    Pace.STUCK: (
        "replicas-stuck",
        Severity.WRONG,
        "stuck: they do not grow while others of the same broker do",
        "the broker's log says why a replica of it stopped fetching; starting the broker again makes it begin anew",
    ),
    Pace.UNKNOWN: (
        "replicas-unknown",
        Severity.WARNING,
        "not in sync, and nobody could say how large",
        "ask again where all brokers can be reached",
    ),
}


def _by_follower(lagging: Sequence[Lagging]) -> Iterator[Finding]:
    groups: dict[tuple[int, Pace], list[Lagging]] = defaultdict(list)
    for each in lagging:
        groups[each.follower, each.pace].append(each)
    for (follower, pace), found in groups.items():
        name, severity, state, remedy = _PACES[pace]
        partitions = [each.partition for each in found]
        gap = sum(each.gap_bytes for each in found)
        behind = f", {size_text(gap)} behind" if gap else ""
        what = f"{plural(len(found), 'replica')} of broker {follower} {state}{behind} ({some(partitions)})"
        yield Finding(name, severity, what, remedy, follower, partitions)
