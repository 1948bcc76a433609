"""Faults that a test asks for, as any client meets them: errors, lost and late answers, throttles, lost connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_66_list_transactions import ListTransactionsRequest
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.waiting import until

from ..broker.broker_process import Client, batch_of
from ..broker.test_process import create, fetch, produce

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
TOPIC = "orders"
WIDE = 150
"""So many partitions of one request are taken by a task."""


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker({"log.retention.ms": -1}) as running:
        with Client(running.bootstrap) as client:
            create(client, TOPIC)
        yield running


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[Client]:
    with Client(broker.bootstrap) as connected:
        yield connected


def produce_request(*values: bytes, acks: int = -1) -> ProduceRequest:
    part = PartitionProduceData(index=0, records=batch_of(*values))
    return ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[part])]
    )


def fetch_request() -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[wanted])])


def create_request(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=30_000
    )


def routes_of(broker: RunningBroker) -> dict[int, tuple[Any, Any, bool]]:
    parts = broker._handlers._parts
    assert parts is not None
    return {key: (route.handler, route.repeats, route.is_async) for key, route in parts.requests.router.routes.items()}


def test_so_many_requests_are_answered_with_an_error_and_nothing_of_them_is_kept(
    broker: RunningBroker, client: Client
) -> None:
    fault = broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    answers = [produce(client, TOPIC, batch_of(b"%d" % number)) for number in range(3)]

    assert [code for code, _offset in answers] == [NOT_LEADER, NOT_LEADER, ErrorCode.NONE]
    assert fetch(client, TOPIC) == ([b"2"], 1)
    assert fault.met_count == 2


def test_a_broker_without_faults_is_untouched_before_and_after(broker: RunningBroker, client: Client) -> None:
    own = routes_of(broker)
    fault = broker.fail_next("Produce", NOT_LEADER)
    assert [key for key, route in routes_of(broker).items() if route != own[key]] == [0]

    produce(client, TOPIC, batch_of(b"refused"))
    assert fault.is_over
    assert routes_of(broker) == own

    with broker.delay("*", ms=1), broker.throttle(ms=5):
        assert len([key for key, route in routes_of(broker).items() if route != own[key]]) == len(own)
    assert routes_of(broker) == own


def test_an_api_that_is_answered_by_a_task_fails_too(broker: RunningBroker, client: Client) -> None:
    broker.fail_next("CreateTopics", "NOT_CONTROLLER")
    said = []
    for _ in range(2):
        answer = client.ask(create_request("new"), 7)
        assert isinstance(answer, CreateTopicsResponse)
        said.append(answer.topics[0].error_code)

    assert said == [ErrorCode.NOT_CONTROLLER, ErrorCode.NONE]


def wide_request() -> ProduceRequest:
    """Return a Produce that goes to a task, as it is for so many partitions; only the first one is there."""
    parts = [PartitionProduceData(index=index, records=batch_of(b"one")) for index in range(WIDE)]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=parts)])


def test_what_goes_to_a_task_is_carried_out_once_and_its_client_told_otherwise(
    broker: RunningBroker, client: Client
) -> None:
    own = routes_of(broker)
    fault = broker.fail_next("Produce", "REQUEST_TIMED_OUT", is_done_first=True)
    answers = [client.ask(wide_request(), 9) for _ in range(2)]
    told = [part.error_code for answer in answers for part in answer.responses[0].partition_responses]  # type: ignore[attr-defined]

    assert fault.met_count == 1
    assert told[:WIDE] == [ErrorCode.REQUEST_TIMED_OUT] * WIDE
    assert told[WIDE : WIDE + 2] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert fetch(client, TOPIC) == ([b"one"] * 2, 2)
    assert routes_of(broker) == own


def test_what_goes_to_a_task_is_late_or_throttled_once(broker: RunningBroker, client: Client) -> None:
    request = ListTransactionsRequest(transactional_id_pattern="a.*")
    until(lambda: getattr(client.ask(request, 2), "error_code", None) == ErrorCode.NONE)
    broker.delay("ListTransactions", ms=100, times=1)
    broker.throttle(ms=700, api="ListTransactions", times=1)
    began = time.perf_counter()
    first = client.ask(request, 2)
    took_ms = (time.perf_counter() - began) * 1000
    second = client.ask(request, 2)

    assert took_ms >= 100
    assert [getattr(answer, "throttle_time_ms", None) for answer in (first, second)] == [700, 0]


def test_an_answer_of_a_task_is_lost_once(broker: RunningBroker) -> None:
    broker.drop_next("Produce", is_done_first=True)
    with Client(broker.bootstrap) as client, pytest.raises((AssertionError, ConnectionError)):
        client.ask(wide_request(), 9)
    with Client(broker.bootstrap) as client:
        assert fetch(client, TOPIC)[0] == [b"one"]


def test_a_request_may_be_carried_out_and_its_client_told_otherwise(broker: RunningBroker, client: Client) -> None:
    broker.fail_next("Produce", "REQUEST_TIMED_OUT", is_done_first=True)
    broker.fail_next("CreateTopics", "REQUEST_TIMED_OUT", is_done_first=True)

    assert produce(client, TOPIC, batch_of(b"one"))[0] == ErrorCode.REQUEST_TIMED_OUT
    assert fetch(client, TOPIC) == ([b"one"], 1)
    told = [client.ask(create_request("new"), 7) for _ in range(2)]
    codes = [answer.topics[0].error_code for answer in told if isinstance(answer, CreateTopicsResponse)]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.TOPIC_ALREADY_EXISTS]


@pytest.mark.parametrize(("is_done_first", "kept"), [(False, []), (True, [b"one"])])
def test_a_connection_is_lost_instead_of_an_answer(
    broker: RunningBroker, is_done_first: bool, kept: list[bytes]
) -> None:
    broker.drop_next("Produce", is_done_first=is_done_first)
    with Client(broker.bootstrap) as client, pytest.raises((AssertionError, ConnectionError)):
        produce(client, TOPIC, batch_of(b"one"))
    with Client(broker.bootstrap) as client:
        assert fetch(client, TOPIC)[0] == kept


def test_every_connection_is_lost_at_once_and_clients_may_come_again(broker: RunningBroker, client: Client) -> None:
    broker.drop_connections()

    with pytest.raises((AssertionError, ConnectionError)):
        client.ask(MetadataRequest(topics=[]), 9)
    with Client(broker.bootstrap) as other:
        assert produce(other, TOPIC, batch_of(b"one")) == (ErrorCode.NONE, 0)


def test_an_answer_leaves_so_much_later_and_the_request_is_carried_out_at_once(
    broker: RunningBroker, client: Client
) -> None:
    with broker.delay("Produce", ms=300):
        began = time.perf_counter()
        client.send(produce_request(b"one"), 9)
        until(lambda: bool(broker.records(TOPIC)))
        client.receive_frame()
        took_ms = (time.perf_counter() - began) * 1000

    assert took_ms >= 300


def test_errors_and_answers_of_tasks_are_late_too(broker: RunningBroker, client: Client) -> None:
    with broker.delay("*", ms=60):
        broker.fail_next("Produce", NOT_LEADER)
        for request, version in ((produce_request(b"one"), 9), (create_request("new"), 7)):
            began = time.perf_counter()
            client.ask(request, version)
            assert (time.perf_counter() - began) * 1000 >= 60


def test_a_broker_that_stops_does_not_wait_for_late_answers(broker: RunningBroker, client: Client) -> None:
    late = broker.delay("Produce", ms=3_600_000)
    client.send(produce_request(b"one"), 9)
    until(lambda: late.met_count == 1)
    broker.stop()

    assert client.receive_frame()


def test_answers_say_how_long_the_client_is_to_be_silent(broker: RunningBroker, client: Client) -> None:
    requests = [
        (produce_request(b"one"), 9),
        (fetch_request(), 11),
        (MetadataRequest(topics=[]), 9),
        (create_request("new"), 7),
    ]
    with broker.throttle(ms=700):
        throttled = [client.ask(each, number) for each, number in requests]
    after = [client.ask(each, number) for each, number in requests]

    assert [getattr(answer, "throttle_time_ms", None) for answer in throttled] == [700] * 4
    assert [getattr(answer, "throttle_time_ms", None) for answer in after] == [0] * 4
    assert isinstance(throttled[0], ProduceResponse)
    assert throttled[0].responses[0].partition_responses[0].base_offset == 0


def test_one_api_alone_is_throttled_and_what_has_no_such_field_is_answered(
    broker: RunningBroker, client: Client
) -> None:
    broker.throttle(ms=700, api="Fetch")
    broker.throttle(ms=700, api="ApiVersions")

    assert getattr(client.ask(MetadataRequest(topics=[]), 9), "throttle_time_ms", None) == 0
    client.ask(ApiVersionsRequest(), 0)


def test_requests_of_one_client_may_be_meant(broker: RunningBroker, client: Client) -> None:
    other = broker.fail_next("Produce", NOT_LEADER, client_id="another")
    this = broker.count("Produce", client_id="test")

    assert produce(client, TOPIC, batch_of(b"one")) == (ErrorCode.NONE, 0)
    assert (other.met_count, this.met_count) == (0, 1)


def test_faults_may_be_asked_for_while_it_is_paused_or_stopped_and_outlive_its_end(broker: RunningBroker) -> None:
    broker.pause()
    first = broker.fail_next("Produce", NOT_LEADER, times=2)
    broker.resume()
    with Client(broker.bootstrap) as client:
        assert produce(client, TOPIC, batch_of(b"one"))[0] == NOT_LEADER
    broker.kill()
    second = broker.fail_next("Produce", "NOT_ENOUGH_REPLICAS")
    broker.start()
    with Client(broker.bootstrap) as client:
        codes = [produce(client, TOPIC, batch_of(b"one"))[0] for _ in range(3)]

    assert codes == [NOT_LEADER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NONE]
    assert (first.met_count, second.met_count) == (2, 1)


def test_all_faults_may_be_ended(broker: RunningBroker, client: Client) -> None:
    broker.fail_next("Produce", NOT_LEADER, times=100)
    broker.drop_next("InitProducerId", times=100)
    broker.clear_faults()

    assert produce(client, TOPIC, batch_of(b"one")) == (ErrorCode.NONE, 0)
    client.ask(InitProducerIdRequest(transaction_timeout_ms=1000), 4)


def test_a_fault_that_cannot_be_is_refused(broker: RunningBroker) -> None:
    with pytest.raises(ValueError, match="did you mean 'Produce'"):
        broker.fail_next("Produced", NOT_LEADER)
    with pytest.raises(ValueError, match="did you mean 'NOT_LEADER_OR_FOLLOWER'"):
        broker.fail_next("Produce", "NOT_LEADER")
    with pytest.raises(ValueError, match="this broker does not answer ControllerRegistration"):
        broker.delay("ControllerRegistration", ms=5)
    with pytest.raises(ValueError, match="ms is 0"):
        broker.throttle(ms=0)
    with pytest.raises(ValueError, match="times is 0"):
        broker.drop_next("Fetch", times=0)


def test_requests_of_many_threads_are_counted_each(broker: RunningBroker) -> None:
    fault = broker.fail_next("Produce", NOT_LEADER, times=40)

    def produce_ten() -> None:
        with Client(broker.bootstrap) as client:
            for _ in range(10):
                produce(client, TOPIC, batch_of(b"one"))

    threads = [threading.Thread(target=produce_ten) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fault.met_count == 40
    assert len(broker.records(TOPIC)) == 10
