"""Shell: requests that may be long: decoded, answered and encoded in slices, so that they hold up nobody.

    frame --decoded in slices--> request --pieces--> handler ... handler --joined--> answer --encoded in slices--> bytes

Between two slices and two pieces stands the turnstile. The connection takes no further request meanwhile, so that the
order of its requests holds. A few are under way at once, and none of those is one that waits for others, as a commit
does for followers or a new topic for the controller: else these few would keep everybody waiting, those that they wait
for among them. Of those whose turn has not come there are only the frames. Their memory counts as lent, as does that of
what was decoded, until it is answered.

How long a request may take it says once, so its pieces share that time: what is left of it, `left_ms` tells.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from ..contracts.api_handler import AS_TASK, PENDING
from ..machine.turnstile import SLICE_STEPS, take_turn
from ..network.receive_memory import WINDOW_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence

    from ..contracts.api_handler import ConnectionInfo, RequestContext
    from ..contracts.pieces import ListPieces
    from ..network.connection import Connection
    from .request import Request
    from .routes import Route

LONG_REQUESTS_MAX: Final = 8
"""How many are decoded and answered at once, those that have waited for others not counted; the rest are frames."""

R = TypeVar("R")


class TaskPlace:
    """The place that a request has among those that run as tasks; given back while it waits for what others do.

    Else as many as may run could wait for as long as clients say, and whoever comes next would wait for them.
    """

    __slots__ = ("_is_held", "_limiter")

    def __init__(self, limiter: trio.Semaphore | None) -> None:
        """Make one that is not held yet; without a limiter there is room for all."""
        self._limiter = limiter
        self._is_held = False

    async def take(self) -> None:
        """Wait for it, unless it is held. Cancelled: it is not held."""
        if self._limiter is not None and not self._is_held:
            await self._limiter.acquire()
            self._is_held = True

    def give_back(self) -> None:
        """Let another request have it; nothing happens where it is not held."""
        if self._limiter is not None and self._is_held:
            self._is_held = False
            self._limiter.release()

    async def wait_aside(self, wait: Callable[[], Awaitable[R]]) -> R:
        """Wait for what others do, and then for a place again. Cancelled: it may be held, or not.

        Not to be called by who holds what is behind a place: all places might wait for that.

        Raises:
            Exception: What `wait` raises; the place is held again.
        """
        self.give_back()
        try:
            return await wait()
        finally:
            await self.take()


class LongPlace(TaskPlace):
    """The place of a long request among the few that are under way.

    Once it has waited it needs none any more: it is decoded by then, and the turnstile shares out what is left to do.
    Queueing anew for each of its pieces it would stand behind all that came meanwhile.
    """

    __slots__ = ("_frame",)

    def __init__(self, limiter: trio.Semaphore | None, frame: LongFrame | None = None) -> None:
        """Make one that is not held yet, of the request in `frame`, if its memory is counted."""
        super().__init__(limiter)
        self._frame = frame

    async def wait_aside(self, wait: Callable[[], Awaitable[R]]) -> R:
        """Give the place back for good, and wait for what others do. Cancelled: it is not held."""
        self.give_back()
        if self._frame is None:
            return await wait()
        self._frame.rest()
        try:
            return await wait()
        finally:
            self._frame.go_on()


class PieceContext:
    """The context of a piece of a request: its answer goes to who asked for the piece.

    Attributes:
        response: The answer, once it is there.
        failure: Why there will be none.
        whole: The request.
    """

    __slots__ = (
        "_answered",
        "_begun_s",
        "api_key",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "failure",
        "response",
        "whole",
    )

    def __init__(self, request: RequestContext, begun_s: float | None = None) -> None:
        """Make the context of a piece; `begun_s` is when the first of all its request's pieces was, None for now."""
        self.whole = request
        self._begun_s = trio.current_time() if begun_s is None else begun_s
        self._answered = trio.Event()
        self.api_key = request.api_key
        self.api_version = request.api_version
        self.client_id = request.client_id
        self.connection: ConnectionInfo = request.connection
        self.correlation_id = request.correlation_id
        self.response: Any = None
        self.failure = ""

    def __repr__(self) -> str:
        return f"<a piece of {self.whole!r}>"

    def spent_ms(self) -> int:
        """Return how long ago the request began to be answered."""
        return int((trio.current_time() - self._begun_s) * 1000)

    def hold(self) -> None:
        """Do nothing: the connection is held for the whole request."""

    def reply(self, response: Any) -> None:
        """Answer the piece."""
        self.response = response
        self._answered.set()

    def fail(self, reason: str) -> None:
        """Give up on the request."""
        self.failure = reason
        self._answered.set()

    def reply_frame(self, parts: Sequence[Any]) -> None:
        """Refuse: whoever answers with frames has no pieces."""
        raise NotImplementedError

    async def wait(self) -> Any:
        """Wait for the answer of a handler that said `PENDING`."""
        await self._answered.wait()
        return self.response

    async def wait_aside(self, wait: Callable[[], Awaitable[Any]]) -> Any:
        """Wait while others run in the place of the whole request."""
        return await self.whole.wait_aside(wait)


