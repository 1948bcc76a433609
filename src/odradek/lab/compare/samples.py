"""Pure core: what `odradek perf` and `odradek compare` make of measurements: rates, percentiles, a line, a report."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)
SAMPLES_MAX: Final = 1_000_000
MEGABYTE: Final = 1_000_000


@attrs.define
class Samples:
    """Latencies in milliseconds: all of them, or an evenly spaced part when they are too many to keep."""

    _kept: array[float] = attrs.field(factory=lambda: array("d"), init=False)
    _every: int = attrs.field(default=1, init=False)
    count: int = attrs.field(default=0, init=False)
    total_ms: float = attrs.field(default=0.0, init=False)
    max_ms: float = attrs.field(default=0.0, init=False)

    def add(self, latency_ms: float) -> None:
        """Take one measurement."""
        if self.count % self._every == 0:
            if len(self._kept) == SAMPLES_MAX:
                self._kept = self._kept[::2]
                self._every *= 2
            if self.count % self._every == 0:
                self._kept.append(latency_ms)
        self.count += 1
        self.total_ms += latency_ms
        self.max_ms = max(self.max_ms, latency_ms)

    @property
    def mean_ms(self) -> float:
        """The average; 0 without measurements."""
        return self.total_ms / self.count if self.count else 0.0

    def percentiles(self, wanted: Sequence[float] = PERCENTILES) -> list[float]:
        """Return the smallest kept latency that so many per cent are not above; 0 without measurements."""
        ordered = sorted(self._kept)
        if not ordered:
            return [0.0] * len(wanted)
        return [ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] for percent in wanted]


@attrs.frozen
class Throughput:
    """How much went through in how long."""

    records_count: int
    size_bytes: int
    seconds: float

    @property
    def records_per_second(self) -> float:
        """Records a second; 0 when no time has passed."""
        return self.records_count / self.seconds if self.seconds > 0 else 0.0

    @property
    def megabytes_per_second(self) -> float:
        """Millions of bytes of keys and values a second; 0 when no time has passed."""
        return self.size_bytes / MEGABYTE / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return {
            "records": self.records_count,
            "bytes": self.size_bytes,
            "seconds": round(self.seconds, 6),
            "records_per_second": round(self.records_per_second, 1),
            "megabytes_per_second": round(self.megabytes_per_second, 3),
        }

    def __str__(self) -> str:
        return f"{self.records_per_second:,.0f} records/s, {self.megabytes_per_second:,.1f} MB/s"


def latencies_as_json(samples: Samples) -> dict[str, float]:
    """Return mean, percentiles and maximum by name, in milliseconds, for JSON."""
    named = zip((f"p{percent:g}_ms" for percent in PERCENTILES), samples.percentiles(), strict=True)
    figures = {"mean_ms": samples.mean_ms, **dict(named), "max_ms": samples.max_ms}
    return {name: round(value, 3) for name, value in figures.items()}
