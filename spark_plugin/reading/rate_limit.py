"""Pure core: where a micro-batch ends: the limits per trigger, and the end that a query with AvailableNow keeps to.

| option | what it does |
| --- | --- |
| `maxOffsetsPerTrigger` | shares so many offsets among the partitions by how much each has; a small one gets 1 |
| `minOffsetsPerTrigger` | waits until there are so many new ones |
| `maxTriggerDelay` | but no longer than this since the last batch |

Counted are offsets, not records: gaps that compaction and transactions leave count too.

*Source:* `KafkaMicroBatchStream` of Spark's Kafka connector 4.2.0; the tests hold its answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from ..offsets import OFFSET_MAX
from ..ranges import Offsets, TopicPartition

__all__ = ["TriggerLimits", "TriggerPlanner", "limited"]


@attrs.frozen(kw_only=True)
class TriggerLimits:
    """The limits of a stream; None where the option is not given.

    Attributes:
        max_offsets: Offsets per trigger, > 0.
        min_offsets: Offsets per trigger, > 0 and not more than `max_offsets`.
        max_delay_ms: How long `min_offsets` may hold a batch back.
    """

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 15 * 60_000


class TriggerPlanner:
    """Says where each micro-batch of one run of a query ends. Owned by the one stream reader of that run.

    Time comes from outside, in milliseconds of any clock that never goes back.
    """

    def __init__(self, limits: TriggerLimits) -> None:
        self.limits = limits
        self._last_batch_ms: int | None = None
        self._target: Offsets | None = None

    def __repr__(self) -> str:
        return f"TriggerPlanner({self.limits}, last_batch_ms={self._last_batch_ms}, target={self._target})"

    @property
    def target(self) -> Offsets | None:
        """Where a query with AvailableNow ends; None for any other."""
        return self._target

    def prepare_available_now(self, latest: Offsets) -> None:
        """Keep to what there is now: no batch goes beyond, and the last one reaches it."""
        self._target = dict(latest)

    def end(
        self, start: Offsets, latest: Offsets, *, earliest: Offsets, now_ms: int, is_limited: bool = True
    ) -> Offsets:
        """Return where the next batch ends; `start` itself when there is nothing to read, or not yet enough.

        Args:
            start: Where it begins.
            latest: The ends of the partitions, as the broker says now; partitions that are new are among them, those
                that are gone are not.
            earliest: The starts of those that are not in `start`; one that is missing here is left out of the limits.
            now_ms: The time.
            is_limited: False for Spark's ReadAllAvailable, which overrides every limit.
        """
        until = latest if self._target is None else self._up_to_target(start, latest)
        if is_limited and self._target is None and self._waits(start, until, earliest, now_ms):
            return start
        if not is_limited or self.limits.max_offsets is None:
            return until
        return limited(self.limits.max_offsets, start, until, earliest)

    def _up_to_target(self, start: Offsets, latest: Offsets) -> Offsets:
        """Return the partitions of the target, and of the start, that are still there: as far as the target goes.

        But no partition ends before it begins. Spark asks where a new query begins only when the target is fixed, so
        what begins at the latest offset may begin behind it; and a broker that has just become leader may have said
        too little for the target. A log that went back is taken as it is now.
        """
        assert self._target is not None
        wanted = {**start, **{one: max(end, start.get(one, end)) for one, end in self._target.items()}}
        return {one: min(end, latest[one]) for one, end in wanted.items() if one in latest}

    def _waits(self, start: Offsets, until: Offsets, earliest: Offsets, now_ms: int) -> bool:
        least = self.limits.min_offsets
        if least is None:
            return False
        is_due = self._last_batch_ms is None or now_ms - self._last_batch_ms >= self.limits.max_delay_ms
        waiting = sum(_sizes(start, until, earliest).values())
        if waiting < least and not is_due:
            return True
        self._last_batch_ms = now_ms
        return False


def limited(limit: int, start: Offsets, until: Offsets, earliest: Offsets) -> dict[TopicPartition, int]:
    """Return ends that take about `limit` offsets in all: at most that many, and one for each small partition more.

    Args:
        limit: > 0.
        start: Where each partition begins.
        until: Where each partition could end. One that is there and not in `start` begins at `earliest`; one that is
            in neither ends where it could: planning finds what is wrong with it.
        earliest: The log start offsets of new partitions.
    """
    sizes = _sizes(start, until, earliest)
    total = float(sum(sizes.values()))
    ends = dict(until)
    for partition, size in sizes.items():
        # In doubles, as on the JVM, so that our batches end where the connector's do.
        part = limit * (size / total)
        taken = math.ceil(part) if part < 1 else math.floor(part)
        begin = start[partition] if partition in start else earliest[partition]
        ends[partition] = min(until[partition], begin + taken, OFFSET_MAX)
    return ends


def _sizes(start: Offsets, until: Offsets, earliest: Offsets) -> Mapping[TopicPartition, int]:
    """Return how many offsets wait in each partition that has some."""
    found = {}
    for partition, end in until.items():
        begin = start.get(partition, earliest.get(partition))
        if begin is not None and end > begin:
            found[partition] = end - begin
    return found
