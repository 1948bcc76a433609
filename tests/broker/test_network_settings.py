"""What the settings of the network do to real sockets of a broker that runs."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.headers import encode_request
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.testing.running_broker import running_broker

from ..waiting import PATIENCE_S, is_readable, until
from .broker_beside import broker_with
from .broker_process import Client, batch_of
from .test_live_config import BROKER, alter
from .test_process import create, produce

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing.running_broker import RunningBroker

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what a socket was given")

HEADER_BYTES = len(encode_request(ApiVersionsRequest(), 0, 1, "").join())


def ask_versions(client: Client) -> None:
    """Ask something, and be answered."""
    client.ask(ApiVersionsRequest(), 0)


def connect_from(broker: RunningBroker, host: str) -> Client:
    """Connect from an address of this machine."""
    client = Client.__new__(Client)
    client.socket = socket.create_connection((broker.host, broker.port), PATIENCE_S, source_address=(host, 0))
    client._correlation_id = 0
    return client


def is_refused(client: Client) -> bool:
    """Return whether the broker closes a connection rather than answer."""
    with contextlib.suppress(ConnectionError):
        client.send(ApiVersionsRequest(), 0)
        return client.socket.recv(1) == b""
    return True


@contextlib.contextmanager
def sockets_of(broker: RunningBroker) -> Iterator[list[socket.socket]]:
    """Give the broker's own sockets, which live in this process: the one that listens first."""
    with contextlib.ExitStack() as closing:
        found = []
        for entry in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile, as the listing's own descriptor is
                if entry.is_socket():
                    duplicate = closing.enter_context(socket.socket(fileno=os.dup(int(entry.name))))
                    if duplicate.getsockname() == (broker.host, broker.port):
                        found.append(duplicate)
        yield sorted(found, key=lambda each: -each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def test_a_request_larger_than_the_broker_takes_closes_its_connection() -> None:
    def frame(size_bytes: int) -> bytes:
        return encode_request(ApiVersionsRequest(), 0, 1, "x" * (size_bytes - HEADER_BYTES)).join()

    with running_broker({"socket.request.max.bytes": 1000}) as broker, Client(broker.bootstrap) as client:
        client.socket.sendall(frame(1004))  # its size stands in front
        assert client.receive_frame()

        client.socket.sendall(frame(1005))

        assert is_refused(client)


@needs_linux
def test_sockets_get_the_backlog_and_the_buffers_that_are_set() -> None:
    settings = {
        "socket.listen.backlog.size": 7,
        "socket.receive.buffer.bytes": 50_000,
        "socket.send.buffer.bytes": 60_000,
    }
    with running_broker(settings) as broker, Client(broker.bootstrap) as client:
        ask_versions(client)
        with sockets_of(broker) as (listening, accepted):
            # tcp_info of a socket that listens: tcpi_sacked is how many may wait, tcp_diag.c.
            (backlog,) = struct.unpack_from("28xI", listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104))
            receive = [each.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for each in (listening, accepted)]
            send = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    assert backlog == 7
    assert receive == [100_000, 100_000]  # Linux tells the double
    assert send == 120_000


@needs_linux
@pytest.mark.parametrize(("loop", "count"), [("portable", 1), ("epoll", 2)])
def test_sockets_are_served_by_the_loop_that_is_set(loop: str, count: int) -> None:
    def epolls() -> int:
        found = 0
        for entry in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile, as the listing's own descriptor is
                found += str(entry.readlink()) == "anon_inode:[eventpoll]"
        return found

    before = epolls()
    with running_broker({"odradek.network.loop": loop}) as broker, Client(broker.bootstrap) as client:
        ask_versions(client)

        assert epolls() - before == count  # one is trio's own


