"""Pure core: every figure that is measured, and what its rounds say: a median, a range, whether it differs.

Two combinations *differ* in a figure where their ranges do not touch: differences smaller than that mean nothing. Of
two that are the same, n rounds each are apart by chance in `chance_apart(n)` of all cases: three rounds in one of ten,
five in one of 126.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final

import attrs

from .samples import PERCENTILES

if TYPE_CHECKING:
    from collections.abc import Sequence


class Unit(Enum):
    """What a figure counts."""

    RECORDS_PER_S = "records/s"
    BYTES_PER_S = "B/s"
    MILLISECONDS = "ms"
    SECONDS = "s"
    MICROSECONDS = "µs"
    BYTES = "B"
    TIMES = "x"
    COUNT = ""


class Group(Enum):
    """What figures are shown together."""

    SPEED = "Throughput"
    ACKNOWLEDGED = "Latency to the acknowledgement, at a calm pace"
    END_TO_END = "Latency to a consumer that waits, at a calm pace"
    FAULT = "Through the fault, at a calm pace"
    COST = "What it costs the broker"
    BYTES = "Bytes at rest, and amplification"
    TIMES = "How long things take"
    KEPT = "What became of the acknowledged records"


@attrs.frozen
class Figure:
    """One figure.

    Attributes:
        name: In JSON, and in the code that measures it.
        title: In tables and plots.
        unit: What it counts.
        group: With which others it is shown.
        is_better_high: Whether more is better; None where neither is.
        text: What exactly it is.
    """

    name: str
    title: str
    unit: Unit
    group: Group
    is_better_high: bool | None
    text: str

    @property
    def words(self) -> str:
        """Its name in a sentence, without the unit: `write amplification`."""
        return self.name.removesuffix(f"_{self.unit.value}").replace("_", " ")


def _latency(name: str, percent: float, group: Group, text: str) -> Figure:
    return Figure(f"{name}_p{percent:g}", f"p{percent:g}", Unit.MILLISECONDS, group, False, text)


_ACKNOWLEDGED_TEXT: Final = "from the call to the acknowledgement (to the end of the commit, with transactions)"
_ARRIVED_TEXT: Final = (
    "from the call, or from when it was to be seen, with delays, to the arrival at a consumer that waits for it"
)

_SPEED: Final = (
    Figure(
        "produce_records",
        "produce",
        Unit.RECORDS_PER_S,
        Group.SPEED,
        True,
        "records acknowledged in a second, at full speed",
    ),
    Figure("produce_bytes", "produce", Unit.BYTES_PER_S, Group.SPEED, True, "keys and values acknowledged in a second"),
    Figure(
        "read_bytes", "read", Unit.BYTES_PER_S, Group.SPEED, True, "keys and values read in a second, just produced"
    ),
    Figure(
        "cold_read_bytes",
        "read cold",
        Unit.BYTES_PER_S,
        Group.SPEED,
        True,
        "the same after kill -9 and a restart, with the files out of the page cache",
    ),
)

ACK_PERCENTILES: Final = tuple(
    _latency("ack", percent, Group.ACKNOWLEDGED, _ACKNOWLEDGED_TEXT) for percent in PERCENTILES
)
END_TO_END_PERCENTILES: Final = tuple(
    _latency("end_to_end", percent, Group.END_TO_END, _ARRIVED_TEXT) for percent in PERCENTILES
)

_FAULT_TEXT: Final = (
    "from the moment when a record was due to its acknowledgement, of all that were due before, during and after it"
)
FAULT_PERCENTILES: Final = tuple(
    Figure(name, title, Unit.MILLISECONDS, Group.FAULT, False, _FAULT_TEXT)
    for name, title in (("p50_ms", "p50"), ("p99_ms", "p99"), ("p999_ms", "p99.9"))
)
UNAVAILABLE: Final = Figure(
    "unavailable_s",
    "no service",
    Unit.SECONDS,
    Group.FAULT,
    False,
    "the longest time, from the moment of the fault on, in which records of one partition waited and none of them was "
    "acknowledged",
)

_COST: Final = (
    Figure(
        "produce_cpu",
        "CPU/produced",
        Unit.MICROSECONDS,
        Group.COST,
        False,
        "processor time of the broker, or of a cluster's brokers, for each record produced at full speed",
    ),
    Figure(
        "read_cpu",
        "CPU/read",
        Unit.MICROSECONDS,
        Group.COST,
        False,
        "the broker's processor time for each record read, just produced",
    ),
    Figure(
        "cpu",
        "CPU in all",
        Unit.SECONDS,
        Group.COST,
        False,
        "processor time of the broker and its workers, from the first record until its files have come to rest",
    ),
    Figure(
        "memory",
        "memory",
        Unit.BYTES,
        Group.COST,
        False,
        "the most physical memory that the broker's process had by then",
    ),
)

_BYTES: Final = (
    Figure(
        "produced",
        "produced",
        Unit.BYTES,
        Group.BYTES,
        None,
        "keys and values that were sent, as they were before compression",
    ),
    Figure(
        "bytes_per_record",
        "each record",
        Unit.BYTES,
        Group.BYTES,
        False,
        "what the folders of all brokers of a cluster grew by, for each record acknowledged",
    ),
    Figure("disk", "on disk", Unit.BYTES, Group.BYTES, False, "what the broker's folder grew by"),
    Figure("store", "in the store", Unit.BYTES, Group.BYTES, False, "what the folder that is the object store holds"),
    Figure(
        "write_amplification",
        "written",
        Unit.TIMES,
        Group.BYTES,
        False,
        "bytes that the broker and its workers wrote to disk (a folder that is the store too), for each byte produced",
    ),
    Figure(
        "read_amplification",
        "read cold",
        Unit.TIMES,
        Group.BYTES,
        False,
        "bytes that the broker read from disk during the cold read, for each byte of a key or value that arrived",
    ),
)

_TIMES: Final = (
    Figure(
        "settled",
        "to rest",
        Unit.SECONDS,
        Group.TIMES,
        False,
        "how long it went on after the last record was read: deleting, compacting, moving to the store",
    ),
    Figure("recovery", "to restart", Unit.SECONDS, Group.TIMES, False, "from the start after kill -9 until it serves"),
)

_KEPT: Final = (
    Figure("acknowledged", "acked", Unit.COUNT, Group.KEPT, None, "records acknowledged and not aborted"),
    Figure(
        "there", "there", Unit.COUNT, Group.KEPT, None, "of these, read back as they were sent, once all had settled"
    ),
    Figure("removed", "removed", Unit.COUNT, Group.KEPT, None, "of these, gone as the topic's cleanup.policy says"),
    Figure("lost", "lost", Unit.COUNT, Group.KEPT, False, "of these, gone although no setting allows it"),
    Figure("doubled", "doubled", Unit.COUNT, Group.KEPT, False, "in the log of a cluster's topic more than once"),
    Figure("given_up", "given up", Unit.COUNT, Group.KEPT, False, "not acknowledged: the producer got an error"),
    Figure("wrong", "wrong", Unit.COUNT, Group.KEPT, False, "changed, doubled, or aborted and seen all the same"),
    Figure(
        "there_after_kill",
        "outlive kill -9",
        Unit.COUNT,
        Group.KEPT,
        None,
        "read back as they were sent after kill -9 and a restart",
    ),
    Figure(
        "lost_by_kill",
        "die by it",
        Unit.COUNT,
        Group.KEPT,
        False,
        "there before kill -9, and lost after it, or wrong only then: what no policy can have removed since",
    ),
)

ALL: Final = (
    *_SPEED,
    *ACK_PERCENTILES,
    *END_TO_END_PERCENTILES,
    UNAVAILABLE,
    *FAULT_PERCENTILES,
    *_COST,
    *_BYTES,
    *_TIMES,
    *_KEPT,
)
"""Every figure, in the order in which they are shown."""

BY_NAME: Final = {figure.name: figure for figure in ALL}


ROUNDS_MIN: Final = 3
"""With fewer, ranges lie apart by chance in one of three cases and more."""


@attrs.frozen
class Spread:
    """What the rounds say of one figure of one combination.

    Attributes:
        values: One for each round, in their order; at least one.
    """

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """Take the values that are known; None where none is."""
        known = tuple(value for value in values if value is not None)
        return cls(known) if known else None

    @property
    def median(self) -> float:
        """The middle one; the mean of two where their number is even."""
        ordered = sorted(self.values)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2

    @property
    def low(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.values)

    def is_apart_from(self, other: Spread) -> bool:
        """Whether the two ranges do not touch, and come from so many rounds that this says something."""
        if min(len(self.values), len(other.values)) < ROUNDS_MIN:
            return False
        return self.low > other.high or self.high < other.low


def chance_apart(rounds: int) -> float:
    """Return how often the ranges of two that are the same do not touch, by chance alone; 1.0 for a single round."""
    return min(2 / math.comb(2 * rounds, rounds), 1.0)


def spreads(rounds: Sequence[dict[str, float | None]]) -> dict[str, Spread | None]:
    """Join the figures of one combination's rounds."""
    return {figure.name: Spread.of(one.get(figure.name) for one in rounds) for figure in ALL}
