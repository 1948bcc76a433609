"""Pure core: a histogram with fixed buckets, cheap enough for every request.

Buckets are logarithmic with four to an octave, as in HdrHistogram: a value is known to within a quarter of itself, from
0.001 to 10**9. Recording is a shift and an addition to a list: no lock, no sample reservoir, no decay. Percentiles are
of everything since the start.
"""

from __future__ import annotations

from typing import Final

_UNITS: Final = 1000
"""Values are kept in thousandths."""
_BITS_MAX: Final = 40
_BUCKETS_COUNT: Final = 4 * (_BITS_MAX - 3) + 8


class Histogram:
    """Counts of values >= 0. Owned by one task.

    Attributes:
        counts: One for each bucket.
        total: Sum of all values.
        max: The largest value, 0 when there is none.
    """

    __slots__ = ("counts", "max", "total")

    def __init__(self) -> None:
        self.counts = [0] * _BUCKETS_COUNT
        self.total = 0.0
        self.max = 0.0

    def __repr__(self) -> str:
        return f"<Histogram of {self.count}: p50 {self.percentile(0.5):g}, p99 {self.percentile(0.99):g}>"

    @property
    def count(self) -> int:
        """How many values were recorded."""
        return sum(self.counts)

    def record(self, value: float) -> None:
        """Count a value; one below 0 (a clock that went back) counts as 0. Hot."""
        units = int(value * _UNITS)
        if units < 0:
            units, value = 0, 0.0
        shift = units.bit_length() - 3
        if shift <= 0:
            self.counts[units] += 1
        elif shift <= _BITS_MAX - 3:
            self.counts[4 * shift + (units >> shift)] += 1
        else:
            self.counts[-1] += 1
        self.total += value
        if value > self.max:
            self.max = value

    def percentile(self, fraction: float) -> float:
        """Return the value that `fraction` (0 to 1) of all values do not exceed; 0 without any.

        It is the upper end of a bucket, at most a quarter too large and never more than the largest value.
        """
        count = self.count
        if not count:
            return 0.0
        wanted = max(1.0, fraction * count)
        seen = 0
        for index, bucket_count in enumerate(self.counts):
            seen += bucket_count
            if seen >= wanted:
                return min(self.max, _upper_end(index))
        return self.max


def _upper_end(index: int) -> float:
    """Return the end of a bucket, which is the beginning of the next."""
    shift = max(0, index // 4 - 1)
    return ((index - 4 * shift + 1) << shift) / _UNITS