class GaveUpError(Exception):
    """A handler gave up on a piece: there is no answer."""


def whole_of(context: RequestContext) -> RequestContext:
    """Return the request that this is a piece of, or that it is itself."""
    return context.whole if isinstance(context, PieceContext) else context


def left_ms(timeout_ms: int, context: RequestContext) -> int:
    """Return how much is left of the time that a request allows, which may be less than none.

    Args:
        timeout_ms: All of it.
        context: The request, or a piece of it.
    """
    return timeout_ms - context.spent_ms() if isinstance(context, PieceContext) else timeout_ms


async def answer_in_pieces(pieces: ListPieces, request: Request, body: Any) -> Any:
    """Have the handler answer a request piece by piece, and return the whole answer.

    Where `ListPieces.begins_all` says so the handler has all pieces before the first that is `PENDING` is waited for.
    Others have one at a time, so that who asks for much is not ahead of everybody in what they wait for.

    If it is cancelled, the pieces before are answered, and nobody is told.

    Raises:
        GaveUpError: The handler gave up.
        Exception: What the handler raises: the request is answered by an error as a whole.
    """
    handler = request.route.handler
    begun: list[tuple[Any, PieceContext]] = []
    begun_s = trio.current_time()
    answer: Any = None
    steps = 0
    for piece in pieces.split(body):
        steps += 1
        if piece is None:
            if not steps % SLICE_STEPS:
                await take_turn()
            continue
        await take_turn()
        context = PieceContext(request, begun_s)
        found = AS_TASK if request.route.is_async else handler.handle(piece, context)
        if found is AS_TASK:
            found = await handler.handle_async(piece, context)
        if pieces.begins_all:
            begun.append((found, context))
        else:
            answer = _joined(pieces, answer, await _told(request, found, context))
    for found, context in begun:
        await take_turn()
        answer = _joined(pieces, answer, await _told(request, found, context))
    return answer


def _joined(pieces: ListPieces, answer: Any, found: Any) -> Any:
    if answer is None:
        return found
    pieces.join(answer, found)
    return answer


async def _told(request: Request, answer: Any, context: PieceContext) -> Any:
    """Return the answer to a piece, once it is there.

    Raises:
        GaveUpError: There will be none.
    """
    if answer is PENDING:
        answer = await request.wait_aside(context.wait)
    if context.failure:
        raise GaveUpError(context.failure)
    return answer


class LongFrame:
    """A frame that waits to be decoded in slices. Life: made in its turn, `decode_in_steps`, answered, `let_go`."""

    __slots__ = ("_connection", "_frame", "_position", "_size_bytes")

    def __init__(self, connection: Connection, frame: memoryview, position: int) -> None:
        """Keep a frame, whose body begins at `position`, beyond its turn: its memory counts as lent until `let_go`.

        One that came in a window is copied: a view would keep an arena, many times as large, from being used.
        """
        self._connection = connection
        is_small = len(frame) <= WINDOW_BYTES
        self._frame: memoryview | None = memoryview(bytearray(frame)) if is_small else frame
        self._position = position
        self._size_bytes = len(frame)
        connection.keep_memory(self._size_bytes)

    def decode_in_steps(self, request: Request) -> Generator[None, None, Any]:
        """Decode the frame and forget it. What it became still counts: how many wait with it for others has no bound.

        Raises:
            DecodeError: The body is malformed.
        """
        assert self._frame is not None, "a frame is decoded once"
        try:
            return (yield from request.route.decode_in_steps(self._frame, self._position, request.api_version))
        finally:
            self._frame = None

    def rest(self) -> None:
        """Note that its request waits for others, who may wait for memory."""
        self._connection.rest_memory(self._size_bytes)

    def go_on(self) -> None:
        """Note that its request is worked on again."""
        self._connection.wake_memory(self._size_bytes)

    def let_go(self) -> None:
        """Have it count no longer; once."""
        self._frame = None
        self._connection.let_memory_go(self._size_bytes)


class LongRequests:
    """Which connections have a request under way in a task, and how many long ones are; owned by the router."""

    def __init__(self) -> None:
        self._limiter = trio.Semaphore(LONG_REQUESTS_MAX)
        self._vital_limiter = trio.Semaphore(LONG_REQUESTS_MAX)
        self._scopes: dict[Connection, trio.CancelScope] = {}

    def place_of(self, route: Route, frame: LongFrame) -> LongPlace:
        """Return the place of a long request, which is not held yet; what waits for nobody has places of its own."""
        return LongPlace(self._vital_limiter if route.waits_for_nobody else self._limiter, frame)

    @contextmanager
    def watch(self, connection: Connection) -> Iterator[None]:
        """Cancel what is done inside when the connection is closed: nobody waits for it any more."""
        with trio.CancelScope() as scope:
            self._scopes[connection] = scope
            try:
                yield
            finally:
                del self._scopes[connection]

    def connection_closed(self, connection: Connection) -> None:
        """End what the connection has under way."""
        scope = self._scopes.get(connection)
        if scope is not None:
            scope.cancel()
