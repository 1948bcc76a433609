"""The router: what becomes of a frame, whatever is in it and whatever its handler does."""

from __future__ import annotations

import functools
import struct
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.api_handler import PENDING, LazyHandler, RequestContext
from odradek.kernel.dispatch.controller.broker_calls import ANSWERS, BrokerCallHandler
from odradek.kernel.dispatch.handlers.api_19_create_topics import CreateTopicsHandler
from odradek.kernel.dispatch.router import TASKS_MAX, Router
from odradek.kernel.errors import ErrorCode, KafkaError, MalformedRequestError, PluginError
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataResponse
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

from .memory_client import MemoryClient


class Scripted:
    """A handler of Metadata that does what a test says."""

    api_key = 3

    def __init__(self, handle: Callable[[RequestContext], Any]) -> None:
        self._handle = handle

    def handle(self, request: MetadataRequest, context: RequestContext) -> Any:
        return self._handle(context)

    def error_response(self, request: object, context: RequestContext, code: ErrorCode, detail: str) -> Any:
        return MetadataResponse(cluster_id=detail, controller_id=code)


class Waiting:
    """A handler of DescribeCluster that runs as a task."""

    api_key = 60

    def __init__(self, handle: Callable[[], Awaitable[Any]]) -> None:
        self._handle = handle

    async def handle_async(self, request: DescribeClusterRequest, context: RequestContext) -> Any:
        return await self._handle()

    def error_response(self, request: object, context: RequestContext, code: ErrorCode, detail: str) -> Any:
        return DescribeClusterResponse(error_code=code, error_message=detail)


class Versions:
    """The least of an ApiVersions handler."""

    api_key = 18

    def handle(self, request: ApiVersionsRequest, context: RequestContext) -> Any:
        return ApiVersionsResponse()

    def error_response(self, request: object, context: RequestContext, code: ErrorCode, detail: str) -> Any:
        return ApiVersionsResponse(error_code=code)


def router_with(*handlers: Any) -> Router:
    router = Router(timer=lambda: 0.0, turn_enders=(), on_connection_closed=lambda connection: None)
    for handler in handlers:
        router.add(handler)
    return router


def raises(error: Exception) -> Callable[[RequestContext], Any]:
    def handle(context: RequestContext) -> Any:
        raise error

    return handle


def test_an_answer_goes_back_in_the_version_of_the_request() -> None:
    client = MemoryClient(router_with(Scripted(lambda context: MetadataResponse(controller_id=context.api_version))))

    answers = [client.ask(MetadataRequest(topics=[]), version) for version in range(1, 14)]

    assert [answer.controller_id for answer in answers if isinstance(answer, MetadataResponse)] == list(range(1, 14))


def test_a_kafka_error_becomes_the_handlers_error_response() -> None:
    client = MemoryClient(router_with(Scripted(raises(KafkaError(ErrorCode.POLICY_VIOLATION, "no")))))

    answer = client.ask(MetadataRequest(topics=[]), 9)

    assert isinstance(answer, MetadataResponse)
    assert (answer.controller_id, answer.cluster_id) == (ErrorCode.POLICY_VIOLATION, "no")


def test_a_bug_in_a_handler_becomes_unknown_server_error_and_is_counted() -> None:
    router = router_with(Scripted(raises(ZeroDivisionError())))
    client = MemoryClient(router)

    answer = client.ask(MetadataRequest(topics=[]), 9)

    assert isinstance(answer, MetadataResponse)
    assert answer.controller_id == ErrorCode.UNKNOWN_SERVER_ERROR
    assert router.unexpected_errors_count == 1


def test_a_handler_may_find_the_request_malformed() -> None:
    client = MemoryClient(router_with(Scripted(raises(MalformedRequestError("odd")))))

    with pytest.raises(MalformedRequestError, match="odd"):
        client.send(MetadataRequest(topics=[]), 9)
    assert not client.connection.slots  # nothing that answers before it would wait for


def test_what_is_not_answered_names_api_version_and_client() -> None:
    client = MemoryClient(router_with(Scripted(lambda context: MetadataResponse()), Versions()))
    client.connection.client_software_name, client.connection.client_software_version = "kafkactl", "5.0"
    frame = struct.pack(">hhih", 29, 3, 1, 4) + b"mine"

    with pytest.raises(MalformedRequestError) as caught:
        client.send_bytes(struct.pack(">i", len(frame)) + frame)

    assert str(caught.value) == (
        "DescribeAcls (API key 29) version 3 is not answered here; asked by client 'mine', kafkactl 5.0"
    )


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0",
        struct.pack(">hhih", 99, 0, 1, -1),
        struct.pack(">hhih", 3, 99, 1, -1),
        struct.pack(">hhih", 3, -1, 1, -1),
        struct.pack(">hhih", 3, 1, 1, 500),
        struct.pack(">hhih", 3, 1, 1, -1) + b"\x7f\xff\xff\xff",
        struct.pack(">hhih", 3, 9, 1, -1) + b"\xff\xff\xff\xff\xff\xff\xff",
        struct.pack(">hhih", 18, 99, 1, -1),
    ],
)
def test_what_is_no_request_closes_the_connection(frame: bytes) -> None:
    client = MemoryClient(router_with(Scripted(lambda context: MetadataResponse()), Versions()))

    with pytest.raises(MalformedRequestError):
        client.send_bytes(struct.pack(">i", len(frame)) + frame)


