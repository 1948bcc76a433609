"""What the settings of connections and metadata do, seen at the connections: on virtual time, and at real sockets."""

from __future__ import annotations

import random
from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from odradek.client import Admin, BrokerError, ClientError, ClientTimeoutError, Consumer, Producer
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.clock import TrioClock
from odradek.kernel.machine.network import Network
from odradek.kernel.peers import connection
from odradek.kernel.peers.connection import connect_stream
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_03_metadata import MetadataResponse
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorResponse
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.machines import WiredNetwork, machine_with
from tests.waiting import PATIENCE_S

from .fake_broker import fake_broker
from .scripted_brokers import (
    API_VERSIONS,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    ScriptedBrokers,
    virtually,
    with_brokers,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


QUIET = 3_600_000
"""Longer than any test."""
NOBODY_COORDINATES = FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)


def pauses_of(times_s: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times_s)]


def assert_doubling(pauses: list[float], plain_s: list[float], limit_s: float) -> None:
    """See that pauses are so long, give or take a fifth by chance, and never longer than their limit."""
    for pause, plain in zip(pauses, plain_s, strict=False):
        assert 0.8 * plain <= pause + 0.002
        assert pause <= min(1.2 * plain, limit_s) + 0.002
    assert len(pauses) >= len(plain_s)
    assert len({round(pause, 3) for pause in pauses}) > 2


# Connections.


def test_a_connection_that_was_idle_for_too_long_is_closed_and_made_again_when_needed() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(connections_max_idle_ms=8_000, linger_ms=0, metadata_max_age_ms=QUIET) as producer:
            await producer.send("t", "one")
            used_s = trio.current_time()
            await trio.sleep(60)

            assert used_s + 8 == pytest.approx(brokers.closes_s[1][-1], abs=0.01)
            connections_count = len(brokers.connects_s[1])
            await producer.send("t", "two")
            assert connections_count + 1 == len(brokers.connects_s[1])

    with_brokers(test)


def test_an_idle_connection_is_kept_where_nothing_limits_it() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.producer(connections_max_idle_ms=-1, linger_ms=0, metadata_max_age_ms=QUIET) as producer:
            await producer.send("t", "one")
            connections_count = len(brokers.connects_s[1])
            await trio.sleep(3_000)
            await producer.send("t", "two")
            assert connections_count == len(brokers.connects_s[1])

    with_brokers(test)


def test_who_asks_again_the_moment_a_connection_breaks_and_who_asks_later_share_one() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async def connect(host: str, port: int) -> trio.abc.HalfCloseableStream:
            await trio.sleep(1)
            return await brokers.connect(host, port)

        machine = machine_with(clock=TrioClock(), random=random.Random(5), network=WiredNetwork(connect))
        settings = {"bootstrap.servers": "node:1", "linger.ms": 0, "metadata.max.age.ms": QUIET}
        async with Producer(settings, machine=machine) as producer:
            await producer.send("t", "x")
            links = producer._brokers
            assert links is not None
            broken = links.connection_to(1)
            assert broken is not None
            connections_count, found = len(brokers.connects_s[1]), []

            async def ask(pause_s: float) -> None:
                await broken.wait_closed()
                await trio.sleep(pause_s)
                found.append(await links.connect(1))

            async with trio.open_nursery() as nursery:
                for pause_s in (0, 0.5, 1.5):  # at once, while it is made, and when it is there
                    nursery.start_soon(ask, pause_s)
                await trio.testing.wait_all_tasks_blocked()
                broken.close(ConnectionFailedError("it broke"))

            assert [links.connection_to(1)] * 3 == found
            assert connections_count + 1 == len(brokers.connects_s[1])

    with_brokers(test)


async def _lose_the_only_broker(brokers: ScriptedBrokers, **settings: object) -> list[float]:
    """Return the pauses between the attempts of a producer to reach a broker that went."""
    eager = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1, "metadata_recovery_strategy": "none"}
    lost = 0
    with trio.CancelScope() as scope:
        async with brokers.producer(linger_ms=0, **eager, **settings) as producer:
            await producer.send("t", "x")
            brokers.stop(1)
            await trio.testing.wait_all_tasks_blocked()
            lost = len(brokers.connects_s[1])
            await producer.enqueue("t", "y")
            await trio.sleep(100)
            scope.cancel()
    return pauses_of(brokers.connects_s[1][lost:])


