"""The listener that commits to a group, called as Spark calls it, without Spark."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import attrs
import pytest

from odradek.kernel.types import TopicPartition

pytest.importorskip("pyspark", reason="the listener is a class of pyspark's: pip install '.[spark]'")

from odradek.spark_plugin.lag import GroupOffsetListener

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.streaming.listener import QueryProgressEvent

    from odradek.spark_plugin.progress import QueryLag

A = TopicPartition("orders", 0)
OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders", "kafka.client.id": "c"}


@attrs.define
class Event:
    """As much of Spark's event as the listener looks at."""

    progress: dict[str, Any]


def event(end: int, *, name: str | None = "bills", batch_id: int = 0) -> QueryProgressEvent:
    source = {"endOffset": f'{{"orders": {{"0": {end}}}}}', "latestOffset": '{"orders": {"0": 10}}'}
    return cast("QueryProgressEvent", Event({"id": "an id", "name": name, "batchId": batch_id, "sources": [source]}))


class Group:
    """Takes commits, or refuses them; stands for the client."""

    def __init__(self) -> None:
        self.settings: list[Mapping[str, str]] = []
        self.commits: list[tuple[str, dict[TopicPartition, int]]] = []
        self.closed_count = 0
        self.error: Exception | None = None

    def connect(self, settings: Mapping[str, str]) -> Group:
        self.settings.append(settings)
        return self

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        if self.error is not None:
            raise self.error
        self.commits.append((group, dict(offsets)))

    def close(self) -> None:
        self.closed_count += 1


@pytest.fixture
def group() -> Group:
    return Group()


def test_each_progress_is_committed(group: Group) -> None:
    listener = GroupOffsetListener("billing", OPTIONS, connect=group.connect)
    listener.onQueryProgress(event(3))
    listener.onQueryProgress(event(7, batch_id=1))

    assert group.commits == [("billing", {A: 3}), ("billing", {A: 7})]


def test_one_client_is_made_of_the_kafka_options(group: Group) -> None:
    listener = GroupOffsetListener("billing", OPTIONS, connect=group.connect)
    for end in (1, 2):
        listener.onQueryProgress(event(end))

    assert group.settings == [{"bootstrap.servers": "127.0.0.1:9092", "client.id": "c"}]


def test_where_queries_stand_can_be_asked_and_is_told(group: Group) -> None:
    told: list[QueryLag] = []
    listener = GroupOffsetListener("billing", OPTIONS, connect=group.connect, on_lag=told.append)
    listener.onQueryProgress(event(3))
    (lag,) = listener.lags().values()

    assert told == [lag]
    assert lag.behind is not None
    assert lag.behind.as_metrics() == {
        "minOffsetsBehindLatest": "7",
        "maxOffsetsBehindLatest": "7",
        "avgOffsetsBehindLatest": "7.0",
    }


def test_queries_of_another_name_do_not_count(group: Group) -> None:
    listener = GroupOffsetListener("billing", OPTIONS, query="bills", connect=group.connect)
    listener.onQueryProgress(event(3, name="other"))
    listener.onQueryProgress(event(3, name=None))

    assert not group.commits
    assert not listener.lags()


def test_a_failed_commit_is_a_warning_and_the_next_one_goes_to_a_new_client(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    listener = GroupOffsetListener("billing", OPTIONS, connect=group.connect)
    group.error = ConnectionError("nobody answers")
    with caplog.at_level(logging.WARNING):
        listener.onQueryProgress(event(3))
    group.error = None
    listener.onQueryProgress(event(7))

    assert group.commits == [("billing", {A: 7})]
    assert (listener.failed_count, group.closed_count, len(group.settings)) == (1, 1, 2)
    assert "'billing': nobody answers" in caplog.text


def test_closing_closes_the_client_and_no_other(group: Group) -> None:
    listener = GroupOffsetListener("billing", OPTIONS, connect=group.connect)
    listener.close()
    listener.onQueryProgress(event(3))
    listener.close()

    assert group.closed_count == 1


def test_options_without_brokers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"kafka\.bootstrap\.servers"):
        GroupOffsetListener("billing", {"subscribe": "orders"})


def test_spark_can_give_it_every_event(group: Group) -> None:
    listener = GroupOffsetListener("billing", OPTIONS, connect=group.connect)
    for method in (listener.onQueryStarted, listener.onQueryIdle, listener.onQueryTerminated):
        method(cast("Any", None))

    assert not group.commits
