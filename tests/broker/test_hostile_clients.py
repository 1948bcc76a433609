"""Clients that send garbage, never finish, never read or never stop: the others are served all the same."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest

from .broker_process import Client, batch_of, broker_process
from .test_process import create, fetch, produce

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.wire.message import Message

    from .broker_process import BrokerProcess

MEBIBYTE = 1 << 20
PATIENCE_S = 60.0
"""How long a hostile connection may take to be closed, on a machine that does other things too."""

API_KEYS_MAX = 100
HALF_FRAMES = 5_000
SLOW_READERS = 200


@pytest.fixture(scope="module", params=["auto", "portable"])
def loop(request: pytest.FixtureRequest) -> str:
    """Return the setting of the loop: on Linux epoll, and what stands in for it elsewhere."""
    return f"odradek.network.loop={request.param}"


@pytest.fixture(scope="module")
def descriptors() -> Iterator[int]:
    """Give how many files this process, and the broker that it starts, may have open: as many as the system allows."""
    if sys.platform == "win32":
        yield 2 * HALF_FRAMES
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * HALF_FRAMES + 1_000
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
    yield max(soft, allowed)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, loop: str, descriptors: int) -> Iterator[BrokerProcess]:
    # A short queue of those who connect costs each that finds it full a second: so long its system waits to ask again.
    long_queue = "socket.listen.backlog.size=1000"
    with broker_process(tmp_path_factory.mktemp("hostile") / "data", loop, long_queue) as running:
        yield running


@pytest.fixture
def good(broker: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[GoodClient]:
    """Give a client that is connected before the trouble begins, and still served when it is over."""
    with Client(broker.address) as client:
        kept = GoodClient(client, "".join(c if c.isalnum() else "-" for c in request.node.name))
        kept.go_on()
        yield kept
        kept.go_on()

        assert fetch(client, kept.topic) == (kept.acknowledged, len(kept.acknowledged))
        with Client(broker.address) as late:
            assert fetch(late, kept.topic) == (kept.acknowledged, len(kept.acknowledged))


class GoodClient:
    """One who produces and reads, and keeps account of what was acknowledged."""

    def __init__(self, client: Client, topic: str) -> None:
        self.topic = topic
        self.acknowledged: list[bytes] = []
        self._client = client
        create(client, topic)

    def go_on(self) -> None:
        """Produce a record and see it at the end of the topic; the client's own time limit is the measure."""
        value = b"%d" % len(self.acknowledged)
        assert produce(self._client, self.topic, batch_of(value)) == (ErrorCode.NONE, len(self.acknowledged))
        self.acknowledged.append(value)
        values, _ = fetch(self._client, self.topic, len(self.acknowledged) - 1)

        assert values == [value]


def connect(broker: BrokerProcess) -> socket.socket:
    host, _, port = broker.address.rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def read_to_end(connection: socket.socket) -> bytes:
    """Read until the broker closes the connection; fails when it does not in time."""
    received = []
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(MEBIBYTE):
            received.append(chunk)
    return b"".join(received)


def answer_to(broker: BrokerProcess, data: bytes) -> bytes:
    """Send bytes and no more; return what comes back until the broker closes the connection."""
    with connect(broker) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        return read_to_end(connection)


def framed(message: Message, version: int) -> bytes:
    return encode_request(message, version, 1, "hostile").join()


def produce_request(topic: str, value: bytes) -> ProduceRequest:
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch_of(value))])]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data)


def fetch_request(topic: str, size_bytes: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size_bytes)
    return FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=topic, partitions=[wanted])])


def whole_frames(topic: str) -> list[bytes]:
    """Return one sound frame each of requests that carry much."""
    return [
        framed(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3),
        framed(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12),
        framed(CreateTopicsRequest(topics=[CreatableTopic(name="no", num_partitions=1, replication_factor=1)]), 7),
        framed(fetch_request(topic, MEBIBYTE), 12),
        framed(produce_request(topic, b"hostile"), 9),
    ]


def resident_bytes(broker: BrokerProcess) -> int:
    """Return how much memory the broker's process holds."""
    status = Path(f"/proc/{broker.process.pid}/statm")
    if not status.exists():
        pytest.skip("no /proc here: the memory of another process cannot be seen")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is one loop")
