"""A broker that has not heard of a topic or a partition yet: another one is asked next."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import TopicPartition
from odradek.spark_plugin.client.brokers import FAILED_MS
from odradek.spark_plugin.client.client import Client
from odradek.spark_plugin.reading import stream_reader
from odradek.spark_plugin.reading.stream_reader import StreamReader
from tests.spark_plugin.client.scripted import FakeLog, Handler, Network
from tests.spark_plugin.stream_kit import hurry

METADATA = 3


def lagging(*ids: int) -> tuple[Network, Client]:
    """Return three brokers, and a client that met the first.

    Those with these ids never learn of the topic u, nor of the second partition of t.
    """
    network = Network()
    for node_id, host in enumerate("abc", start=1):
        broker = network.broker(node_id, host)
        FakeLog().install(broker)
        if node_id in ids:
            broker.handlers[METADATA] = partial(_old_view, broker.handlers[METADATA])
    network.leaders = {"t": {0: 1, 1: 1}, "u": {0: 3}}
    client = network.client()
    client.meet()
    return network, client


def _old_view(view: Handler, request: Any, version: int) -> Any:
    response = view(request, version)
    for topic in response.topics:
        if topic.name == "u":
            topic.error_code, topic.partitions = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), []
        del topic.partitions[1:]
    return response


def test_a_topic_that_one_broker_does_not_know_is_asked_of_another() -> None:
    network, client = lagging(1)

    assert list(client.describe(["u"])) == ["u"]
    assert network.brokers["a", 9092].count(METADATA) == 2, "who is connected comes first"


def test_the_leader_of_what_one_broker_does_not_know_is_asked_of_another() -> None:
    _, client = lagging(1)

    assert client.leader_of(TopicPartition("u", 0)) == 3


def test_who_was_doubted_last_is_asked_last() -> None:
    network, client = lagging(1, 2, 3)
    for _ in range(2):
        assert client.describe(["u"]) == {}
        client.doubt_topics()

    assert [broker.count(METADATA) for broker in network.brokers.values()] == [3, 1, 1]


def test_dead_brokers_are_not_tried_before_one_in_doubt_again() -> None:
    network, client = lagging(1)
    for host in "bc":
        network.brokers[host, 9092].is_down = True
    for _ in range(3):
        assert client.describe(["u"]) == {}

    assert sorted(network.tried) == ["a", "b", "c"]


def test_who_failed_long_ago_is_asked_before_one_in_doubt() -> None:
    network, client = lagging(1)
    for host in "bc":
        network.brokers[host, 9092].is_down = True
    assert client.describe(["u"]) == {}
    for host in "bc":
        network.brokers[host, 9092].is_down = False
    assert client.describe(["u"]) == {}, "they failed a moment ago"
    network.clock.time_ms += FAILED_MS

    assert list(client.describe(["u"])) == ["u"]


def test_a_stream_asks_another_broker_for_a_partition_that_one_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = lagging(1, 2)
    monkeypatch.setattr(stream_reader, "first_client", lambda settings: client)
    reader = StreamReader.of({"kafka.bootstrap.servers": "a:9092", "subscribe": "t"}, [("value", "binary")])
    slept_s = hurry(reader)
    start = {"t": {"0": 0, "1": 0}}

    assert reader.latest_offset(start, is_limited=True) == start
    assert slept_s in ([1.0], [1.0] * 2), "the second or the third broker knows it"
