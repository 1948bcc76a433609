"""A long request in an envelope holds up nobody: it is decoded, answered and encoded in slices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from odradek.kernel import wire
from odradek.kernel.cluster.remote_controller import RemoteController
from odradek.kernel.contracts.pieces import ListPieces
from odradek.kernel.dispatch.controller.envelope import EnvelopeHandler
from odradek.kernel.dispatch.routes import Route
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.turnstile import SLICE_STEPS
from odradek.kernel.wire.headers import decode_response_header
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from odradek.kernel.wire.messages.api_46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from odradek.kernel.wire.messages.api_58_envelope import EnvelopeRequest, EnvelopeResponse
from odradek.kernel.wire.messages.data_principal import DefaultPrincipalData

from .controller_feed import ControllerFeed

ANYBODY = b"\0\0" + wire.encode_bytes(DefaultPrincipalData(type="User", name="ANONYMOUS"), 0)
VERSION = 6
CORRELATION_ID = 7
MANY = [f"topic-{number}" for number in range(20_000)]


class Deleter:
    """Answers DeleteTopics; notes how many topics each piece had. One of the name `refused` is refused."""

    api_key = 20
    pieces = ListPieces("topics", answers=["responses"], items_max=100)

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def handle_async(self, request: DeleteTopicsRequest, context: Any) -> Any:
        names = [topic.name for topic in request.topics]
        self.sizes.append(len(names))
        if "refused" in names:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "not this one")
        return self._all(request, ErrorCode.NONE)

    def error_response(self, request: DeleteTopicsRequest, context: Any, code: ErrorCode, detail: str) -> Any:
        return self._all(request, code)

    @staticmethod
    def _all(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(
            responses=[DeletableTopicResult(name=topic.name, error_code=code) for topic in request.topics]
        )


def enveloped(message: Message) -> EnvelopeRequest:
    frame = wire.encode_request(message, VERSION, CORRELATION_ID, "asking").join()[4:]
    return EnvelopeRequest(request_data=frame, request_principal=ANYBODY, client_host_address=bytes(4))


def beside_others(ask: Callable[[], Awaitable[Any]]) -> tuple[Any, int]:
    """Return an answer, and how often others came in between."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async def main() -> Any:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(others)
            answer = await ask()
            nursery.cancel_scope.cancel()
        return answer

    return trio.run(main), turns


def asked(deleter: Deleter, names: list[str]) -> tuple[list[tuple[str | None, int]], int]:
    """Have topics deleted through an envelope; return names and codes, and how often others came in between."""
    route = Route(wire.APIS[20], deleter, "", lambda: 0.0)
    handler = EnvelopeHandler(routes={20: route}, feed=ControllerFeed)
    request = enveloped(DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names]))
    context: Any = SimpleNamespace(connection=None, api_version=0)
    answer, turns = beside_others(partial(handler.handle_async, request, context))
    assert answer.error_code == ErrorCode.NONE
    data = memoryview(bytes(answer.response_data))
    correlation_id, position = decode_response_header(data, 20, VERSION)
    assert correlation_id == CORRELATION_ID
    response: Any = wire.decode(DeleteTopicsResponse, data, VERSION, position=position)
    return [(each.name, each.error_code) for each in response.responses], turns


def test_others_come_in_between() -> None:
    deleter = Deleter()

    answered, turns = asked(deleter, MANY)

    assert answered == [(name, 0) for name in MANY]
    assert deleter.sizes == [100] * (len(MANY) // 100)
    slices = 2 * len(MANY) // SLICE_STEPS  # to decode and to encode; a topic is a step at least
    assert turns >= len(deleter.sizes) + slices


def test_a_short_one_is_answered_whole() -> None:
    deleter = Deleter()

    assert asked(deleter, ["a", "b"])[0] == [("a", 0), ("b", 0)]
    assert deleter.sizes == [2]


@pytest.mark.parametrize("names", [["refused"], [*MANY[:1000], "refused"]], ids=["short", "long"])
def test_a_refusal_is_the_answer_in_the_envelope(names: list[str]) -> None:
    answered, _ = asked(Deleter(), names)

    assert answered == [(name, ErrorCode.INVALID_REQUEST) for name in names]


@pytest.mark.parametrize("leads", [False, True], ids=["when it comes", "while it is asked"])
def test_who_is_no_controller_any_more_refuses_the_envelope_so_that_its_sender_finds_who_is(leads: bool) -> None:
    class Deposed(Deleter):
        async def handle_async(self, request: DeleteTopicsRequest, context: Any) -> Any:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)

    route = Route(wire.APIS[20], Deposed(), "", lambda: 0.0)
    handler = EnvelopeHandler(routes={20: route}, feed=lambda: ControllerFeed(is_leader=leads))
    request = enveloped(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]))
    context: Any = SimpleNamespace(connection=None, api_version=0)
    with pytest.raises(KafkaError) as refusal:
        trio.run(handler.handle_async, request, context)

    assert refusal.value.code is ErrorCode.NOT_CONTROLLER


