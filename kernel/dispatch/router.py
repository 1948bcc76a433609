"""Shell: takes frames from connections, finds the handler by key and version, and sees that every request ends well.

The only place where an exception becomes an error code:

    MalformedRequestError   the connection is closed, as Kafka does with what it cannot read
    KafkaError              the handler's `error_response`
    anything else           a log line with the request, a counter, `error_response` with UNKNOWN_SERVER_ERROR

Requests of an `AsyncApiHandler` become tasks of the router's own nursery; at most `TASKS_MAX` run at once, those that
wait for others not counted (`RequestContext.wait_aside`), and their connections take no further request meanwhile, so
there are never more waiting than there are connections. Long requests have places of their own, see
`long_requests.py`. A handler with `waits_for_nobody` is never behind these limits: a broker whose heartbeat waits for
other requests is taken for dead.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Any, Final

import trio

from ..contracts.api_handler import AS_TASK, PENDING
from ..contracts.signatures import place_of
from ..errors import ErrorCode, KafkaError, MalformedRequestError, PluginError
from ..machine.turnstile import run_in_slices, take_turn
from ..plugin_system.offers import broken
from ..wire.message import Message
from ..wire.messages.api_18_api_versions import ApiVersion, ApiVersionsResponse
from ..wire.registry import API_VERSIONS_KEY, APIS
from ..wire.varint import skip_tags
from .long_requests import GaveUpError, LongFrame, LongRequests, TaskPlace, answer_in_pieces
from .request import Request
from .routes import LaterRoute, Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..contracts.api_handler import ApiHandler, AsyncApiHandler
    from ..contracts.pieces import ListPieces
    from ..network.connection import Connection
    from .routes import RepeatedRequest

log = logging.getLogger(__name__)

TASKS_MAX: Final = 256
ASKED_SOON: Final = (1, 2, 10, 22, 8, 9, 11, 14, 12, 13)
"""What producers and consumers of a broker that has just started ask of it, in about the order in which they do."""
TAGS_MAX: Final = 64
"""How many tagged fields a header may have; Kafka defines none."""
_HEAD: Final = struct.Struct(">hhih")
"""API key, version, correlation id, and the size of the client id, which is -1 for null in every version."""


class Router:
    """The receiver of all frames. Owned by the reactor's task, but for `run`, which is its own service."""

    def __init__(
        self,
        *,
        timer: Callable[[], float],
        turn_enders: Iterable[Callable[[], None]],
        on_connection_closed: Callable[[Connection], None],
    ) -> None:
        """Make a router without routes.

        Args:
            timer: A monotonic clock in seconds, for latencies.
            turn_enders: Called in order when a turn of the reactor ends, before answers are sent.
            on_connection_closed: Called for every connection that ends: lets go of what waits for it.
        """
        self.routes: dict[int, Route] = {}
        self.unexpected_errors_count = 0
        self._timer = timer
        self._turn_enders = tuple(turn_enders)
        self._on_connection_closed = on_connection_closed
        self._long = LongRequests()
        self._send_task, self._receive_task = trio.open_memory_channel[tuple[Request, Any]](float("inf"))
        self._send_now, self._receive_now = trio.open_memory_channel[tuple[Request, Any]](float("inf"))

    def add(self, handler: ApiHandler | AsyncApiHandler, plugin: str = "") -> None:
        """Route an API key to its handler.

        Raises:
            PluginError: The key has a handler already.
        """
        other = self.routes.get(handler.api_key)
        if other is not None:
            raise PluginError(
                plugin, f"answers {other.name}, which {other.plugin or 'the kernel'} answers: disable one of them"
            )
        if handler.api_key not in APIS:
            raise broken(plugin, f"answers API key {handler.api_key} at {place_of(handler)}, and Kafka has no such key")
        self.routes[handler.api_key] = Route(APIS[handler.api_key], handler, plugin, self._timer)

    def add_later(self, api_key: int, make: Callable[[], ApiHandler | AsyncApiHandler]) -> None:
        """Route an API key to a handler of the kernel's that is made when the first request comes."""
        self.routes[api_key] = LaterRoute(APIS[api_key], make, self._timer)

    # -------------------------------------------------------------------------------------------- FrameReceiver

    def connection_opened(self, connection: Connection) -> None:
        """Nothing is owed to a new connection."""

    def connection_closed(self, connection: Connection) -> None:
        """Let go of everything that waits for a connection that is gone."""
        self._long.connection_closed(connection)
        self._on_connection_closed(connection)

    def turn_ended(self) -> None:
        """Finish what the frames of this turn began."""
        for end in self._turn_enders:
            end()

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        """Take one request.

        Raises:
            MalformedRequestError: Unknown key or version, or the bytes are no such request.
        """
        received_s = self._timer()
        try:
            api_key, version, correlation_id, client_id_size = _HEAD.unpack_from(frame)
            route = self.routes[api_key]
        except struct.error:
            raise MalformedRequestError(f"{len(frame)} bytes are no request") from None
        except KeyError:
            raise MalformedRequestError(_who_asks(connection, frame, "is not answered here")) from None
        if not route.min_version <= version <= route.max_version:
            self._answer_unknown_version(connection, route, version, correlation_id, client_id_size, frame)
            return
        request: Request | None = None
        repeats = route.repeats
        found = None if repeats is None else repeats.find(connection, frame, version, client_id_size)
        if found is not None:
            repeated, news = found
            request = Request(route, version, correlation_id, repeated.client_id, connection, received_s)
            if self._handle_repeated(request, repeated, news):
                return
        client_id, position = read_client_id(frame, client_id_size)
        if version >= route.first_flexible_version:
            position = skip_tagged_fields(frame, position)
        is_long = len(frame) >= route.long_frame_bytes
        body = LongFrame(connection, frame, position) if is_long else route.decode(frame, position, version)
        if request is None:
            request = Request(route, version, correlation_id, client_id, connection, received_s)
        if is_long:
            request.hold()
            self._send_now.send_nowait((request, body))
            return
        self._dispatch(route, request, body)
        if repeats is not None and found is None:
            repeats.learn(request, frame, client_id_size, body)

    def _handle_repeated(self, request: Request, repeated: RepeatedRequest, news: Any) -> bool:
        """Have a request answered that was recognised; return False if it must be decoded all the same."""
        try:
            answer = request.route.handler.handle_repeated(repeated, news, request)
        except Exception as error:
            answer = self._error_answer(request, repeated.request, error)
        if answer is None:
            return False
        if answer is not PENDING:
            request.route.send(request, answer)
        return True

    def _dispatch(self, route: Route, request: Request, body: Any) -> None:
        if route.is_async:
            self._begin_task(request, body)
            return
        try:
            answer = route.handler.handle(body, request)
        except MalformedRequestError:
            request.complete(None)
            raise
        except Exception as error:
            answer = self._error_answer(request, body, error)
        if answer is AS_TASK:
            self._begin_task(request, body)
        elif answer is not PENDING:
            route.send(request, answer)

    def _begin_task(self, request: Request, body: Any) -> None:
        request.hold()
        send = self._send_now if request.route.waits_for_nobody else self._send_task
        send.send_nowait((request, body))

    def _error_answer(self, request: Request, body: Any, error: Exception) -> Any:
        """Return what a request is answered whose handler raised."""
        code, detail = ErrorCode.UNKNOWN_SERVER_ERROR, ""
        if isinstance(error, KafkaError):
            code, detail = error.code, error.detail
        else:
            self.unexpected_errors_count += 1
            log.error("%r failed: %s", request, text_of(body), exc_info=error)
        request.route.errors_count += 1
        return request.route.handler.error_response(body, request, code, detail)

    def _error_answer_or_none(self, request: Request, body: Any, error: Exception) -> Any:
        """Like `_error_answer`; a handler that cannot even say what went wrong loses its connection."""
        try:
            return self._error_answer(request, body, error)
        except Exception:
            log.exception("%r: no error response", request)
            request.connection.close("internal failure")
            return None

    def _answer_unknown_version(
        self,
        connection: Connection,
        route: Route,
        version: int,
        correlation_id: int,
        client_id_size: int,
        frame: memoryview,
    ) -> None:
        """Answer ApiVersions of a version from the future in version 0, with the range that we know (KIP-511).

        Raises:
            MalformedRequestError: Any other API: the connection is closed, as Kafka does.
        """
        if route.api_key != API_VERSIONS_KEY:
            raise MalformedRequestError(_who_asks(connection, frame, "is no version that is answered here"))
        if version > route.max_version and len(frame) <= _HEAD.size + max(client_id_size, 0):
            raise MalformedRequestError("ApiVersions without a body")
        request = Request(route, 0, correlation_id, None, connection, self._timer())
        known = ApiVersion(api_key=route.api_key, min_version=route.min_version, max_version=route.max_version)
        route.send(request, ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[known]))

    # ------------------------------------------------------------------------------------------------------- tasks

    async def warm_up(self) -> None:
        """Make the handlers of what is asked soon, one at a time, so that the first request need not wait for imports.

        Others come in between; what is asked rarely, and takes half a millisecond to import, is left to who asks it.
        """
        for api_key in ASKED_SOON:
            await take_turn()
            route = self.routes.get(api_key)
            try:
                if route is not None:
                    route.prepare()
            except Exception:  # who asks tries again, and is told
                log.exception("%r has no handler yet", route)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the requests of asynchronous handlers. If cancelled, requests under way are not answered."""
        limiter = trio.Semaphore(TASKS_MAX)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_now, nursery)
            task_status.started()
            async for request, body in self._receive_task:
                request.place = TaskPlace(limiter)
                await request.place.take()
                nursery.start_soon(self._run_one, request, body, name=f"request {request.route.name}")

    async def _run_now(self, nursery: trio.Nursery) -> None:
        """Begin what waits for nobody, and what is long, which waits for its place as a task: nobody is behind it."""
        async for request, body in self._receive_now:
            is_long = type(body) is LongFrame
            request.place = self._long.place_of(request.route, body) if is_long else TaskPlace(None)
            nursery.start_soon(self._run_one, request, body, name=f"request {request.route.name}")

    async def _run_one(self, request: Request, body: Any) -> None:
        place = request.place  # one that is dispatched behind its decoding gets another
        try:
            if request.connection.is_open or request.route.is_done_without_client:
                with self._long.watch(request.connection):
                    if type(body) is LongFrame:
                        await place.take()
                        await self._run_long(request, body)
                    else:
                        await self._run_short(request, body)
        finally:
            if type(body) is LongFrame:
                body.let_go()
            place.give_back()

    async def _run_short(self, request: Request, body: Any) -> None:
        try:
            answer = await request.route.handler.handle_async(body, request)
        except MalformedRequestError as error:
            request.connection.close(str(error))
            answer = None
        except Exception as error:
            answer = self._error_answer_or_none(request, body, error)
        if answer is not PENDING:
            await self._reply(request, answer)

    async def _run_long(self, request: Request, frame: LongFrame) -> None:
        route = request.route
        try:
            body = await run_in_slices(frame.decode_in_steps(request))
        except MalformedRequestError as error:
            request.connection.close(str(error))
            request.complete(None)
            return
        pieces: ListPieces | None = getattr(route.handler, "pieces", None)
        try:
            if pieces is None:
                await take_turn()  # the last slice of decoding was one
                self._dispatch(route, request, body)
                return
            answer = await answer_in_pieces(pieces, request, body)
        except MalformedRequestError as error:
            request.fail(str(error))
            return
        except GaveUpError as error:
            request.fail(str(error))
            return
        except Exception as error:
            answer = self._error_answer_or_none(request, body, error)
        await self._reply(request, answer)

    async def _reply(self, request: Request, answer: Any) -> None:
        """Answer from a task; an answer that cannot be encoded costs its connection, nobody else's."""
        try:
            parts = None if answer is None else await run_in_slices(request.route.encode_in_steps(request, answer))
        except Exception:
            self.unexpected_errors_count += 1
            log.exception("%r: the answer cannot be sent: %s", request, text_of(answer))
            request.fail("internal failure")
        else:
            request.route.note_answered(request)
            request.complete(parts)


