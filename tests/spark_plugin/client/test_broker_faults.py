"""Dead brokers in turn, damage at every byte, strangers on the port: errors that say who was tried, never a hang."""

from __future__ import annotations

from typing import Any

import pytest

from odradek import __version__
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersion, ApiVersionsResponse
from odradek.spark_plugin.client.client import FIRST_CONTACT_MS
from odradek.spark_plugin.client.errors import (
    BrokerError,
    ClientClosedError,
    ClientTimeoutError,
    ConnectionFailedError,
    UnsupportedVersionError,
)
from odradek.spark_plugin.ranges import OffsetRange
from tests.spark_plugin.client.scripted import FakeLog, HangUp, Network, Raw, Silence

METADATA = 3
API_VERSIONS = 18


def whole(network: Network) -> tuple[list[str], dict[TopicPartition, int], bytes]:
    """Do everything that reading needs, and return what came."""
    client = network.client(max_partition_fetch_bytes=200, request_timeout_ms=1_000)
    topics = list(client.topics())
    listed = client.list_offsets({TopicPartition("t", 0): -1}, is_read_committed=False)
    data = b"".join(bytes(one.data) for one in client.fetch(OffsetRange("t", 0, 0, 30), is_read_committed=False))
    client.close()
    return topics, {partition: found.offset for partition, found in listed.items()}, data


def healthy() -> tuple[Network, FakeLog]:
    network = Network()
    broker = network.broker(1, "a")
    network.leaders["t"] = {0: 1}
    log = FakeLog()
    log.install(broker)
    for _ in range(3):
        log.add(10)
    return network, log


def test_a_broker_is_told_the_version_of_the_package() -> None:
    network, _ = healthy()
    whole(network)
    told = network.brokers["a", 9092].requests(API_VERSIONS)[0]

    assert (told.client_software_name, told.client_software_version) == ("odradek-spark", __version__)


def test_dead_bootstrap_servers_are_passed_over() -> None:
    network, _ = healthy()

    topics, _, _ = whole(network)
    with network.client(bootstrap_servers="dead:1,worse:2,a:9092") as client:
        assert topics == list(client.topics())


def test_when_all_are_dead_every_address_is_named_with_its_reason() -> None:
    network = Network()
    client = network.client(bootstrap_servers="dead:1,worse:2", default_api_timeout_ms=5_000)

    with pytest.raises(ClientTimeoutError, match=r"within 5000 ms") as caught:
        client.topics()
    assert "dead:1: connection refused" in str(caught.value)
    assert "worse:2: connection refused" in str(caught.value)
    assert network.clock.slept_ms <= 5_000


def test_a_broker_that_comes_back_is_found() -> None:
    network, _ = healthy()
    network.brokers["a", 9092].is_down = True
    client = network.client()
    times = iter(range(3))
    connect = network.connect

    def revive(*args: Any, **options: Any) -> Any:
        if next(times, None) is None:
            network.brokers["a", 9092].is_down = False
        return connect(*args, **options)

    client._brokers._connector = revive

    assert list(client.topics()) == ["t"]


def test_a_broker_that_stops_is_replaced_by_another() -> None:
    network, log = healthy()
    second = network.broker(2, "b")
    log.install(second)
    client = network.client()
    client.topics()
    network.brokers["a", 9092].is_down = True
    network.leaders["t"] = {0: 2}

    assert client.list_offsets({TopicPartition("t", 0): -2}, is_read_committed=False)
    assert second.count(METADATA) >= 1


def test_a_connection_cut_at_any_byte_is_made_anew() -> None:
    network, _ = healthy()
    expected = whole(network)
    broker = network.brokers["a", 9092]
    largest = max(one._sent_count for one in broker.connections)

    for cut in range(0, largest + 1, 7):
        network, _ = healthy()
        broker = network.brokers["a", 9092]
        broker.cut_after = cut
        connect = network.connect

        def once(*args: Any, connect: Any = connect, broker: Any = broker, cut: int = cut, **options: Any) -> Any:
            if broker.connections:
                broker.cut_after = None if broker.connections[0].has_hung_up else cut
            return connect(*args, **options)

        network.connect = once  # type: ignore[method-assign]

        assert expected == whole(network), f"cut after {cut} bytes"


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 61])
def test_answers_in_pieces_are_put_together(piece_bytes: int) -> None:
    network, _ = healthy()
    expected = whole(network)
    network.brokers["a", 9092].piece_bytes = piece_bytes

    assert expected == whole(network)


