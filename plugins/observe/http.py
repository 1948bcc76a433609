"""Shell: a small HTTP service for metrics, health and pages for people; off unless `odradek.http.listener` is set.

HTTP/1.1 is parsed by h11. GET and HEAD only, no request bodies. Whoever connects may be anybody on that network, so
everything is bounded: connections at once, bytes of a request's head, seconds for a request and for its answer.

Health goes first: who asks for it may be about to kill a broker that does not answer. So a connection that has nothing
to say never keeps another out (the one that has been silent for longest is cut off), and pages that cost something are
refused before health is.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import parse_qsl

import attrs
import h11
import trio

from odradek.kernel.api import ConfigError

if TYPE_CHECKING:
    from odradek.kernel.api import Network, StreamListeners

log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 64
"""Beyond this the connection that has been silent for longest is cut off for the next."""
ANSWERS_MAX: Final = 16
"""How many answers are made at once, but for those of `URGENT`."""
URGENT: Final = frozenset({"/healthz", "/readyz"})
"""Pages that cost nothing and are answered whatever else goes on."""
HEAD_BYTES_MAX: Final = 8 * 1024
REQUEST_SECONDS_MAX: Final = 30.0
"""For a whole request to come, from the connection's begin or the answer before."""
ANSWER_SECONDS_MAX: Final = 10.0
"""For an answer to be made and taken."""

_RECEIVE_BYTES: Final = 4096


@attrs.frozen
class Page:
    """An answer.

    Attributes:
        body: Its text.
        status: HTTP's number.
        content_type: Of the body.
    """

    body: str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


PageMaker = Callable[[Mapping[str, str]], Awaitable[Page]]
"""Makes a page from the parameters of a request's query; of a name that came twice, the last value."""

NOT_FOUND: Final = Page("not found\n", 404)
NOT_ALLOWED: Final = Page("only GET and HEAD\n", 405)
TOO_MANY: Final = Page("too many requests at once\n", 503)
FAILED: Final = Page("failed\n", 500)


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT` or `[HOST]:PORT`.

    Raises:
        ConfigError: It is no such thing.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(
            f"{text!r} is not HOST:PORT", where="odradek.http.listener", hint="for example 127.0.0.1:9404"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


class HttpService:
    """Serves pages by path. Life: made, `bind`, `run` in a nursery until cancelled."""

    def __init__(self, address: tuple[str, int], pages: Mapping[str, PageMaker], network: Network) -> None:
        """Make the service.

        Args:
            address: Host and port to listen on; port 0 takes a free one.
            pages: What makes the page of each path.
            network: Where to listen.
        """
        self._address = address
        self._pages = pages
        self._network = network
        self._listeners: StreamListeners | None = None
        self._silent: dict[trio.abc.Stream, trio.CancelScope] = {}  # those who owe a request, longest silent first
        self._answers_count = 0

    def address(self) -> str:
        """Return `HOST:PORT`, as it was bound."""
        host, port = self._address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def bind(self) -> None:
        """Take the port, so that a wrong one stops the start.

        Raises:
            ConfigError: The port is taken, or the host is not this machine's.
        """
        host, port = self._address
        try:
            self._listeners = await self._network.listen_streams(host, port)
        except OSError as error:
            raise ConfigError(
                f"cannot serve HTTP on {host}:{port}: {os.strerror(error.errno) if error.errno else error}",
                where="odradek.http.listener",
                hint="another HOST:PORT; port 0 takes a free one",
            ) from error
        self._address = self._listeners.address

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        """Serve until cancelled; requests under way are then cut off. Binds again when it was run before.

        Raises:
            ConfigError: As `bind`.
        """
        if self._listeners is None:
            await self.bind()
        listeners, self._listeners = self._listeners, None
        assert listeners is not None, "it was bound"
        task_status.started()
        await listeners.serve(self.serve_connection)

    def close(self) -> None:
        """Give back a port that was bound and never served."""
        listeners, self._listeners = self._listeners, None
        if listeners is not None:
            listeners.close()

    async def serve_connection(self, stream: trio.abc.Stream) -> None:
        """Answer the requests of one connection, one after another, and close it. If cancelled, it is cut off."""
        if len(self._silent) >= CONNECTIONS_MAX:
            # It counts no longer: others may come before its task has run.
            self._silent.pop(next(iter(self._silent))).cancel()
        try:
            async with stream:
                connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
                while await self._serve_request(stream, connection):
                    connection.start_next_cycle()
        except trio.BrokenResourceError:
            log.debug("an HTTP client went away")

    async def _serve_request(self, stream: trio.abc.Stream, connection: h11.Connection) -> bool:
        """Answer one request; return whether another one may follow."""
        try:
            request = await self._wait_for_request(stream, connection)
            if request is None:
                return False
            with trio.fail_after(ANSWER_SECONDS_MAX):
                await self._answer(stream, connection, request)
        except trio.TooSlowError:
            return False
        except h11.RemoteProtocolError as error:
            if connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                with trio.move_on_after(ANSWER_SECONDS_MAX):
                    await _send_page(stream, connection, Page("bad request\n", error.error_status_hint))
            return False
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    async def _wait_for_request(self, stream: trio.abc.Stream, connection: h11.Connection) -> h11.Request | None:
        """Return the next request; None when the client has closed the connection, took too long, or was cut off."""
        with trio.move_on_after(REQUEST_SECONDS_MAX) as scope:
            self._silent[stream] = scope
            try:
                return await _receive_request(stream, connection)
            finally:
                self._silent.pop(stream, None)
        return None

    async def _answer(self, stream: trio.abc.Stream, connection: h11.Connection, request: h11.Request) -> None:
        path, _, query = request.target.decode("ascii", "replace").partition("?")
        is_urgent = path in URGENT
        self._answers_count += not is_urgent
        try:
            is_refused = not is_urgent and self._answers_count > ANSWERS_MAX
            page = TOO_MANY if is_refused else await self._make_page(request, path, query)
            await _send_page(stream, connection, page, with_body=request.method != b"HEAD")
        finally:
            self._answers_count -= not is_urgent

    async def _make_page(self, request: h11.Request, path: str, query: str) -> Page:
        if request.method not in (b"GET", b"HEAD"):
            return NOT_ALLOWED
        make = self._pages.get(path)
        if make is None:
            return NOT_FOUND
        try:
            return await make(dict(parse_qsl(query)))
        except Exception:
            log.exception("an HTTP page failed", extra={"path": request.target})
            return FAILED


async def _receive_request(stream: trio.abc.Stream, connection: h11.Connection) -> h11.Request | None:
    """Return the next request once it is here wholly, None when the client has closed the connection."""
    request: h11.Request | None = None
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some(_RECEIVE_BYTES)))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            raise h11.RemoteProtocolError("a request with a body", error_status_hint=413)
        elif isinstance(event, h11.EndOfMessage):
            return request
        else:
            return None


async def _send_page(
    stream: trio.abc.Stream, connection: h11.Connection, page: Page, *, with_body: bool = True
) -> None:
    body = page.body.encode()
    headers = [
        ("content-type", page.content_type),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
        *([("connection", "close")] if page.status >= 400 else []),
    ]
    parts = [connection.send(h11.Response(status_code=page.status, headers=headers))]
    if with_body:
        parts.append(connection.send(h11.Data(data=body)))
    parts.append(connection.send(h11.EndOfMessage()))
    await stream.send_all(b"".join(filter(None, parts)))