def test_attempts_to_reconnect_come_after_doubling_pauses() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        pauses = await _lose_the_only_broker(brokers, reconnect_backoff_ms=500, reconnect_backoff_max_ms=4_000)

        assert_doubling(pauses, [0.5, 1, 2, 4, 4, 4, 4, 4], 4)

    with_brokers(test, nodes=(1,))


def test_a_pause_before_reconnecting_that_is_set_alone_is_constant() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        pauses = await _lose_the_only_broker(brokers, reconnect_backoff_ms=5_000)

        assert pauses[:5] == pytest.approx([5, 5, 5, 5, 5], abs=0.01)  # without chance, as in Java

    with_brokers(test, nodes=(1,))


def test_an_attempt_to_connect_is_given_up_after_a_time_that_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker takes connections, as a listening socket does by itself, and never answers the TLS handshake."""
    took_s: list[float] = []

    async def connect(network: Network, host: str, port: int, *how: Any) -> trio.abc.Stream:
        start_s = trio.current_time()
        try:
            return await connect_stream(network, host, port, *how)
        finally:
            took_s.append(trio.current_time() - start_s)

    async def test() -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener:
            settings = {
                "bootstrap.servers": f"127.0.0.1:{listener.socket.getsockname()[1]}",
                "security.protocol": "SSL",
                "socket.connection.setup.timeout.ms": 1_000,
                "socket.connection.setup.timeout.max.ms": 6_000,
                "max.block.ms": 60_000,
            }
            async with Producer(settings, machine=machine_with(random=random.Random(5))) as producer:
                with pytest.raises(ClientTimeoutError, match="no answer in time"):
                    await producer.send("t", "x")

        assert_doubling(took_s[:-1], [1, 2, 4, 6, 6, 6], 6)  # the end of the producer cut the last one short

    monkeypatch.setattr(connection, "connect_stream", connect)
    virtually(test)


@pytest.mark.parametrize(("size", "is_set"), [(40_000, True), (-1, False)])
def test_sockets_have_the_buffers_that_were_asked_for(monkeypatch: pytest.MonkeyPatch, size: int, is_set: bool) -> None:
    sockets: list[trio.socket.SocketType] = []
    names = (trio.socket.SO_SNDBUF, trio.socket.SO_RCVBUF)

    async def connect(network: Network, host: str, port: int, *how: Any) -> trio.abc.Stream:
        stream = await connect_stream(network, host, port, *how)
        assert isinstance(stream, trio.SocketStream)
        sockets.append(stream.socket)
        # A system may give other sizes than were asked for (Linux doubles them), but to all sockets alike.
        with trio.socket.socket() as like:
            if is_set:
                like.setsockopt(trio.socket.SOL_SOCKET, names[0], size)
                like.setsockopt(trio.socket.SOL_SOCKET, names[1], size + 10_000)
            await like.connect((host, port))
            expected = [like.getsockopt(trio.socket.SOL_SOCKET, name) for name in names]
        assert expected == [stream.socket.getsockopt(trio.socket.SOL_SOCKET, name) for name in names]
        return stream

    async def test() -> None:
        with trio.fail_after(PATIENCE_S):
            async with fake_broker() as broker:
                settings = {
                    "bootstrap.servers": broker.bootstrap,
                    "send.buffer.bytes": size,
                    "receive.buffer.bytes": size + 10_000 if is_set else size,
                }
                async with Producer(settings) as producer:
                    await producer.send("t", "x")

        assert sockets

    monkeypatch.setattr(connection, "connect_stream", connect)
    trio.run(test)


# Metadata.


def test_failed_requests_for_metadata_are_repeated_after_doubling_pauses() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.refusals[METADATA] = deque([MetadataResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)] * 6)
        settings = {"retry_backoff_ms": 1_000, "retry_backoff_max_ms": 8_000}
        async with brokers.producer(**settings) as producer:
            await producer.send("t", "x")

        assert_doubling(pauses_of([each.time_s for each in brokers.requests(METADATA)]), [1, 2, 4, 8, 8, 8], 8)

    with_brokers(test)


async def _replace_the_cluster(brokers: ScriptedBrokers, **settings: object) -> Producer:
    """Have every broker but the one for bootstrapping replaced by others; a producer sends before and after."""
    async with brokers.producer(
        bootstrap_servers="node:9", max_block_ms=30_000, delivery_timeout_ms=60_000, linger_ms=0, **settings
    ) as producer:
        await producer.send("t", "before")
        brokers.nodes, brokers.leaders = (3, 4), (3,)
        brokers.stop(1, 2)
        await producer.send("t", "after")
    return producer


def test_a_client_whose_brokers_are_all_gone_begins_again_from_its_bootstrap_servers() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        await _replace_the_cluster(brokers)

        assert brokers.values() == [b"before", b"after"]

    with_brokers(test)


def test_a_client_that_is_not_to_begin_again_asks_the_brokers_that_it_knew_only() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        with pytest.raises(ClientError) as caught:
            await _replace_the_cluster(brokers, metadata_recovery_strategy="none")

        assert caught.value.retriable
        assert len(brokers.connects_s[9]) == 1
        assert brokers.values() == [b"before"]

    with_brokers(test)


@pytest.mark.parametrize(
    ("code", "trigger_ms", "strategy", "begins_again_after_s"),
    [
        (ErrorCode.UNKNOWN_SERVER_ERROR, 40_000, "rebootstrap", 40),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 90_000, "rebootstrap", 90),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 40_000, "none", None),
        (ErrorCode.REBOOTSTRAP_REQUIRED, 90_000, "rebootstrap", 0),
        (ErrorCode.REBOOTSTRAP_REQUIRED, 90_000, "none", None),
    ],
)
def test_a_client_whose_brokers_give_no_metadata_begins_again_after_a_while_or_when_they_say_so(
    code: ErrorCode, trigger_ms: int, strategy: str, begins_again_after_s: int | None
) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        settings = {
            "bootstrap_servers": "node:9",
            "metadata_recovery_strategy": strategy,
            "metadata_recovery_rebootstrap_trigger_ms": trigger_ms,
            "metadata_max_age_ms": 10_000,
        }
        async with brokers.producer(**settings) as producer:
            await producer.send("t", "x")
            brokers.refusals[METADATA] = deque([MetadataResponse(error_code=code)] * 10_000)
            connections_count, start_s = len(brokers.connects_s[9]), trio.current_time()
            await trio.sleep(150)
            brokers.refusals.clear()
            again_s = brokers.connects_s[9][connections_count:]
            before = {port: len(times_s) for port, times_s in brokers.connects_s.items() if port != 9}
            await producer.send("t", "y")
            is_connected_anew = any(len(brokers.connects_s[port]) > count for port, count in before.items())

        assert is_connected_anew is (begins_again_after_s is not None)
        if begins_again_after_s is None:
            assert again_s == []
        else:  # metadata was asked first when it was old, and is asked again about once a second
            assert start_s + 10 + begins_again_after_s == pytest.approx(again_s[0], abs=1.5)

    with_brokers(test)


# What the other clients repeat.


def test_a_consumer_tries_a_leader_that_it_cannot_reach_again_after_doubling_pauses() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        settings = {"retry_backoff_ms": 1_000, "retry_backoff_max_ms": 4_000, "reconnect_backoff_ms": 1}
        async with brokers.consumer(**settings) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek(("t", 0), 0)
            await consumer.poll(timeout_ms=30_000)

        assert_doubling(pauses_of(brokers.connects_s[2]), [1, 2, 4, 4, 4], 4)

    with_brokers(test, leaders=(2,), down={2})


@pytest.mark.parametrize("retries", [0, 4])
def test_an_admin_repeats_a_call_as_often_as_retries_says_after_doubling_pauses(retries: int) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        refusal = DescribeClusterResponse(error_code=ErrorCode.NETWORK_EXCEPTION)
        brokers.refusals[DescribeClusterRequest.__api_key__] = deque([refusal] * 9)
        async with brokers.admin(retries=retries, retry_backoff_ms=1_000, retry_backoff_max_ms=2_000) as admin:
            with pytest.raises(BrokerError, match="NETWORK_EXCEPTION"):
                await admin.describe_cluster()

        asked = brokers.requests(DescribeClusterRequest.__api_key__)
        assert retries + 1 == len(asked)
        if retries:
            assert_doubling(pauses_of([each.time_s for each in asked]), [1, 2, 2, 2], 2)

    with_brokers(test)


def test_an_admin_does_not_take_refused_metadata_for_a_cluster_without_topics() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.refusals[METADATA] = deque([MetadataResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)] * 9)
        async with brokers.admin() as admin:
            with pytest.raises(BrokerError, match="UNKNOWN_SERVER_ERROR: metadata"):
                await admin.list_topics()

    with_brokers(test)


CALLS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "consumer: partitions_for": lambda consumer: consumer.partitions_for("t"),
    "consumer: position": lambda consumer: consumer.position(("t", 0)),
    "consumer: end_offsets": lambda consumer: consumer.end_offsets([("t", 0)]),
    "consumer: committed": lambda consumer: consumer.committed([("t", 0)]),
    "consumer: commit": lambda consumer: consumer.commit({TopicPartition("t", 0): 1}),
    "admin: describe_cluster": lambda admin: admin.describe_cluster(),
    "admin: delete_records": lambda admin: admin.delete_records({TopicPartition("t", 0): 1}),
    "admin: list_offsets": lambda admin: admin.list_offsets({TopicPartition("t", 0): -1}),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_takes_no_longer_than_default_api_timeout_says(call: str) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.refusals[FIND_COORDINATOR] = deque([NOBODY_COORDINATES] * 1_000)
        client: Any
        if call.startswith("admin"):
            client = brokers.admin(default_api_timeout_ms=7_000)
            brokers.refusals[DescribeClusterRequest.__api_key__] = deque(
                [DescribeClusterResponse(error_code=ErrorCode.NETWORK_EXCEPTION)] * 1_000
            )
        else:
            client = brokers.consumer(default_api_timeout_ms=7_000, group_id="g", enable_auto_commit=False)
        async with client:
            if call == "consumer: position":
                client.assign([("t", 0)])
                client.seek_to_end(("t", 0))
            start_s = trio.current_time()
            with pytest.raises(ClientTimeoutError):
                await CALLS[call](client)

            assert pytest.approx(trio.current_time() - start_s, abs=0.05) == 7

    with_brokers(test, leaders=())


def test_an_admin_s_call_takes_as_long_as_one_request_of_it_may_unless_it_is_told_otherwise() -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        async with brokers.admin(request_timeout_ms=90_000) as admin:
            start_s = trio.current_time()
            with pytest.raises(ClientTimeoutError):
                await admin.describe_cluster()

            assert pytest.approx(trio.current_time() - start_s, abs=0.05) == 90

    with_brokers(test, down={1})


@pytest.mark.parametrize(
    ("api_key", "timeout_s"),
    [(API_VERSIONS, 9), (METADATA, 9), (INIT_PRODUCER_ID, 9), (LIST_OFFSETS, 9), (FETCH, 13)],
)
def test_a_question_without_an_answer_ends_its_connection_after_the_time_out(api_key: int, timeout_s: int) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        brokers.refusals[api_key] = deque([None])
        settings = {"request_timeout_ms": 9_000}
        if api_key in {LIST_OFFSETS, FETCH}:
            async with brokers.consumer(fetch_max_wait_ms=4_000, **settings) as consumer:
                consumer.assign([("t", 0)])
                await consumer.poll(timeout_ms=20_000)
        else:
            async with brokers.producer(delivery_timeout_ms=QUIET, **settings) as producer:
                await producer.send("t", "x")

        asked_s = brokers.requests(api_key)[0].time_s
        assert any(pytest.approx(asked_s + timeout_s, abs=0.01) == closed_s for closed_s in brokers.closes_s[1])

    with_brokers(test)


# What brokers are told.


@pytest.mark.parametrize("kind", [Producer, Consumer, Admin])
@pytest.mark.parametrize("client_id", ["mine", None])
def test_brokers_are_told_the_client_s_id(kind: type[Any], client_id: str | None) -> None:
    async def test(brokers: ScriptedBrokers) -> None:
        settings = {"bootstrap.servers": "node:1", "client.id": client_id}
        async with kind(settings, machine=brokers.machine()) as client:
            if kind is Admin:
                await client.list_topics()
            else:
                await client.partitions_for("t")

        expected = f"odradek-{kind.__name__.lower()}" if client_id is None else client_id
        assert {expected} == {each.client_id for each in brokers.asked}

    with_brokers(test)
