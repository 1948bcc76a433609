"""A test lets time pass for its broker: what happens then, to whom, and what does not."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from odradek.client.admin_blocking import BlockingAdmin
from odradek.client.blocking_consumer import BlockingConsumer
from odradek.client.blocking_producer import BlockingProducer
from odradek.kernel.errors import ConfigError, ErrorCode, KafkaError
from odradek.kernel.machine.clock import SystemClock
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.waiting import is_readable, until

from ..broker.broker_process import Client, batch_of
from ..broker.test_process import produce

DAY_MS = 86_400_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker({"auto.create.topics.enable": True}, data_dir=tmp_path, virtual_time=True) as running:
        running.create_topic("orders")
        yield running


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[Client]:
    """Yield a client that calls itself `test`."""
    with Client(broker.bootstrap) as connected:
        connected.ask(ApiVersionsRequest(), 0)
        yield connected


@contextmanager
def member(broker: RunningBroker, **settings: str) -> Iterator[BlockingConsumer]:
    """Run a member of the group `readers` that has joined."""
    consumer = BlockingConsumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "client.id": "a member",
            "auto.offset.reset": "earliest",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    with consumer:
        consumer.subscribe(["orders"])
        until(lambda: not consumer.poll(timeout_ms=50) and bool(consumer.assignment))
        yield consumer


def members(broker: RunningBroker) -> list[str]:
    """Return the client ids of the group's members; a group that has lost them all is forgotten before long."""
    with BlockingAdmin({"bootstrap.servers": broker.bootstrap, "client.id": "admin"}) as admin:
        if not admin.list_groups():
            return []
        return [each.client_id for each in admin.describe_group("readers").members]


def end_of(broker: RunningBroker) -> int:
    """Return how far a reader of what is committed may read."""
    settings = {"bootstrap.servers": broker.bootstrap, "isolation.level": "read_committed"}
    with BlockingConsumer(settings) as consumer:
        return consumer.end_offsets([("orders", 0)])[TopicPartition("orders", 0)]


# -- clocks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duration", ["1d", "PT24H", timedelta(days=1), DAY_MS])
def test_a_duration_is_a_text_a_timedelta_or_milliseconds(
    broker: RunningBroker, duration: str | timedelta | int
) -> None:
    before_ms = broker.now_ms()
    broker.advance(duration)

    assert 0 <= broker.now_ms() - before_ms - DAY_MS < 60_000


def test_time_goes_on_at_its_speed_and_over_restarts(broker: RunningBroker) -> None:
    broker.advance("1d")
    broker.kill()
    broker.start()
    broker.advance("1d")
    ahead_ms = broker.now_ms() - SystemClock().now_ms()

    assert 0 <= ahead_ms - 2 * DAY_MS < 60_000


def test_the_time_of_other_brokers_is_real() -> None:
    with running_broker() as broker:
        assert abs(broker.now_ms() - SystemClock().now_ms()) < 60_000
        with pytest.raises(ValueError, match="time is real here; start the broker by"):
            broker.advance("1s")


def test_what_cannot_be_done_is_said(broker: RunningBroker) -> None:
    with pytest.raises(ConfigError, match="'a while' is no duration"):
        broker.advance("a while")
    for backwards in (-1, timedelta(milliseconds=-1)):
        with pytest.raises(ValueError, match="time does not go back"):
            broker.advance(backwards)
    with pytest.raises(ValueError, match="no client or member is called 'nobody'; here were"):
        broker.advance("1s", silent=["nobody"])
    broker.pause()
    with pytest.raises(ValueError, match="the broker is paused; resume it first"):
        broker.advance("1s")
    broker.resume()
    broker.stop()
    with pytest.raises(ValueError, match="the broker is stopped; start it first"):
        broker.advance("1s")


# -- what falls due ----------------------------------------------------------------------------------------------------


def test_an_old_segment_is_deleted_and_its_file_too(broker: RunningBroker) -> None:
    with Client(broker.bootstrap) as client:
        produce(client, "orders", batch_of(b"old"))  # of 2023
    folder = broker.data_dir / "orders-0"
    broker.advance("10m")

    assert broker.records("orders") == []
    assert [path.name for path in folder.glob("*.log")] == ["00000000000000000001.log"]
    assert list(folder.glob("*.deleted")) == []


def test_what_is_old_is_compacted(broker: RunningBroker) -> None:
    broker.create_topic("names", configs={"cleanup.policy": "compact", "segment.ms": "3600000"})
    with BlockingProducer({"bootstrap.servers": broker.bootstrap}) as producer:
        for value in ("first", "second"):
            producer.send("names", value, key="a name", timestamp=broker.now_ms())
        broker.advance("2h")
        producer.send("names", "third", key="a name", timestamp=broker.now_ms())  # rolls
    broker.advance("2h")

    assert [record.value for record in broker.records("names")] == [b"second", b"third"]


