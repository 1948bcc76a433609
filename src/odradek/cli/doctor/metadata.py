"""Pure core: what metadata says: who keeps it, who leads, how much is refused, how leaders are spread."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from odradek.cli.output import plural

from .observations import Finding, Severity, some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.client.cluster import PartitionInfo
    from odradek.kernel.types import TopicPartition

    from .observations import Observations

VOTER_SILENT_MS: Final = 10_000
"""A voter fetches twice a second, and is missed after `controller.quorum.fetch.timeout.ms`, 2 s."""
IMBALANCE: Final = 0.1
"""Of a broker's preferred leaders, so many may be led by others: `leader.imbalance.per.broker.percentage`."""
SKEW: Final = 1.5
"""So many times the mean may a broker lead, or have."""
SKEW_MIN: Final = 4
"""Fewer more than the mean are no matter."""
_NOBODY: Final = -1


def quorum_findings(seen: Observations) -> Iterator[Finding]:
    """Yield what is wrong with who keeps the metadata."""
    quorum = seen.quorum
    if quorum is None or quorum.leader_id == _NOBODY:
        what = "nobody leads the metadata: what is there is served, but no topic, leader or broker can change"
        what += f" ({seen.quorum_error})" if seen.quorum_error else ""
        remedy = "start the controllers: more than half of those in controller.quorum.voters must reach each other"
        yield Finding("no-quorum", Severity.WRONG, what, remedy)
        return
    now_ms = max((each.fetched_ms for each in (*quorum.voters, *quorum.observers)), default=-1)
    silent = [
        voter.replica_id
        for voter in quorum.voters
        if voter.replica_id != quorum.leader_id and now_ms >= 0 and now_ms - voter.fetched_ms > VOTER_SILENT_MS
    ]
    if not silent:
        return
    spare = len(quorum.voters) - len(silent) - (len(quorum.voters) // 2 + 1)
    names = ", ".join(map(str, silent))
    left = "one more away, and nobody leads the metadata" if spare <= 0 else f"{spare} more may be away"
    what = f"of {len(quorum.voters)} controllers that vote {names} {_is(silent)} silent: {left}"
    remedy = "start them again; odradek cluster quorum shows how far each is"
    yield Finding("voters-silent", Severity.WRONG if spare <= 0 else Severity.WARNING, what, remedy)


def _is(items: list[int]) -> str:
    return "is" if len(items) == 1 else "are"


def controller_findings(seen: Observations) -> Iterator[Finding]:
    """Yield where brokers do not agree on who is the controller, or on which cluster they are of."""
    clusters = defaultdict(list)
    for broker in seen.brokers.values():
        if broker.cluster_id:
            clusters[broker.cluster_id].append(broker.broker_id)
    if len(clusters) > 1:
        told = "; ".join(f"{name}: {', '.join(map(str, ids))}" for name, ids in sorted(clusters.items()))
        what = f"brokers belong to several clusters ({told})"
        remedy = "give each cluster addresses of its own, and its brokers only those of their controllers"
        yield Finding("two-clusters", Severity.WRONG, what, remedy)
    told_by = {broker.broker_id: broker.leader for broker in seen.brokers.values() if broker.leader is not None}
    newest = max((epoch for _leader, epoch in told_by.values()), default=-1)
    leaders = sorted({leader for leader, epoch in told_by.values() if epoch == newest} - {_NOBODY})
    active = sorted(each.broker_id for each in seen.brokers.values() if each.is_active_controller)
    both = leaders if len(leaders) > 1 else active
    if len(both) > 1:
        what = f"{' and '.join(map(str, both))} both act as the controller, in epoch {newest}"
        remedy = "stop all but one of them, and keep their logs: that must not be, and is a bug to be reported"
        yield Finding("two-controllers", Severity.WRONG, what, remedy)
    for broker_id, (leader, epoch) in sorted(told_by.items()):
        if epoch < newest:
            what = f"broker {broker_id} takes {leader} for the controller, of epoch {epoch}, which is over"
            remedy = "look at the network between it and the controllers"
            yield Finding("controller-unknown", Severity.WARNING, what, remedy, broker_id)


def leader_findings(seen: Observations) -> Iterator[Finding]:
    """Yield partitions that cannot be written, or not be read either."""
    led: dict[tuple[int, ...], list[TopicPartition]] = defaultdict(list)
    refusing: list[TopicPartition] = []
    for partition, info in sorted(seen.after.partitions()):
        if info.leader_id == _NOBODY:
            led[tuple(sorted(info.isr))].append(partition)
        elif _in_sync(info) < seen.in_sync_min.get(partition.topic, 1):
            refusing.append(partition)
    for isr, partitions in led.items():
        last = f"broker{'s' if len(isr) > 1 else ''} {', '.join(map(str, isr))}" if isr else "their brokers"
        what = f"nobody leads {plural(len(partitions), 'partition')} ({some(partitions)}): {last} had all records, and"
        what += " is away" if len(isr) == 1 else " are away"
        remedy = f"start {last}; where that cannot be, `odradek elect TOPIC:P --unclean` gives up what others lack"
        yield Finding("no-leader", Severity.WRONG, what, remedy, partitions=partitions)
    if refusing:
        what = f"{plural(len(refusing), 'partition')} ({some(refusing)}) with fewer replicas in sync than "
        what += "min.insync.replicas: acks=all is refused"
        remedy = "bring the replicas back; what else is found here says why they are not in sync"
        yield Finding("under-min-isr", Severity.WRONG, what, remedy, partitions=refusing)


def _in_sync(info: PartitionInfo) -> int:
    return len(info.isr)


def skew_findings(seen: Observations) -> Iterator[Finding]:
    """Yield brokers that lead much more or much less than they should."""
    live = sorted(each.broker_id for each in seen.brokers.values() if each.is_there)
    away: dict[int, list[TopicPartition]] = defaultdict(list)
    preferred: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for partition, info in sorted(seen.after.partitions()):
        first = info.replicas[0]
        preferred[first] += 1
        leaders[info.leader_id] += 1
        replicas.update(info.replicas)
        if info.leader_id not in {first, _NOBODY} and first in live and first in info.isr:
            away[first].append(partition)
    for broker_id, partitions in sorted(away.items()):
        if len(partitions) > IMBALANCE * preferred[broker_id]:
            what = f"of {plural(preferred[broker_id], 'partition')} that broker {broker_id} is to lead others lead "
            what += f"{len(partitions)}, as after a return"
            remedy = "odradek elect; it happens by itself within leader.imbalance.check.interval.seconds (300)"
            yield Finding("leaders-away", Severity.NOTE, what, remedy, broker_id, partitions)
    counted = (("preferred-skewed", "to lead", preferred), ("replicas-skewed", "to have", replicas))
    for name, what, counts in counted:
        skewed = _skewed(counts, live)
        if skewed is not None:
            yield _skew(name, what, counts, skewed)
            return  # one plan mends both


def _skewed(counts: Counter[int], live: list[int]) -> int | None:
    """Return who has much more than the mean, or much less; None where nobody does."""
    if len(live) < 2:
        return None
    mean = sum(counts[each] for each in live) / len(live)
    most, least = max(live, key=lambda each: counts[each]), min(live, key=lambda each: counts[each])
    if counts[most] > mean * SKEW and counts[most] - mean >= SKEW_MIN:
        return most
    if counts[least] * SKEW < mean and mean - counts[least] >= SKEW_MIN:
        return least
    return None


def _skew(name: str, verb: str, counts: Counter[int], broker_id: int) -> Finding:
    told = ", ".join(f"{each}: {count}" for each, count in sorted(counts.items()) if each != _NOBODY)
    what = f"broker {broker_id} is {verb} {counts[broker_id]} partitions, far from the others' share ({told})"
    remedy = "odradek reassign generate makes a plan: nothing moves by itself to a broker that is new, or was drained"
    return Finding(name, Severity.WARNING, what, remedy, broker_id)