@pytest.mark.parametrize("key", [1, 2, METADATA, API_VERSIONS])
@pytest.mark.parametrize("fault", [HangUp(), Silence()])
def test_a_request_that_gets_no_answer_is_asked_again(key: int, fault: object) -> None:
    network, _ = healthy()
    expected = whole(network)
    broker = network.brokers["a", 9092]
    answers = broker.handlers[key]
    faults = [fault]
    broker.handlers[key] = lambda request, version: faults.pop() if faults else answers(request, version)

    assert expected == whole(network)


def test_a_wrong_correlation_id_ends_the_connection_and_is_said() -> None:
    network, _ = healthy()
    broker = network.brokers["a", 9092]
    broker.spoil = lambda answer: answer[:4] + b"\x00\x00\x30\x39" + answer[8:]

    with pytest.raises(ClientTimeoutError, match="correlation id 12345 instead of"):
        network.client(default_api_timeout_ms=1_000).topics()
    assert all(one.is_closed for one in broker.connections)


@pytest.mark.parametrize("keep", [0, 1, 5, 11])
def test_an_answer_that_is_too_short_inside_is_said(keep: int) -> None:
    network, _ = healthy()
    broker = network.brokers["a", 9092]
    answer_metadata = broker.handlers[METADATA]
    broker.handlers[METADATA] = answer_metadata
    broker.spoil = lambda answer: (4 + keep).to_bytes(4, "big") + answer[4 : 8 + keep]

    with pytest.raises(ClientTimeoutError, match="cannot be read"):
        network.client(default_api_timeout_ms=1_000).topics()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "speaks TLS"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (b"\x00\x00\x00\x02ab", "a frame of 2 bytes"),
    ],
)
def test_strangers_on_the_port_are_recognised(data: bytes, words: str) -> None:
    network, _ = healthy()
    network.brokers["a", 9092].handlers[API_VERSIONS] = lambda request, version: Raw(data)

    with pytest.raises(ClientTimeoutError, match=words):
        network.client(default_api_timeout_ms=1_000).topics()


def test_a_size_that_is_a_lie_takes_no_memory() -> None:
    network, _ = healthy()
    network.brokers["a", 9092].handlers[API_VERSIONS] = lambda request, version: Raw(b"\x7f\xff\xff\xff" + bytes(100))

    with pytest.raises(ClientTimeoutError, match="did not answer ApiVersions within"):
        network.client(default_api_timeout_ms=1_000, request_timeout_ms=500).topics()


def test_an_older_broker_says_which_version_to_ask_in() -> None:
    network, _ = healthy()
    broker = network.brokers["a", 9092]
    listing = broker.handlers[API_VERSIONS]

    def old(request: Any, version: int) -> Any:
        if version > 2:
            return ApiVersionsResponse(
                error_code=int(ErrorCode.UNSUPPORTED_VERSION),
                api_keys=[ApiVersion(api_key=API_VERSIONS, min_version=0, max_version=2)],
            )
        return listing(request, version)

    broker.handlers[API_VERSIONS] = old

    assert list(network.client().topics()) == ["t"]
    assert [version for key, version, _ in broker.asked if key == API_VERSIONS] == [4, 2]


def test_a_refusal_in_a_form_that_is_none_leads_to_the_oldest_version() -> None:
    network, _ = healthy()
    broker = network.brokers["a", 9092]
    listing = broker.handlers[API_VERSIONS]

    def odd(request: Any, version: int) -> Any:
        return listing(request, version) if version == 0 else Raw(b"\0\0\0\x0b\0\0\0\0\0\x23\1\0\x12\0\0")

    broker.handlers[API_VERSIONS] = odd

    assert list(network.client().topics()) == ["t"]
    assert [version for key, version, _ in broker.asked if key == API_VERSIONS] == [4, 0]


def test_a_broker_without_common_versions_is_named() -> None:
    network, _ = healthy()
    network.brokers["a", 9092].versions[METADATA] = (90, 99)

    with pytest.raises(UnsupportedVersionError, match="a:9092 answers Metadata in versions 90-99"):
        network.client().topics()


