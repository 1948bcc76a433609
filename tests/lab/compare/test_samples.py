"""What is made of measurements: rates, percentiles, a line and a report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.lab.compare import samples as module
from odradek.lab.compare.samples import Samples, Throughput, latencies_as_json


def test_percentiles_are_measurements_that_so_many_are_not_above() -> None:
    samples = Samples()
    for latency in range(1, 101):
        samples.add(float(latency))

    assert samples.percentiles((50, 90, 99, 100)) == [50, 90, 99, 100]
    assert (samples.mean_ms, samples.max_ms) == (50.5, 100)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_the_median_has_half_of_the_measurements_at_or_below_it(latencies: list[float]) -> None:
    samples = Samples()
    for latency in latencies:
        samples.add(latency)
    (median,) = samples.percentiles((50,))

    assert sum(latency <= median for latency in latencies) * 2 >= len(latencies)
    assert sum(latency < median for latency in latencies) * 2 <= len(latencies)


def test_too_many_measurements_are_thinned_out_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLES_MAX", 1000)
    samples = Samples()
    for latency in range(10_500):
        samples.add(float(latency))
    (median,) = samples.percentiles((50,))

    assert abs(median - samples.count / 2) < 50
    assert samples.max_ms == samples.count - 1


def test_nothing_measured_is_nothing_and_no_error() -> None:
    assert latencies_as_json(Samples()) == {
        "mean_ms": 0,
        "p50_ms": 0,
        "p90_ms": 0,
        "p99_ms": 0,
        "p99.9_ms": 0,
        "max_ms": 0,
    }
    assert Throughput(0, 0, 0.0).as_json()["records_per_second"] == 0


def test_rates_are_per_second() -> None:
    assert str(Throughput(200_000, 20_000_000, 2.0)) == "100,000 records/s, 10.0 MB/s"
