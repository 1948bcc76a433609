import re
from collections.abc import Mapping

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.services import Metric
from odradek.kernel.errors import ConfigError
from odradek.kernel.machine.system.network import SystemNetwork
from odradek.plugins.observe import http
from odradek.plugins.observe.http import HttpService, Page, parse_address
from odradek.plugins.observe.pages import make_pages

from .opened import watched


async def broken(_query: Mapping[str, str]) -> Page:
    await trio.lowlevel.checkpoint()
    raise ValueError("broken page")


async def echo(query: Mapping[str, str]) -> Page:
    await trio.lowlevel.checkpoint()
    return Page(repr(query))


async def slow(_query: Mapping[str, str]) -> Page:
    await trio.sleep_forever()
    raise AssertionError


def make_service(*, ready: bool = True) -> HttpService:
    broker = watched(is_serving=ready, metrics=[Metric("m", "Help.", "gauge", lambda: {(): 3})])
    pages = make_pages(broker)
    return HttpService(("127.0.0.1", 0), {**pages, "/broken": broken, "/slow": slow, "/echo": echo}, SystemNetwork())


def talk(sent: bytes, *, service: HttpService | None = None, close: bool = True) -> bytes:
    """Return everything that the service answers to `sent`; its time is a mock clock's."""
    service = service or make_service()
    got = bytearray()

    async def main() -> None:
        client, server = trio.testing.memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(service.serve_connection, server)
            await client.send_all(sent)
            if close:
                await client.send_eof()
            async for data in client:
                got.extend(data)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return bytes(got)


def get(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode()


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_metrics_are_shown_in_prometheus_form() -> None:
    head, body = talk(get("/metrics?x=1")).split(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 200")
    assert b"content-type: text/plain; version=0.0.4; charset=utf-8" in head
    assert body == b"# HELP m Help.\n# TYPE m gauge\nm 3\n"


@pytest.mark.parametrize(
    ("path", "ready", "status"),
    [
        ("/healthz", False, 200),
        ("/readyz", True, 200),
        ("/readyz", False, 503),
        ("/", True, 200),
        ("/topics", True, 200),
        ("/topic", True, 404),
        ("/nope", True, 404),
        ("/broken", True, 500),
    ],
)
def test_pages_have_their_status(path: str, ready: bool, status: int) -> None:
    assert status_of(talk(get(path), service=make_service(ready=ready))) == status


def test_a_page_gets_the_parameters_of_the_query() -> None:
    answer = talk(get("/echo?name=a%26b&empty=&name=%E2%82%AC+%FF?x"))

    assert answer.endswith(repr({"name": "€ \ufffd?x"}).encode())


def test_the_home_page_leads_to_every_other_page_for_people_and_machines() -> None:
    head, body = talk(get("/"), service=make_service(ready=False)).split(b"\r\n\r\n")

    assert b"content-type: text/html; charset=utf-8" in head
    assert re.findall(rb'<a href="([^"]+)"', body) == [b"/topics", b"/metrics", b"/readyz", b"/healthz"]
    assert b"does not serve clients" in body


def test_a_head_request_gets_no_body() -> None:
    answer = talk(get("/healthz", "HEAD"))

    assert b"content-length: 3" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_several_requests_use_one_connection() -> None:
    assert talk(get("/healthz") * 3).count(b"HTTP/1.1 200") == 3


def test_an_error_closes_the_connection() -> None:
    assert talk(get("/nope") + get("/healthz")).count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (get("/metrics", "DELETE"), 405),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * (2 * http.HEAD_BYTES_MAX), 431),
        (b"POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", 413),
        (b"\x16\x03\x01\x02\x00", 400),
    ],
)
def test_bad_requests_are_refused(sent: bytes, status: int) -> None:
    assert status_of(talk(sent)) == status


@pytest.mark.parametrize("sent", [b"", b"GET /heal"])
def test_a_client_that_sends_no_whole_request_is_cut_off_in_time(sent: bytes) -> None:
    assert talk(sent, close=False) == b""


def test_a_page_that_takes_too_long_is_given_up() -> None:
    assert talk(get("/slow"), close=False) == b""


def test_silent_connections_do_not_keep_health_out() -> None:
    service = make_service()
    answers: list[bytes] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            silent = []
            for _ in range(3 * http.CONNECTIONS_MAX):
                ours, theirs = trio.testing.memory_stream_pair()
                silent.append(ours)
                nursery.start_soon(service.serve_connection, theirs)
                await trio.testing.wait_all_tasks_blocked()
            for path in ("/healthz", "/readyz", "/metrics"):
                ours, theirs = trio.testing.memory_stream_pair()
                nursery.start_soon(service.serve_connection, theirs)
                await ours.send_all(get(path))
                await trio.testing.wait_all_tasks_blocked()
                answers.append(bytes(await ours.receive_some()))
            assert trio.current_time() - began < 1, "without a time-out"
            assert len(service._silent) <= http.CONNECTIONS_MAX
            assert await silent[0].receive_some() == b"", "the longest silent was cut off"
            nursery.cancel_scope.cancel()

    began = 0.0

    async def timed() -> None:
        nonlocal began
        began = trio.current_time()
        await main()

    trio.run(timed, clock=trio.testing.MockClock(autojump_threshold=0.01))

    assert [status_of(answer) for answer in answers] == [200, 200, 200]


def test_clients_that_come_all_at_once_are_no_more_than_others() -> None:
    service = make_service()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            pairs = [trio.testing.memory_stream_pair() for _ in range(3 * http.CONNECTIONS_MAX)]
            for _, theirs in pairs:
                nursery.start_soon(service.serve_connection, theirs)
            await trio.testing.wait_all_tasks_blocked()

            assert len(service._silent) == len(nursery.child_tasks) == http.CONNECTIONS_MAX
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock())


def test_answers_are_limited_but_for_health() -> None:
    service = make_service()
    answers: dict[str, bytes] = {}

    async def ask(nursery: trio.Nursery, path: str) -> trio.abc.Stream:
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(service.serve_connection, theirs)
        await ours.send_all(get(path))
        await trio.testing.wait_all_tasks_blocked()
        return ours

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(http.ANSWERS_MAX):
                await ask(nursery, "/slow")
            for path in ("/healthz", "/metrics"):
                answers[path] = bytes(await (await ask(nursery, path)).receive_some())
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert {path: status_of(answer) for path, answer in answers.items()} == {"/healthz": 200, "/metrics": 503}


def test_it_listens_on_a_real_port_and_ends_when_cancelled() -> None:
    async def main() -> bytes:
        async with trio.open_nursery() as nursery:
            service = make_service()
            await service.bind()
            host, _, port = service.address().rpartition(":")
            await nursery.start(service.run)
            stream = await trio.open_tcp_stream(host, int(port))
            await stream.send_all(get("/healthz"))
            answer = bytes(await stream.receive_some(4096))
            await stream.aclose()
            nursery.cancel_scope.cancel()
        return answer

    assert status_of(trio.run(main)) == 200


def test_a_port_that_is_taken_is_the_operators_problem() -> None:
    async def main() -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        with pytest.raises(ConfigError, match=str(port)):
            await HttpService(("127.0.0.1", port), {}, SystemNetwork()).run()  # which binds
        await listener.aclose()

    trio.run(main)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:9404", ("127.0.0.1", 9404)), ("[::1]:0", ("::1", 0)), (":9404", ("", 9404))],
)
def test_addresses_are_read(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["", "9404", "h:", "h:x", "h:70000", "h:²"])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        parse_address(text)