def test_api_versions_from_the_future_is_answered_in_version_0_with_our_range() -> None:
    client = MemoryClient(router_with(Versions()))
    body = struct.pack(">hhih", 18, 99, 7, -1) + b"\0\2x\2y\0"

    client.send_bytes(struct.pack(">i", len(body)) + body)

    (frame,) = client.frames()
    answer = decode(ApiVersionsResponse, memoryview(frame), 0, position=4, exact=True)
    assert frame[:4] == struct.pack(">i", 7)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(known.api_key, known.min_version, known.max_version) for known in answer.api_keys] == [(18, 0, 4)]


def test_a_pending_answer_holds_back_those_behind_it() -> None:
    contexts: list[RequestContext] = []

    def handle(context: RequestContext) -> Any:
        contexts.append(context)
        return PENDING if len(contexts) == 1 else MetadataResponse(controller_id=2)

    client = MemoryClient(router_with(Scripted(handle)))
    client.send(MetadataRequest(topics=[]), 9)
    client.send(MetadataRequest(topics=[]), 9)
    assert client.received() == []

    contexts[0].reply(MetadataResponse(controller_id=1))

    answers = client.received()
    assert [answer.controller_id for answer in answers if isinstance(answer, MetadataResponse)] == [1, 2]


def test_a_key_is_answered_by_one_handler_only() -> None:
    router = router_with(Versions())

    with pytest.raises(PluginError, match="plugin 'mine': answers ApiVersions, which the kernel answers"):
        router.add(Versions(), "mine")


async def run_tasks(router: Router, client: MemoryClient, version: int = 1) -> Any:
    """Send one DescribeCluster and return its answer."""
    async with trio.open_nursery() as nursery:
        await nursery.start(router.run)
        client.send(DescribeClusterRequest(), version)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    answers = client.received()
    return answers[0] if answers else None


