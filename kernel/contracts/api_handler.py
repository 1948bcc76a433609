"""Pure core: the API handler contract: how a request of one API key is answered.

Handlers run on the reactor's task: they must not block. Four ways to answer:

* return the response: encoded and sent in the order of requests;
* return `PENDING` and call `context.reply(response)` later, once, from the reactor's task (long polls, acks=all);
* be an `AsyncApiHandler`: the router runs it as a task in the broker's nursery and sends what it returns;
* be both, and return `AS_TASK` from `handle` for the requests that need `handle_async`.

A handler that has a `ListPieces` as `pieces` is asked for long requests piece by piece, as is everything that a task
answers: no request may hold up the others, see `pieces.py`.

Returning None sends nothing (Produce with acks=0). Raising `KafkaError` makes the router ask `error_response`;
raising `MalformedRequestError` closes the connection.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from ..errors import PluginError
from .culprits import plugin_of
from .signatures import module_of, problem_with

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ..errors import ErrorCode
    from .pieces import ListPieces


class Pending(Enum):
    """The type of `PENDING` and `AS_TASK`."""

    PENDING = 0
    AS_TASK = 1


PENDING: Final = Pending.PENDING
AS_TASK: Final = Pending.AS_TASK


class ConnectionInfo(Protocol):
    """What a handler may know of a client's connection; hashable, as itself."""

    def __hash__(self) -> int:
        """Return the hash of the object's identity."""
        ...

    @property
    def connection_id(self) -> int:
        """A number that no other connection of this broker had."""
        ...

    @property
    def listener_name(self) -> str:
        """The listener the client came by; Metadata answers with its advertised addresses."""
        ...

    @property
    def client_host(self) -> str:
        """The client's address."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether an answer could still reach the client."""
        ...

    client_software_name: str
    client_software_version: str
    principal: str

    def close(self, reason: str) -> None:
        """Take no further request of it, and close it once all answers have left."""
        ...

    def keep_memory(self, size_bytes: int, *, rests: bool = False) -> None:
        """Count so much of a request, which `rests` if it waits for others, as lent beyond its turn."""
        ...

    def let_memory_go(self, size_bytes: int, *, rests: bool = False) -> None:
        """Say that it is kept no longer; also when the connection is gone."""
        ...


class RequestContext(Protocol):
    """One request on its way: who asks, in which version, and where the answer goes."""

    @property
    def api_key(self) -> int:
        """The API."""
        ...

    @property
    def api_version(self) -> int:
        """The request's version; the answer has the same."""
        ...

    @property
    def correlation_id(self) -> int:
        """What the client calls this request; the answer carries it."""
        ...

    @property
    def client_id(self) -> str | None:
        """What the client calls itself."""
        ...

    @property
    def connection(self) -> ConnectionInfo:
        """The connection it came by."""
        ...

    def hold(self) -> None:
        """Take no further request of the connection before this one is answered; to be called before `PENDING`."""
        ...

    def reply(self, response: Any) -> None:
        """Answer a request whose handler returned `PENDING`; once; nothing happens when the client is gone.

        None ends it without an answer.
        """
        ...

    def fail(self, reason: str) -> None:
        """Give up on a request whose handler returned `PENDING`: no answer is sent, the connection is closed."""
        ...

    async def wait_aside(self, wait: Callable[[], Awaitable[Any]]) -> Any:
        """Return what `wait` returns, once others did it, in `handle_async`: another of few requests runs meanwhile."""
        ...

    def reply_frame(self, parts: Sequence[Any]) -> None:
        """Like `reply`, with a whole frame that is encoded already: first bytes, its size and header in front."""
        ...


Answer: TypeAlias = Any
"""A response message of the request's API, `PENDING`, or None for no answer at all."""


class ApiHandler(Protocol):
    """Answers the requests of one API key, all versions."""

    api_key: int

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Answer one request; must not block."""
        ...

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that gives every part of the request this error."""
        ...


class AsyncApiHandler(Protocol):
    """Like `ApiHandler`, for work that waits: it runs as a task, other connections go on."""

    api_key: int

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Answer one request, or return `PENDING`. If it is cancelled the broker is stopping, and nobody waits."""
        ...

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that gives every part of the request this error."""
        ...


class LazyHandler:
    """An `ApiHandler` that is made, and its module imported, when the first request of its API comes.

    Most brokers never see most APIs: a start should not pay for them.

    .. versionadded:: 0.1
    """

    def __init__(self, api_key: int, make: Callable[[], ApiHandler]) -> None:
        """Stand in for a handler.

        Args:
            api_key: Its API.
            make: Imports and makes it; called once. Where it raises, the request fails, and the next one tries again.
        """
        self.api_key = api_key
        self._make = make
        self._made: ApiHandler | None = None

    def __repr__(self) -> str:
        return f"LazyHandler({self.api_key})"

    def _handler(self) -> ApiHandler:
        made = self._made
        if made is None:
            made = self._make()
            problem = problem_with(made, ApiHandler)
            if not problem and made.api_key != self.api_key:
                problem = f"{made!r} is not the handler of API {self.api_key}"
            if problem:
                raise PluginError(plugin_of(module_of(self._make)), f"what is made to answer cannot: {problem}")
            self._made = made
        return made

    def prepare(self) -> None:
        """Make the handler now, while nobody waits for it."""
        self._handler()

    @property
    def pieces(self) -> ListPieces | None:
        """How the handler has long requests cut; the handler is made for it."""
        return getattr(self._handler(), "pieces", None)

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Answer one request, as the handler does."""
        return self._handler().handle(request, context)

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Answer one request for which the handler said `AS_TASK`, as the handler does."""
        return await cast("AsyncApiHandler", self._handler()).handle_async(request, context)

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response that gives every part of the request this error, as the handler does."""
        return self._handler().error_response(request, context, code, detail)