class OlderController:
    """A `PeerChannel` to a controller that knows DeleteTopics up to a version; keeps what came in envelopes."""

    def __init__(self, version: int) -> None:
        self._version = version
        self.inner: list[tuple[int, DeleteTopicsRequest]] = []

    async def version_of(self, message: type[Message], *, timeout_ms: int) -> int:
        return self._version

    async def request(self, message: EnvelopeRequest, *, timeout_ms: int) -> EnvelopeResponse:
        data = memoryview(message.request_data)
        header = wire.decode_request_header(data)
        body = wire.decode(DeleteTopicsRequest, data, header.api_version, position=header.size_bytes)
        self.inner.append((header.api_version, body))
        names = [topic.name for topic in body.topics] or body.topic_names
        answer = DeleteTopicsResponse(responses=[DeletableTopicResult(name=name) for name in names])
        return EnvelopeResponse(response_data=wire.encode_response(answer, header.api_version, 0).join()[4:])


def test_others_come_in_between_where_it_is_sent_on() -> None:
    channel = OlderController(6)
    controller = RemoteController(channel, client_id="broker", timeout_ms=30_000)  # type: ignore[arg-type] # as far as it is asked
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in MANY])
    answer, turns = beside_others(partial(controller.ask, request))

    assert [result.name for result in answer.responses] == MANY
    assert turns >= 3 * len(MANY) // SLICE_STEPS, "to find a version, to encode and to decode"


def test_an_answer_may_be_as_long_as_a_cluster_is_large() -> None:
    replicas = list(range(600_000))

    class LargeCluster(OlderController):
        async def request(self, message: EnvelopeRequest, *, timeout_ms: int) -> EnvelopeResponse:
            partition = OngoingPartitionReassignment(partition_index=0, replicas=replicas)
            topic = OngoingTopicReassignment(name="t", partitions=[partition])
            answer = ListPartitionReassignmentsResponse(topics=[topic])
            return EnvelopeResponse(response_data=wire.encode_response(answer, 0, 0).join()[4:])

    controller = RemoteController(LargeCluster(0), client_id="broker", timeout_ms=30_000)  # type: ignore[arg-type] # as far as it is asked
    answer = trio.run(controller.ask, ListPartitionReassignmentsRequest(topics=None))

    assert answer.topics[0].partitions[0].replicas == replicas


def test_what_is_sent_on_is_written_in_a_version_that_the_controller_knows() -> None:
    channel = OlderController(5)
    controller = RemoteController(channel, client_id="broker", timeout_ms=1000)  # type: ignore[arg-type] # as far as it is asked

    answer = trio.run(controller.ask, DeleteTopicsRequest(topic_names=["t"], timeout_ms=7))

    assert [version for version, _ in channel.inner] == [5]
    assert [result.name for result in answer.responses] == ["t"]


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (DeleteTopicsRequest(topic_names=["t"]), 5),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6),
        (DeleteTopicsRequest(), 6),
    ],
)
def test_what_is_sent_on_is_written_in_a_version_that_says_all_of_it(
    request_: DeleteTopicsRequest, version: int
) -> None:
    channel = OlderController(6)
    controller = RemoteController(channel, client_id="broker", timeout_ms=1000)  # type: ignore[arg-type] # as far as it is asked

    answer = trio.run(controller.ask, request_)

    assert channel.inner == [(version, request_)]
    assert len(answer.responses) == len([*request_.topics, *request_.topic_names])


def test_what_an_older_controller_cannot_be_told_is_refused() -> None:
    channel = OlderController(5)
    controller = RemoteController(channel, client_id="broker", timeout_ms=1000)  # type: ignore[arg-type] # as far as it is asked
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])

    with pytest.raises(KafkaError) as refusal:
        trio.run(controller.ask, request)

    assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert channel.inner == []
