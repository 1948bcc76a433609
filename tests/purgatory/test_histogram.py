import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.purgatory.histogram import Histogram

VALUES = st.one_of(st.floats(0, 1), st.floats(0, 1000), st.floats(0, 10**9), st.integers(0, 100))


@given(values=st.lists(VALUES, min_size=1, max_size=50), fraction=st.sampled_from([0.0, 0.5, 0.75, 0.95, 0.99, 1.0]))
def test_a_percentile_is_at_most_a_quarter_too_large(values: list[float], fraction: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    ordered = sorted(values)
    exact = next(value for rank, value in enumerate(ordered, 1) if rank >= fraction * len(ordered))
    found = histogram.percentile(fraction)

    assert exact - 0.001 <= found <= max(exact * 1.25, exact + 0.001) + 1e-9
    assert histogram.count == len(values)
    assert histogram.max == max(values)
    assert histogram.total == pytest.approx(sum(values))


def test_an_empty_histogram_says_zero() -> None:
    histogram = Histogram()

    assert (histogram.count, histogram.total, histogram.percentile(0.99)) == (0, 0.0, 0.0)


def test_a_value_from_a_clock_that_went_back_counts_as_zero() -> None:
    histogram = Histogram()
    histogram.record(-3.5)

    assert (histogram.count, histogram.total, histogram.max) == (1, 0.0, 0.0)


def test_an_absurd_value_falls_into_the_last_bucket() -> None:
    histogram = Histogram()
    histogram.record(1e15)

    assert histogram.counts[-1] == 1
    assert repr(histogram).startswith("<Histogram of 1")