def test_an_asynchronous_handler_answers_when_it_is_done() -> None:
    async def handle() -> Any:
        await trio.lowlevel.checkpoint()
        return DescribeClusterResponse(cluster_id="here")

    router = router_with(Waiting(handle))

    answer = trio.run(run_tasks, router, MemoryClient(router))

    assert answer == DescribeClusterResponse(cluster_id="here")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError(ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER),
        (RuntimeError("bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_asynchronous_handler_that_fails_is_answered_for(error: Exception, code: ErrorCode) -> None:
    async def handle() -> Any:
        raise error

    router = router_with(Waiting(handle))

    answer = trio.run(run_tasks, router, MemoryClient(router))

    assert answer.error_code == code


class LifeSign(Waiting):
    """A handler that is never behind the others' limit."""

    api_key = 63
    waits_for_nobody = True

    def error_response(self, request: object, context: RequestContext, code: ErrorCode, detail: str) -> Any:
        return BrokerHeartbeatResponse(error_code=code)


def test_a_heartbeat_is_answered_though_as_many_requests_wait_as_may_run() -> None:
    async def alive() -> Any:
        return BrokerHeartbeatResponse(is_caught_up=True)

    router = router_with(Waiting(trio.sleep_forever), LifeSign(alive))
    others = [MemoryClient(router) for _ in range(TASKS_MAX + 1)]
    broker = MemoryClient(router)

    async def scenario() -> list[Any]:
        async with trio.open_nursery() as nursery:
            await nursery.start(router.run)
            for other in others:
                other.send(DescribeClusterRequest(), 1)
            await trio.testing.wait_all_tasks_blocked()
            broker.send(BrokerHeartbeatRequest(), 1)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        return broker.received()

    assert trio.run(scenario) == [BrokerHeartbeatResponse(is_caught_up=True)]


class Aside(Waiting):
    """One that waits for others."""

    async def handle_async(self, request: DescribeClusterRequest, context: RequestContext) -> Any:
        await context.wait_aside(self._handle)
        return DescribeClusterResponse(cluster_id="here")


def test_requests_that_wait_for_others_leave_their_places_and_have_one_again_when_they_go_on() -> None:
    happened = trio.Event()
    router = router_with(Aside(happened.wait))
    waiting = [MemoryClient(router) for _ in range(3 * TASKS_MAX)]
    answered: list[int] = []

    def answers() -> int:
        return sum(len(client.received()) for client in waiting)

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(router.run)
            for client in waiting:
                client.send(DescribeClusterRequest(), 1)
            await trio.testing.wait_all_tasks_blocked()
            answered.append(answers())
            happened.set()
            await trio.testing.wait_all_tasks_blocked()
            answered.append(answers())
            waiting[0].send(DescribeClusterRequest(), 1)
            await trio.testing.wait_all_tasks_blocked()
            answered.append(answers())
            nursery.cancel_scope.cancel()

    trio.run(scenario)

    assert answered == [0, 3 * TASKS_MAX, 1]


def test_a_request_whose_client_goes_while_it_waits_aside_keeps_no_place() -> None:
    router = router_with(Aside(trio.sleep_forever))
    leaving = [MemoryClient(router) for _ in range(TASKS_MAX)]
    others = [MemoryClient(router) for _ in range(TASKS_MAX)]

    async def scenario() -> int:
        async with trio.open_nursery() as nursery:
            await nursery.start(router.run)
            for client in leaving:
                client.send(DescribeClusterRequest(), 1)
            await trio.testing.wait_all_tasks_blocked()
            for client in leaving:
                router.connection_closed(client.connection)
            await trio.testing.wait_all_tasks_blocked()
            router.routes[60].handler._handle = trio.lowlevel.checkpoint
            for client in others:
                client.send(DescribeClusterRequest(), 1)
            await trio.testing.wait_all_tasks_blocked()
            begun = sum(len(client.received()) for client in others)
            nursery.cancel_scope.cancel()
        return begun

    assert trio.run(scenario) == TASKS_MAX


def test_what_a_broker_lives_by_waits_for_nobody() -> None:
    nothing: Any = None
    handlers = [BrokerCallHandler(key, calls=nothing, connections=nothing) for key in ANSWERS]

    assert [handler.api_key for handler in handlers if handler.waits_for_nobody] == [62, 63]


def test_a_request_whose_client_has_left_is_not_begun() -> None:
    begun: list[bool] = []

    async def handle() -> Any:
        begun.append(True)

    router = router_with(Waiting(handle))
    client = MemoryClient(router)

    async def scenario() -> None:
        client.send(DescribeClusterRequest(), 1)
        client.leave()
        async with trio.open_nursery() as nursery:
            await nursery.start(router.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(scenario)

    assert begun == []


def test_a_handler_for_later_is_made_by_the_first_request_and_answers_all() -> None:
    made: list[Scripted] = []

    def make() -> Any:
        made.append(Scripted(lambda context: MetadataResponse(controller_id=context.api_version)))
        return made[-1]

    router = router_with()
    router.add_later(3, make)
    client = MemoryClient(router)
    assert made == []

    answers = [client.ask(MetadataRequest(topics=[]), version) for version in (1, 9)]

    assert [answer.controller_id for answer in answers if isinstance(answer, MetadataResponse)] == [1, 9]
    assert [route.handler for route in router.routes.values()] == made


def test_a_handler_for_later_has_its_own_bounds_from_the_first_request_on() -> None:
    router = router_with()
    router.add_later(19, lambda: CreateTopicsHandler(calls=cast("Any", None)))

    assert router.routes[19].long_frame_bytes == CreateTopicsHandler.pieces.long_frame_bytes
    assert router.routes[19].is_async


def test_a_handler_that_cannot_be_made_costs_the_connection_that_asked_and_is_tried_again() -> None:
    attempts = iter((ImportError("half written"), None))

    def make() -> Any:
        error = next(attempts)
        if error is not None:
            raise error
        return Scripted(lambda context: MetadataResponse(controller_id=7))

    router = router_with()
    router.add_later(3, make)

    with pytest.raises(ImportError, match="half written"):
        MemoryClient(router).send(MetadataRequest(topics=[]), 9)
    answer = MemoryClient(router).ask(MetadataRequest(topics=[]), 9)

    assert isinstance(answer, MetadataResponse)
    assert answer.controller_id == 7


async def test_what_is_asked_soon_is_made_before_anybody_asks_and_what_fails_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made: list[int] = []

    class Heard:
        def __init__(self, api_key: int) -> None:
            made.append(api_key)
            self.api_key = api_key

        def handle(self, request: object, context: RequestContext) -> Any:
            return None

        def error_response(self, request: object, context: RequestContext, code: ErrorCode, detail: str) -> Any:
            return None

    def fail() -> Any:
        raise ImportError("half written")

    router = router_with(LazyHandler(11, lambda: Heard(11)))
    router.add_later(1, fail)
    for api_key in (10, 60):
        router.add_later(api_key, functools.partial(Heard, api_key))

    await router.warm_up()

    assert made == [10, 11]
    assert "half written" in caplog.text