def test_what_is_old_goes_to_the_tier_and_is_deleted_there(tmp_path: Path) -> None:
    settings = {"remote.log.storage.system.enable": True, "odradek.tiered.store": (tmp_path / "store").as_uri()}
    configs = {"remote.storage.enable": "true", "segment.ms": "3600000", "local.retention.ms": "3600000"}
    with running_broker(settings, data_dir=tmp_path / "data", virtual_time=True) as broker:
        broker.create_topic("orders", configs={**configs, "retention.ms": "86400000"})
        with BlockingProducer({"bootstrap.servers": broker.bootstrap}) as producer:
            producer.send("orders", "an order", timestamp=broker.now_ms())
            broker.advance("2h")
            producer.send("orders", "another", timestamp=broker.now_ms())  # rolls
        broker.advance("2h")
        assert not (broker.data_dir / "orders-0" / "00000000000000000000.log").exists()
        assert [record.value for record in broker.records("orders")] == [b"an order", b"another"]

        broker.advance("2d")
        assert broker.records("orders") == []


def test_a_transaction_times_out_and_its_marker_is_written(broker: RunningBroker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "biller", "transaction.timeout.ms": 900_000}
    with BlockingProducer(settings) as producer:
        producer.begin_transaction()
        producer.send("orders", b"half an order")
        broker.advance("14m")
        assert end_of(broker) == 0

        broker.advance("2m")
        assert end_of(broker) == 2  # behind the marker
        with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
            producer.commit_transaction()


def test_offsets_of_an_empty_group_are_forgotten(broker: RunningBroker) -> None:
    with member(broker) as consumer:
        consumer.commit({TopicPartition("orders", 0): 0})
        broker.advance("30d")
        assert broker.lag("readers") == {TopicPartition("orders", 0): 0}
    broker.advance("8d")

    assert broker.lag("readers") == {}


# -- members -----------------------------------------------------------------------------------------------------------

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@PROTOCOLS
def test_a_member_that_is_connected_has_just_spoken(broker: RunningBroker, protocol: str) -> None:
    with member(broker, group_protocol=protocol) as consumer:
        owned = consumer.assignment
        broker.advance("30m")
        broker.advance("7d")

        assert members(broker) == ["a member"]
        assert consumer.assignment == owned


@PROTOCOLS
@pytest.mark.parametrize("name", ["a member", "me"])
def test_a_member_that_is_to_be_silent_expires(broker: RunningBroker, protocol: str, name: str) -> None:
    with member(broker, group_protocol=protocol, group_instance_id="me"):
        broker.advance("2m", silent=[name])

        assert members(broker) == []