def _who_asks(connection: Connection, frame: memoryview, problem: str) -> str:
    """Return what is said of a request that cannot be answered: its API and version, and who sent it."""
    api_key, version, _correlation_id, client_id_size = _HEAD.unpack_from(frame)
    api = APIS.get(api_key)
    client_id, _position = read_client_id(frame, client_id_size)
    software = f"{connection.client_software_name} {connection.client_software_version}".strip() or "unknown software"
    name = f"API key {api_key}, which Kafka does not have," if api is None else f"{api.name} (API key {api_key})"
    return f"{name} version {version} {problem}; asked by client {client_id!r}, {software}"


def text_of(message: Any) -> str:
    """Return a request or an answer as logs have it: not all of a long one."""
    return message.short_text() if isinstance(message, Message) else type(message).__name__


def read_client_id(frame: memoryview, size: int) -> tuple[str | None, int]:
    """Return the client id of a request's header, and where it ends.

    Raises:
        MalformedRequestError: It does not end within the frame.
    """
    if size < 0:
        return None, _HEAD.size
    end = _HEAD.size + size
    if end > len(frame):
        raise MalformedRequestError("the client id does not end within the request")
    return str(frame[_HEAD.size : end], "utf-8", "replace"), end


def skip_tagged_fields(frame: memoryview, position: int) -> int:
    """Return where the body begins, behind the tagged fields of a request's header.

    Raises:
        MalformedRequestError: They do not end within the frame.
    """
    try:
        if frame[position] == 0:
            return position + 1
        return skip_tags(frame, position, len(frame), TAGS_MAX)[0]
    except IndexError:
        raise MalformedRequestError("the header does not end within the request") from None