def test_the_loop_that_was_asked_for_serves(broker: BrokerProcess, good: GoodClient, loop: str) -> None:
    opened = []
    for file in Path(f"/proc/{broker.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            opened.append(str(file.readlink()))

    # trio waits by one, and the reactor by one of its own.
    assert opened.count("anon_inode:[eventpoll]") == (1 if loop.endswith("portable") else 2)


def test_random_bytes_are_answered_by_a_closed_connection(broker: BrokerProcess, good: GoodClient) -> None:
    source = random.Random(1)
    for number in range(150):
        answer_to(broker, source.randbytes(source.randrange(1, 400)))
        if number % 50 == 0:
            good.go_on()


def test_random_bytes_in_a_frame_of_the_right_size_are_too(broker: BrokerProcess, good: GoodClient) -> None:
    source = random.Random(2)
    for _ in range(300):
        body = struct.pack(">hhi", source.randrange(API_KEYS_MAX), source.randrange(20), 7) + source.randbytes(60)
        answer_to(broker, struct.pack(">i", len(body)) + body)
    good.go_on()


def test_a_frame_cut_off_anywhere_does_nothing(broker: BrokerProcess, good: GoodClient) -> None:
    for frame in whole_frames(good.topic):
        for size in range(0, len(frame), 3):
            assert answer_to(broker, frame[:size]) == b""


def test_a_body_cut_off_anywhere_is_an_error_or_a_closed_connection(broker: BrokerProcess, good: GoodClient) -> None:
    for frame in whole_frames(good.topic):
        for size in range(4, len(frame), 3):
            answer_to(broker, struct.pack(">i", size - 4) + frame[4:size])


def test_a_frame_with_any_bit_turned_over_is_answered_or_refused(broker: BrokerProcess, good: GoodClient) -> None:
    source = random.Random(3)
    # The produce request's copy goes to another topic: a bit of its acks or offset may make it a valid one.
    for frame in whole_frames("somewhere-else"):
        for _ in range(60):
            spoiled = bytearray(frame)
            spoiled[source.randrange(4, len(frame))] ^= 1 << source.randrange(8)
            answer_to(broker, bytes(spoiled))
    good.go_on()


@pytest.mark.parametrize("size", [-1, 0, 100 * MEBIBYTE + 1, 2**31 - 1, -(2**31)])
def test_a_frame_of_impossible_size_closes_the_connection_at_once(
    broker: BrokerProcess, good: GoodClient, size: int
) -> None:
    with connect(broker) as connection:
        connection.sendall(struct.pack(">i", size) + bytes(100))

        assert read_to_end(connection) == b""


def test_announced_gigabytes_take_little_memory(broker: BrokerProcess, good: GoodClient) -> None:
    before = resident_bytes(broker)
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            connection = stack.enter_context(connect(broker))
            connection.sendall(struct.pack(">i", 99 * MEBIBYTE) + bytes(100))
        good.go_on()
        # Metadata v0: header, then an array of 2**31 - 1 topics in a frame of 20 bytes.
        giant_array = struct.pack(">hhihi", 3, 0, 1, 0, 2**31 - 1)
        assert answer_to(broker, struct.pack(">i", len(giant_array)) + giant_array) == b""

        # 5 GB are announced; every connection may have a first block of 2 MiB.
        assert resident_bytes(broker) - before < 150 * MEBIBYTE


def test_thousands_of_half_frames_are_carried_along(broker: BrokerProcess, good: GoodClient, descriptors: int) -> None:
    frame = framed(produce_request(good.topic, b"never whole"), 9)
    with contextlib.ExitStack() as stack:
        for number in range(min(HALF_FRAMES, descriptors // 2)):
            connection = stack.enter_context(connect(broker))
            connection.sendall(frame[: number % len(frame)])
        good.go_on()


def test_a_connection_that_stays_silent_is_closed_in_time(tmp_path: Path, loop: str) -> None:
    with (
        broker_process(tmp_path, loop, "connections.max.idle.ms=500") as broker,
        connect(broker) as silent,
        connect(broker) as half,
    ):
        half.sendall(b"\0\0")

        assert read_to_end(silent) == b""
        assert read_to_end(half) == b""


def test_clients_that_never_read_their_answers_cost_little(broker: BrokerProcess, good: GoodClient) -> None:
    with Client(broker.address) as client:
        create(client, "large")
        for _ in range(20):
            produce(client, "large", batch_of(bytes(MEBIBYTE - 1000)))
    requests = framed(fetch_request("large", 20 * MEBIBYTE), 12) * 50
    before = resident_bytes(broker)
    with contextlib.ExitStack() as stack:
        for _ in range(SLOW_READERS):
            connection = stack.enter_context(connect(broker))
            connection.sendall(requests)
        for _ in range(20):
            good.go_on()

        assert resident_bytes(broker) - before < 100 * MEBIBYTE


def test_a_flood_of_pipelined_requests_is_answered_in_order_and_others_in_between(
    broker: BrokerProcess, good: GoodClient
) -> None:
    count = 5_000
    frames = [encode_request(ApiVersionsRequest(), 0, number, "flood").join() for number in range(count)]
    flood = b"".join(frames)
    answers: dict[int, list[int]] = {}

    def send_and_read(name: int) -> None:
        with Client(broker.address) as client:
            sender = threading.Thread(target=client.socket.sendall, args=(flood,))
            sender.start()
            answers[name] = [decode_response_header(client.receive_frame(), 18, 0)[0] for _ in range(count)]
            sender.join()

    floods = [threading.Thread(target=send_and_read, args=(name,)) for name in range(3)]
    for thread in floods:
        thread.start()
    for _ in range(10):
        good.go_on()
    for thread in floods:
        thread.join()

    assert answers == {name: list(range(count)) for name in range(3)}


def test_a_storm_of_connections_that_come_and_go(broker: BrokerProcess, good: GoodClient) -> None:
    for number in range(500):
        with connect(broker) as connection:
            if number % 2:
                # The connection is reset, not closed, with a request under way.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(framed(MetadataRequest(topics=None), 9))
    good.go_on()
