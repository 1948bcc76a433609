"""What a listener of Spark's is told goes to a consumer group; without Spark."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from odradek.client import BlockingAdmin, NewTopic, TopicPartition
from odradek.spark_plugin.offset_copy import OffsetCopy
from odradek.testing.running_broker import running_broker

if TYPE_CHECKING:
    from collections.abc import Mapping

A = TopicPartition("orders", 0)
OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders", "Kafka.Client.Id": "c"}


def event(end: int, *, name: str | None = "bills", batch_id: int = 0) -> dict[str, Any]:
    source = {"endOffset": f'{{"orders": {{"0": {end}}}}}', "latestOffset": '{"orders": {"0": 10}}'}
    return {"id": "an id", "name": name, "batchId": batch_id, "sources": [source]}


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
    copy = OffsetCopy("billing", OPTIONS, connect=group.connect)
    copy.take(event(3))
    copy.take(event(7, batch_id=1))

    assert group.commits == [("billing", {A: 3}), ("billing", {A: 7})]


def test_one_client_is_made_of_the_kafka_options(group: Group) -> None:
    copy = OffsetCopy("billing", OPTIONS, connect=group.connect)
    for end in (1, 2):
        copy.take(event(end))

    assert group.settings == [{"bootstrap.servers": "127.0.0.1:9092", "client.id": "c"}]


def test_where_queries_stand_can_be_asked(group: Group) -> None:
    copy = OffsetCopy("billing", OPTIONS, connect=group.connect)
    taken = copy.take(event(3))

    assert copy.lags() == {"an id": taken}
    assert taken is not None
    assert taken.behind is not None
    assert taken.behind.as_metrics() == {
        "minOffsetsBehindLatest": "7",
        "maxOffsetsBehindLatest": "7",
        "avgOffsetsBehindLatest": "7.0",
    }


def test_queries_of_another_name_do_not_count(group: Group) -> None:
    copy = OffsetCopy("billing", OPTIONS, query="bills", connect=group.connect)

    assert copy.take(event(3, name="other")) is None
    assert copy.take(event(3, name=None)) is None
    assert not group.commits
    assert not copy.lags()


def test_a_failed_commit_is_a_warning_and_the_next_one_goes_to_a_new_client(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    copy = OffsetCopy("billing", OPTIONS, connect=group.connect)
    group.error = ConnectionError("nobody answers")
    with caplog.at_level(logging.WARNING):
        copy.take(event(3))
    group.error = None
    copy.take(event(7))

    assert group.commits == [("billing", {A: 7})]
    assert (copy.failed_count, group.closed_count, len(group.settings)) == (1, 1, 2)
    assert "'billing': nobody answers" in caplog.text


def test_closing_closes_the_client_if_there_is_one(group: Group) -> None:
    copy = OffsetCopy("billing", OPTIONS, connect=group.connect)
    copy.close()
    copy.take(event(3))
    copy.close()

    assert group.closed_count == 1


def test_options_without_brokers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"kafka\.bootstrap\.servers"):
        OffsetCopy("billing", {"subscribe": "orders"})


def test_a_broker_has_the_offsets_then() -> None:
    with running_broker() as broker, BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.create_topic(NewTopic("orders", 1, 1))
        copy = OffsetCopy("billing", {"kafka.bootstrap.servers": broker.bootstrap})
        copy.take(event(3))
        copy.take(event(7))
        copy.close()
        (found,) = admin.list_group_offsets("billing").values()

    assert found is not None
    assert (found.offset, copy.failed_count) == (7, 0)
