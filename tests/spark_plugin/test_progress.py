"""What a query's progress says of topics: recorded events of Spark's connector, and odd ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odradek.kernel.types import TopicPartition
from odradek.spark_plugin.progress import OffsetsBehindLatest, behind_latest, lag_of, offsets_in

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)

RECORDED = json.loads("""
{"id": "8a2ab9f1-0b6f-4b6c-9a3c-0b8a1d9d3a55", "runId": "d6d9cf0e-59a6-4a10-a3d2-1b7ffb1e84e3", "name": "bills",
 "batchId": 1, "numInputRows": 600,
 "sources": [{"description": "KafkaV2[Subscribe[orders]]", "startOffset": {"orders": {"0": 300, "1": 300}},
              "endOffset": {"orders": {"1": 600, "0": 600}}, "latestOffset": {"orders": {"0": 1000, "1": 1300}},
              "numInputRows": 600,
              "metrics": {"avgOffsetsBehindLatest": "550.0", "maxOffsetsBehindLatest": "700",
                          "minOffsetsBehindLatest": "400"}}],
 "sink": {"description": "ForeachBatchSink", "numOutputRows": -1}}
""")
"""What Spark 4.2.0's connector reports with `maxOffsetsPerTrigger=600`, shortened, and with other numbers."""


def with_sources(*sources: dict[str, Any]) -> dict[str, Any]:
    return {**RECORDED, "sources": list(sources)}


def test_the_numbers_are_those_of_sparks_connector() -> None:
    lag = lag_of(RECORDED)

    assert lag is not None
    assert lag.behind is not None
    assert lag.behind.as_metrics() == RECORDED["sources"][0]["metrics"]


def test_where_the_query_goes_on_is_told_with_its_name_and_batch() -> None:
    lag = lag_of(RECORDED)

    assert lag is not None
    assert (lag.query_id, lag.name, lag.batch_id) == (RECORDED["id"], "bills", 1)
    assert lag.consumed == {A: 600, B: 600}
    assert lag.latest == {A: 1000, B: 1300}


def test_offsets_may_be_texts_of_json() -> None:
    source = {"endOffset": '{"orders": {"0": 5}}', "latestOffset": "None"}
    lag = lag_of(with_sources(source))

    assert lag is not None
    assert lag.consumed == {A: 5}
    assert lag.behind is None


@pytest.mark.parametrize("offset", [7, "7", {"logOffset": 3}, None, "None", "null", {"t": {"x": 1}}, {"t": {"0": "1"}}])
def test_sources_of_others_do_not_count(offset: object) -> None:
    assert not offsets_in(offset)
    assert lag_of(with_sources({"endOffset": offset, "latestOffset": offset})) is None


def test_the_noted_start_of_a_first_batch_is_no_topic() -> None:
    assert offsets_in({"@start": {"orders": {"0": 1}}, "orders": {"0": 2}}) == {A: 2}


def test_of_two_sources_of_one_topic_the_one_behind_counts() -> None:
    lag = lag_of(with_sources({"endOffset": {"orders": {"0": 9}}}, {"endOffset": {"orders": {"0": 4, "1": 5}}}))

    assert lag is not None
    assert lag.consumed == {A: 4, B: 5}


def test_other_sources_beside_ours_are_left_out() -> None:
    lag = lag_of(with_sources({"endOffset": 12, "latestOffset": None}, {"endOffset": {"orders": {"0": 4}}}))

    assert lag is not None
    assert lag.consumed == {A: 4}


def test_a_log_that_was_made_anew_is_not_ahead_of_itself() -> None:
    assert behind_latest({A: 1000, B: 3}, {A: 300, B: 4}) == OffsetsBehindLatest(0, 1, 0.5)


def test_partitions_that_only_one_side_knows_do_not_count() -> None:
    assert behind_latest({A: 1}, {B: 1}) is None
    assert behind_latest({A: 1}, {A: 3, B: 1}) == OffsetsBehindLatest(2, 2, 2.0)
