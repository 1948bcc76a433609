"""The examples for Spark: the tour is taken, cell by cell."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.testing.running_broker import RunningBroker

TOUR = Path(__file__).parents[3] / "examples/spark/tour.py"
COUNT = 1000


@pytest.fixture(scope="module")
def tour() -> Any:
    spec = importlib.util.spec_from_file_location("tour", TOUR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tour"] = module
    spec.loader.exec_module(module)
    return module


def test_the_tour_is_taken(tour: Any, spark: SparkSession, broker: RunningBroker, tmp_path: Path) -> None:
    servers = broker.bootstrap
    tour.write_orders(spark, servers, COUNT)
    orders = tour.read_orders(spark, servers)
    counts = tour.count_by_partition(spark, servers)
    batches = tour.stream_totals(spark, servers, str(tmp_path))
    totals = tour.read_totals(spark, servers)
    cents = orders.groupBy().sum("cents").first()

    expected: Counter[str] = Counter()
    for number, minute in orders.selectExpr("order", "CAST(date_trunc('MINUTE', timestamp) AS STRING)").collect():
        expected[minute] += 100 + number % 50

    assert sum(counts.values()) == COUNT
    assert batches == 4
    assert cents is not None
    assert cents[0] == sum(expected.values())
    assert len(expected) == 17
    assert totals == {minute: expected[minute] for minute in sorted(expected)[:-2]}  # later ones are not final yet