@pytest.mark.parametrize("key", ["queued.max.request.bytes", "odradek.network.memory.bytes"])
def test_large_requests_wait_while_others_hold_the_memory_that_is_set(key: str) -> None:
    batch = batch_of(bytes(800_000))
    data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])]
    frame = encode_request(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 9, 1, "").join()
    settings = {"socket.request.max.bytes": 1_000_000, key: 1 << 20}
    with (
        running_broker(settings) as broker,
        Client(broker.bootstrap) as holding,
        Client(broker.bootstrap) as waiting,
        Client(broker.bootstrap) as small,
    ):
        create(small, "t")
        holding.socket.sendall(frame[:-1])
        ask_versions(small)
        # It is taken as far as sockets take it, until there is memory.
        sender = threading.Thread(target=waiting.socket.sendall, args=(frame,))
        sender.start()
        for _ in range(20):
            ask_versions(small)
        assert not is_readable(waiting.socket, 0)
        holding.socket.sendall(frame[-1:])

        assert holding.receive_frame()
        assert waiting.receive_frame()
        sender.join()


def check_one_at_a_time(broker: RunningBroker, caplog: pytest.LogCaptureFixture, first: Client) -> None:
    """See that a second client is served when the first leaves, and not before."""

    def nobody_was_answered() -> None:
        broker.check()
        assert not is_readable(second.socket, 0)

    with Client(broker.bootstrap) as second:
        second.send(ApiVersionsRequest(), 0)
        until(lambda: "max.connections is reached" in caplog.text, nobody_was_answered)
        ask_versions(first)
        nobody_was_answered()
        first.socket.close()

        assert second.receive_frame()


def test_a_client_beyond_the_limit_of_connections_waits_for_another_to_leave(caplog: pytest.LogCaptureFixture) -> None:
    with running_broker({"max.connections": 1}) as broker, Client(broker.bootstrap) as first:
        ask_versions(first)
        check_one_at_a_time(broker, caplog, first)


def test_a_limit_of_connections_that_is_set_while_the_broker_runs_holds(caplog: pytest.LogCaptureFixture) -> None:
    with running_broker() as broker, Client(broker.bootstrap) as first:
        assert alter(first, BROKER, "1", "max.connections", "1") == ErrorCode.NONE
        check_one_at_a_time(broker, caplog, first)


@needs_linux
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_an_address_has_as_many_connections_as_are_set_for_it_or_for_all(is_dynamic: bool) -> None:
    limits = {"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "127.0.0.2:2"}
    with running_broker({} if is_dynamic else limits) as broker, connect_from(broker, "127.0.0.1") as first:
        if is_dynamic:
            for key, value in limits.items():
                assert alter(first, BROKER, "1", key, value) == ErrorCode.NONE
        ask_versions(first)
        with connect_from(broker, "127.0.0.1") as second:
            assert is_refused(second)
        with connect_from(broker, "127.0.0.2") as one, connect_from(broker, "127.0.0.2") as two:
            ask_versions(one)
            ask_versions(two)
            with connect_from(broker, "127.0.0.2") as three:
                assert is_refused(three)


@pytest.mark.parametrize(("seconds", "is_waited_for"), [(299.9, True), (300.1, False)])
def test_an_end_waits_as_long_as_is_set_for_a_client_that_takes_its_answer_slowly(
    seconds: float, is_waited_for: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    batch = batch_of(bytes(1_000_000))
    clock = trio.testing.MockClock()
    answers: list[bytes] = []

    def ask_for_much(client: Client) -> None:
        create(client, "t")
        for _ in range(8):
            assert produce(client, "t", batch)[0] == ErrorCode.NONE
        wanted = FetchPartition(partition=0, partition_max_bytes=1 << 24)
        client.send(FetchRequest(max_bytes=1 << 24, topics=[FetchTopic(topic="t", partitions=[wanted])]), 11)
        client.socket.recv(1, socket.MSG_PEEK)

    def read_the_answer(client: Client) -> None:
        with contextlib.suppress(ConnectionError, AssertionError):
            answers.append(client.receive_frame())

    async def main() -> None:
        broker = broker_with(["odradek.shutdown.timeout.ms=300000", f"log.dirs={tmp_path}"])
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(broker.run)
            with Client(listener.advertised) as client:
                await trio.to_thread.run_sync(ask_for_much, client)
                broker.stop()
                await trio.testing.wait_all_tasks_blocked()
                clock.jump(seconds)
                await trio.testing.wait_all_tasks_blocked()
                await trio.to_thread.run_sync(read_the_answer, client)

    trio.run(main, clock=clock)

    assert [len(answer) > 8 * len(batch) for answer in answers] == [True] * is_waited_for
    assert ("some clients were not answered in time" in caplog.text) != is_waited_for
