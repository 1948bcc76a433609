"""Requests of one connection are processed in the order in which they came, however many come together.

*Source:* Kafka's protocol guide, "Network": one request of a connection at a time. Apache Kafka 4.3.1 does as is asked
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import pytest

from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.kernel.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.kernel.wire.registry import APIS
from odradek.kernel.wire.special_timestamps import LATEST_TIMESTAMP
from tests.waiting import until

from .broker_process import Client, batch_of, broker_process
from .test_process import create

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from odradek.kernel.wire.message import Message

    from .broker_process import BrokerProcess

VERSIONS = {0: 9, 1: 11, 2: 3}
TURNS = 20


@pytest.fixture(
    scope="module",
    params=[("odradek.network.loop=epoll",), ("odradek.network.loop=portable",), ("log.flush.interval.messages=1",)],
    ids=["epoll", "portable", "flushes"],
)
def broker(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    data_dir: Path = tmp_path_factory.mktemp("order") / "data"
    with broker_process(data_dir, *request.param) as running:
        yield running


def written(acks: int) -> ProduceRequest:
    part = PartitionProduceData(index=0, records=batch_of(b"x"))
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=[part])])


def fetched(offset: int, wait_ms: int) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[part])])


def listed() -> ListOffsetsRequest:
    part = ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP)
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[part])])


class Seen(NamedTuple):
    """What a Fetch or a ListOffsets tells."""

    has_records: bool | None
    end: int


def ask_together(client: Client, requests: list[Message]) -> list[Seen]:
    """Send the requests in one piece; return what those that read are told."""
    keys = [request.__api_key__ for request in requests]
    frames = [
        encode_request(request, VERSIONS[key], number, "test").join()
        for number, (key, request) in enumerate(zip(keys, requests, strict=True))
    ]
    client.socket.sendall(b"".join(frames))
    seen = []
    for number, (key, request) in enumerate(zip(keys, requests, strict=True)):
        if isinstance(request, ProduceRequest) and not request.acks:
            continue
        frame = client.receive_frame()
        correlation_id, position = decode_response_header(frame, key, VERSIONS[key])
        assert correlation_id == number
        answer = decode(APIS[key].response, memoryview(frame), VERSIONS[key], position=position)
        if isinstance(answer, FetchResponse):
            part = answer.responses[0].partitions[0]
            seen.append(Seen(bool(part.records), part.high_watermark))
        elif key:
            seen.append(Seen(None, cast("ListOffsetsResponse", answer).topics[0].partitions[0].offset))
    return seen


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_what_is_read_behind_a_produce_sees_what_it_wrote(broker: BrokerProcess, acks: int) -> None:
    with Client(broker.address) as client:
        create(client, "t")
        (start,) = ask_together(client, [listed()])
        for end in range(start.end, start.end + TURNS):
            told = ask_together(client, [written(acks), fetched(end, 0), listed()])
            assert told == [Seen(True, end + 1), Seen(None, end + 1)]


def test_what_is_written_behind_a_fetch_that_waits_comes_after_it(broker: BrokerProcess) -> None:
    with Client(broker.address) as client:
        create(client, "t")
        (start,) = ask_together(client, [listed()])
        told = ask_together(client, [fetched(start.end, 50), written(1), listed()])

    assert told == [Seen(False, start.end), Seen(None, start.end + 1)]


def test_what_was_sent_without_asking_for_an_answer_is_written_though_the_client_has_left(
    broker: BrokerProcess,
) -> None:
    with Client(broker.address) as client:
        create(client, "t")
        (start,) = ask_together(client, [listed()])
        with Client(broker.address) as other:
            ask_together(other, [written(0) for _ in range(200)])

        until(lambda: ask_together(client, [listed()])[0].end == start.end + 200)