def test_a_broker_that_lacks_an_api_is_named() -> None:
    network, _ = healthy()
    del network.brokers["a", 9092].versions[METADATA]

    with pytest.raises(UnsupportedVersionError, match="a:9092 does not answer Metadata"):
        network.client().topics()


def test_an_idle_connection_that_the_broker_closed_costs_nothing() -> None:
    network, _ = healthy()
    broker = network.brokers["a", 9092]
    client = network.client()
    client.topics()
    broker.connections[0].has_hung_up = True

    assert list(client.topics()) == ["t"]
    assert network.clock.slept_ms == 0


def test_a_connection_that_was_idle_for_long_is_not_used_again() -> None:
    network, _ = healthy()
    client = network.client(connections_max_idle_ms=10_000)
    client.topics()
    network.clock.time_ms += 10_000

    client.topics()

    first, second = network.brokers["a", 9092].connections
    assert first.is_closed
    assert not second.is_closed


def test_closing_closes_every_connection() -> None:
    network, _ = healthy()
    client = network.client()
    client.topics()
    loop = client.fetch(OffsetRange("t", 0, 0, 30), is_read_committed=False)
    next(loop)

    client.close()

    assert all(one.is_closed for one in network.brokers["a", 9092].connections)
    with pytest.raises(ClientClosedError):
        client.topics()


def test_topics_of_many_leaders_are_asked_for_at_the_same_time() -> None:
    network = Network()
    logs = []
    for number in (1, 2, 3):
        broker = network.broker(number, f"b{number}")
        log = FakeLog(high_watermark=number * 100)
        log.install(broker)
        logs.append(log)
    network.leaders["t"] = {0: 1, 1: 2, 2: 3}
    wanted = {TopicPartition("t", number): -1 for number in range(3)}

    found = network.client().list_offsets(wanted, is_read_committed=False)

    assert {partition.partition: listed.offset for partition, listed in found.items()} == {0: 100, 1: 200, 2: 300}


def test_a_refused_offset_names_broker_and_partition() -> None:
    network, _ = healthy()
    network.brokers["a", 9092].handlers[2] = lambda request, version: _refusal(request)

    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED: a:9092 about t-0"):
        network.client().list_offsets({TopicPartition("t", 0): -1}, is_read_committed=False)


def _refusal(request: Any) -> Any:
    response = FakeLog().list_offsets(request, 11)
    response.topics[0].partitions[0].error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return response


def test_a_timestamp_that_a_broker_is_too_old_for_is_not_misunderstood() -> None:
    network, _ = healthy()
    network.brokers["a", 9092].versions[2] = (1, 6)

    with pytest.raises(UnsupportedVersionError, match="up to version 6; what is asked needs 7"):
        network.client().list_offsets({TopicPartition("t", 0): -3}, is_read_committed=False)


def test_topics_that_do_not_exist_are_left_out() -> None:
    network, _ = healthy()

    assert list(network.client().describe(["t", "u"])) == ["t"]
    assert network.clock.slept_ms == 0


def test_a_topic_that_is_being_made_is_waited_for() -> None:
    network, _ = healthy()
    broker = network.brokers["a", 9092]
    metadata = broker.handlers[METADATA]

    def make(request: Any, version: int) -> Any:
        if broker.count(METADATA) == 3:
            network.leaders["u"] = {0: 1}
        return metadata(request, version)

    broker.handlers[METADATA] = make

    assert list(network.client().describe(["u"], may_create=True)) == ["u"]
    assert [request.allow_auto_topic_creation for request in broker.requests(METADATA)] == [True] * 3


def test_a_broker_that_makes_no_topics_is_not_waited_for_long() -> None:
    network, _ = healthy()

    assert network.client().describe(["u"], may_create=True) == {}
    assert network.clock.slept_ms < 5_000


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION])
def test_a_topic_that_may_not_be_seen_is_refused_by_name(code: ErrorCode) -> None:
    network, _ = healthy()
    network.topic_errors["secret"] = int(code)

    with pytest.raises(BrokerError, match=f"{code.name}: topic 'secret'"):
        network.client().describe(["t", "secret"])