def join_request(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="readers",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def join(client: Client) -> HeartbeatRequest:
    """Have a bare client become the only member of the classic group; return what it is to say from then on."""
    response = ask_coordinator(client, join_request(), 3)
    assert isinstance(response, JoinGroupResponse)
    said = HeartbeatRequest(group_id="readers", member_id=response.member_id, generation_id=response.generation_id)
    assignment = SyncGroupRequestAssignment(member_id=response.member_id, assignment=b"all")
    sync = SyncGroupRequest(
        group_id="readers",
        member_id=response.member_id,
        generation_id=response.generation_id,
        assignments=[assignment],
    )
    client.ask(sync, 2)
    return said


def join_by_heartbeat(client: Client) -> ConsumerGroupHeartbeatRequest:
    """Have a bare client become a member by the consumer protocol; return what it is to say from then on."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="readers", member_epoch=0, rebalance_timeout_ms=60_000, subscribed_topic_names=["orders"]
    )
    request.topic_partitions = []
    response = ask_coordinator(client, request, 0)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return ConsumerGroupHeartbeatRequest(
        group_id="readers", member_id=response.member_id or "", member_epoch=response.member_epoch
    )


def ask_coordinator(client: Client, request: Message, version: int) -> Message:
    """Ask until the broker coordinates the group."""
    client.ask(FindCoordinatorRequest(key="readers"), 0)
    answers: list[Any] = []

    def is_answered() -> bool:
        answers.append(client.ask(request, version))
        return bool(answers[-1].error_code == ErrorCode.NONE)

    until(is_answered)
    answer: Message = answers[-1]
    return answer


JOINS = pytest.mark.parametrize(("join_group", "version"), [(join, 3), (join_by_heartbeat, 0)])


@JOINS
def test_a_member_that_was_told_its_id_is_known_by_its_connection(
    broker: RunningBroker, client: Client, join_group: Callable[[Client], Message], version: int
) -> None:
    said = join_group(client)
    broker.advance("30m")
    response: Any = client.ask(said, version)
    assert response.error_code == ErrorCode.NONE

    client.socket.close()
    broker.advance("1m")
    assert members(broker) == []


@pytest.mark.parametrize(
    ("request_of_nobody", "version", "code"),
    [
        (HeartbeatRequest(group_id="readers"), 3, ErrorCode.UNKNOWN_MEMBER_ID),
        (JoinGroupRequest(group_id="readers"), 3, ErrorCode.INVALID_SESSION_TIMEOUT),
        (ConsumerGroupHeartbeatRequest(group_id="readers"), 0, ErrorCode.INVALID_REQUEST),
    ],
)
def test_who_says_no_member_id_is_answered_as_ever(
    broker: RunningBroker, client: Client, request_of_nobody: Message, version: int, code: ErrorCode
) -> None:
    join(client)  # so that the broker coordinates
    response: Any = client.ask(request_of_nobody, version)

    assert response.error_code == code


def test_who_commits_without_being_a_member_is_answered_as_ever(broker: RunningBroker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "nobody's"}
    with BlockingConsumer(settings) as consumer:
        consumer.assign([("orders", 0)])
        consumer.commit({TopicPartition("orders", 0): 0})

    assert broker.lag("nobody's") == {TopicPartition("orders", 0): 0}


@JOINS
def test_however_much_a_silent_member_says_it_is_heard_afterwards(
    broker: RunningBroker, client: Client, join_group: Callable[[Client], Message], version: int
) -> None:
    said = join_group(client)
    codes: list[int] = []

    def say_it_again_and_again() -> None:
        while not codes or codes[-1] == ErrorCode.NONE:
            response: Any = client.ask(said, version)
            codes.append(response.error_code)

    chatter = Thread(target=say_it_again_and_again)
    chatter.start()
    broker.advance("1m", silent=["test"])
    chatter.join()

    assert codes[-1] == ErrorCode.UNKNOWN_MEMBER_ID


# -- what waits --------------------------------------------------------------------------------------------------------


def test_a_fetch_that_waits_is_answered_with_nothing(broker: RunningBroker, client: Client) -> None:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="orders", partitions=[wanted])
    client.send(FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=[topic]), 11)
    broker.advance("10m")

    assert is_readable(client.socket, 30)


def test_members_that_wait_for_others_wait_no_longer(tmp_path: Path) -> None:
    settings = {"group.initial.rebalance.delay.ms": 600_000}
    with running_broker(settings, data_dir=tmp_path, virtual_time=True) as broker, Client(broker.bootstrap) as client:
        joining = Thread(target=join, args=(client,))
        joining.start()
        with BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
            until(lambda: [each.state for each in admin.list_groups()] == ["PreparingRebalance"])
        broker.advance("10m")
        joining.join()

        assert members(broker) == ["test"]


def test_who_has_not_heard_yet_that_it_is_to_join_again_stays(broker: RunningBroker, client: Client) -> None:
    said = join(client)
    with Client(broker.bootstrap) as other:
        other.send(join_request(), 3)
        until(lambda: client.ask(said, 3) == HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        broker.advance("30m")
        client.send(join_request(said.member_id), 3)

        assert is_readable(other.socket, 30)
        assert members(broker) == ["test", "test"]


@pytest.mark.parametrize("loop", ["auto", "portable"])
def test_idle_connections_stay_unless_they_are_to_be_silent(tmp_path: Path, loop: str) -> None:
    settings = {"odradek.network.loop": loop}
    with running_broker(settings, data_dir=tmp_path, virtual_time=True) as broker, Client(broker.bootstrap) as client:
        client.ask(ApiVersionsRequest(), 0)
        broker.advance("7d")
        client.ask(ApiVersionsRequest(), 0)
        broker.advance("30m", silent="test")

        assert is_readable(client.socket, 30)
        assert client.socket.recv(1) == b""


def test_who_is_about_to_begin_with_tls_has_its_time(tmp_path: Path) -> None:
    with running_broker(data_dir=tmp_path, tls=True, virtual_time=True) as broker:
        context = ssl.create_default_context(cafile=broker.certificates.authority)
        host, _, port = broker.bootstrap_of("SSL").rpartition(":")
        with socket.create_connection((host, int(port)), 30) as connection:
            broker.advance("1d")
            context.wrap_socket(connection, server_hostname=host).close()


@pytest.mark.parametrize("loop", ["auto", "portable"])
def test_time_passes_however_busy_the_broker_is(tmp_path: Path, loop: str) -> None:
    settings = {"odradek.network.loop": loop, "log.flush.interval.messages": 1, "log.retention.ms": -1}
    with running_broker(settings, data_dir=tmp_path, virtual_time=True) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("orders")
        offsets = [0]
        has_passed = Event()

        def produce_again_and_again() -> None:
            while not has_passed.is_set():
                offsets.append(produce(client, "orders", batch_of(b"an order"))[1])

        busy = Thread(target=produce_again_and_again)
        busy.start()
        until(lambda: len(offsets) > 10)
        broker.advance("1h")
        has_passed.set()
        busy.join()

        assert len(broker.records("orders")) == offsets[-1] + 1


# -- faults ------------------------------------------------------------------------------------------------------------


def test_a_fault_that_delays_is_over_when_its_time_has_passed(broker: RunningBroker, client: Client) -> None:
    broker.delay("ApiVersions", 600_000)
    client.send(ApiVersionsRequest(), 0)
    broker.advance("10m")

    assert is_readable(client.socket, 30)


def test_faults_and_time_go_together(broker: RunningBroker, client: Client) -> None:
    said = join(client)
    broker.fail_next("Heartbeat", "NOT_COORDINATOR")
    assert client.ask(said, 3) == HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
    broker.advance("30m")

    assert client.ask(said, 3) == HeartbeatResponse(error_code=ErrorCode.NONE)