def test_a_partition_without_a_leader_is_waited_for_and_named() -> None:
    network, _ = healthy()
    network.leaders["t"] = {0: -1}

    with pytest.raises(ClientTimeoutError, match="t-0 has no leader at the moment"):
        network.client(default_api_timeout_ms=2_000).list_offsets({TopicPartition("t", 0): -1}, is_read_committed=False)


def test_a_broker_that_sends_a_byte_now_and_then_is_not_waited_for_for_ever() -> None:
    network, _ = healthy()
    broker = network.brokers["a", 9092]
    broker.piece_bytes, broker.piece_ms = 1, 400

    with pytest.raises(ClientTimeoutError, match="did not answer ApiVersions within"):
        network.client(default_api_timeout_ms=3_000, request_timeout_ms=1_000).topics()
    assert network.clock.time_ms - 1_000_000 < 5_000


def test_many_silent_brokers_do_not_take_longer_than_the_call_may() -> None:
    network = Network()
    for number in range(1, 11):
        network.broker(number, f"b{number}").handlers[API_VERSIONS] = lambda request, version: Silence()
    servers = ",".join(f"b{number}:9092" for number in range(1, 11))

    with pytest.raises(ClientTimeoutError, match="b1:9092 did not answer"):
        network.client(bootstrap_servers=servers, default_api_timeout_ms=60_000).topics()
    assert network.clock.time_ms - 1_000_000 <= 61_000


def test_a_broker_too_old_to_be_asked_without_making_topics_is_named() -> None:
    network, _ = healthy()
    network.brokers["a", 9092].versions[METADATA] = (0, 1)

    with pytest.raises(UnsupportedVersionError, match="a:9092 is too old: version 1 cannot say what is needed"):
        network.client().topics()


def test_a_broker_that_refuses_every_question_about_versions_is_named() -> None:
    network, _ = healthy()
    network.brokers["a", 9092].handlers[API_VERSIONS] = lambda request, version: ApiVersionsResponse(
        error_code=int(ErrorCode.INVALID_REQUEST), api_keys=[]
    )

    with pytest.raises(UnsupportedVersionError, match="a:9092 refuses ApiVersions: INVALID_REQUEST"):
        network.client().topics()


def test_a_closed_connection_takes_no_requests() -> None:
    network, _ = healthy()
    client = network.client()
    connection = client.lease(client.leader_of(TopicPartition("t", 0)))
    connection.close()

    with pytest.raises(ConnectionFailedError, match="the connection to a:9092 is closed"):
        connection.send(MetadataRequest(topics=[]), timeout_ms=1_000)
    assert repr(connection) == "<Connection a:9092 closed>"


def test_a_frame_larger_than_what_is_taken_at_once_is_read_whole() -> None:
    network, log = healthy()
    log.add(10, size=5_000_000)
    client = network.client(max_partition_fetch_bytes=10_000_000)

    data = [bytes(one.data) for one in client.fetch(OffsetRange("t", 0, 30, 40), is_read_committed=False)]

    assert data == [log.batches[3][2]]


def test_at_first_contact_refusals_are_told_within_seconds() -> None:
    network = Network()
    client = network.client(bootstrap_servers="dead:1,worse:2")

    with pytest.raises(ConnectionFailedError, match=r"dead:1: connection refused; worse:2: connection refused"):
        client.meet()
    assert network.clock.slept_ms <= FIRST_CONTACT_MS + 1_000


def test_who_was_reached_once_is_waited_for() -> None:
    network, _ = healthy()
    client = network.client()
    client.meet()
    network.brokers["a", 9092].is_down = True

    client.meet()  # asks nobody
    with pytest.raises(ClientTimeoutError, match=r"within 60000 ms"):
        client.topics()


def test_a_broker_that_starts_is_waited_for_at_first_contact() -> None:
    network, _ = healthy()
    network.brokers["a", 9092].is_down = True
    client = network.client()
    connect = network.connect

    def start(*args: Any, **options: Any) -> Any:
        network.brokers["a", 9092].is_down = network.clock.slept_ms < FIRST_CONTACT_MS // 2
        return connect(*args, **options)

    client._brokers._connector = start
    client.meet()

    assert list(client.topics()) == ["t"]
