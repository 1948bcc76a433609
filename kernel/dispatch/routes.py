"""Shell: what is known of one API key at the moment a request of it comes in: handler, versions, codecs, counters."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..contracts.api_handler import LazyHandler
from ..contracts.pieces import LONG_FRAME_BYTES, NEVER_LONG, ListPieces
from ..purgatory.histogram import Histogram
from ..wire.codec import ELEMENTS_MAX, decoder, decoder_in_steps, encoder, encoder_in_steps
from ..wire.versions import NO_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..contracts.api_handler import ApiHandler, AsyncApiHandler
    from ..network.connection import Connection
    from ..wire.message import Message
    from ..wire.registry import Api
    from .request import Request

_HEADER: Final = Struct(">ii")
_FLEXIBLE_HEADER: Final = Struct(">iib")


class RepeatedRequests(Protocol):
    """Knows requests by what they share with earlier ones; a handler that has one as `repeats` need not decode them.

    Such a handler has `handle_repeated(repeated, news, context)`, which answers like `handle`, or returns None: then
    the frame is decoded and handled as ever, and the handler has done nothing yet. `repeated` and `news` are what
    `find` returned: `news` is what the request does not share, a Produce's records, a Fetch's offsets.
    """

    def find(
        self, connection: Connection, frame: memoryview, version: int, client_id_size: int
    ) -> tuple[RepeatedRequest, Any] | None:
        """Return the request that the frame repeats, and what is new; None to decode it."""
        ...

    def learn(self, request: Request, frame: memoryview, client_id_size: int, body: Any) -> None:
        """Take note of a request that was decoded and handled."""
        ...


class RepeatedRequest(Protocol):
    """What is known of a request that was seen before: the request itself, and who sent it."""

    @property
    def request(self) -> Any:
        """What the codec made of it."""
        ...

    @property
    def client_id(self) -> str | None:
        """As its header has it."""
        ...


class Route:
    """One API key of this broker."""

    __slots__ = (
        "_decoders",
        "_encoders",
        "_make",
        "_timer",
        "api",
        "api_key",
        "elements_max",
        "errors_count",
        "first_flexible_version",
        "handler",
        "is_async",
        "is_done_without_client",
        "latency_ms",
        "long_frame_bytes",
        "max_version",
        "min_version",
        "name",
        "plugin",
        "repeats",
        "waits_for_nobody",
    )

    def __init__(
        self, api: Api, handler: ApiHandler | AsyncApiHandler, plugin: str, timer: Callable[[], float]
    ) -> None:
        """Make a route.

        Args:
            api: Kafka's facts about the key.
            handler: Who answers.
            plugin: Whose handler it is; empty for the kernel's.
            timer: A monotonic clock in seconds, for latencies.
        """
        self._know(api, plugin, timer)
        self._take(handler)

    def _know(self, api: Api, plugin: str, timer: Callable[[], float]) -> None:
        self.api = api
        self.api_key = api.key
        self.name = api.name
        self.min_version = api.lowest_of_messages
        self.max_version = api.versions.highest
        self.first_flexible_version = api.flexible.lowest if api.flexible != NO_VERSIONS else 1 << 15
        self.plugin = plugin
        self.errors_count = 0
        self.latency_ms = Histogram()
        self._timer = timer
        self._decoders: dict[int, Callable[..., tuple[Message, int]]] = {}
        self._encoders: dict[int, tuple[Callable[..., Any], bool]] = {}

    def _take(self, handler: ApiHandler | AsyncApiHandler) -> None:
        self.handler: Any = handler
        self.is_async = not hasattr(handler, "handle")
        self.is_done_without_client: bool = getattr(handler, "is_done_without_client", False)
        self.waits_for_nobody: bool = getattr(handler, "waits_for_nobody", False)
        self.repeats: RepeatedRequests | None = getattr(handler, "repeats", None)
        self.elements_max: int = getattr(handler, "elements_max", ELEMENTS_MAX)
        self.long_frame_bytes = long_frame_bytes_of(handler)

    def __repr__(self) -> str:
        return f"Route({self.name} v{self.min_version}-{self.max_version} by {self.plugin or 'the kernel'})"

    def prepare(self) -> None:
        """Have a handler that is made when the first request comes made now."""
        handler = self.handler
        if isinstance(handler, LazyHandler):
            handler.prepare()

    def decode(self, frame: memoryview, position: int, version: int) -> Any:
        """Return the request whose body begins at `position`.

        Raises:
            DecodeError: The body is malformed.
        """
        decode = self._decoders.get(version)
        if decode is None:
            decode = self._decoders[version] = decoder(self.api.request, version)
        return decode(frame, position, self.elements_max)[0]

    def decode_in_steps(self, frame: memoryview, position: int, version: int) -> Generator[None, None, Any]:
        """Decode a request that may be long; see `decode`."""
        body, _end = yield from decoder_in_steps(self.api.request, version)(frame, position, self.elements_max)
        return body

    def encode_in_steps(self, request: Request, response: Any) -> Generator[None, None, list[Any]]:
        """Encode an answer that may be long, and return its frame; see `send`."""
        version = request.api_version
        parts: list[Any]
        parts, size_bytes = yield from encoder_in_steps(self.api.response, version)(response)
        if self.api.response_header_version(version) > 0:
            return [_FLEXIBLE_HEADER.pack(size_bytes + 5, request.correlation_id, 0), *parts]
        return [_HEADER.pack(size_bytes + 4, request.correlation_id), *parts]

    def note_answered(self, request: Request) -> None:
        """Count a request by how long it took."""
        self.latency_ms.record((self._timer() - request.received_s) * 1000)

    def send(self, request: Request, response: Any) -> None:
        """Encode a response and hand it to the request's place in its connection's order; None sends nothing."""
        self.note_answered(request)
        if response is None:
            request.complete(None)
            return
        version = request.api_version
        known = self._encoders.get(version)
        if known is None:
            has_tags = self.api.response_header_version(version) > 0
            known = self._encoders[version] = (encoder(self.api.response, version), has_tags)
        encode, has_tags = known
        parts: list[Any]
        parts, size_bytes = encode(response)
        head = (
            _FLEXIBLE_HEADER.pack(size_bytes + 5, request.correlation_id, 0)
            if has_tags
            else _HEADER.pack(size_bytes + 4, request.correlation_id)
        )
        parts[0] = head + parts[0]  # an encoder puts nothing but bytes of its own first
        request.complete(parts)


class LaterRoute(Route):
    """A route whose handler is made, and its module imported, when something is asked that depends on it.

    Then it is a `Route` like any other: a class with a `__getattr__` is read more slowly, and requests read much of it.
    """

    __slots__ = ()

    def __init__(self, api: Api, make: Callable[[], ApiHandler | AsyncApiHandler], timer: Callable[[], float]) -> None:
        """Make a route of the kernel's own.

        Args:
            api: Kafka's facts about the key.
            make: Makes who answers; called once. Where it raises, so does the question, and the next one tries again.
            timer: As of a `Route`.
        """
        self._know(api, "", timer)
        self._make = make

    def __getattr__(self, name: str) -> Any:
        """Make the handler: what is not set yet is what it says of itself."""
        self._take(self._make())
        self.__class__ = Route  # type: ignore[assignment]
        return getattr(self, name)


def long_frame_bytes_of(handler: ApiHandler | AsyncApiHandler) -> int:
    """Return from which size on a frame is decoded in slices; see `ListPieces`.

    Who is asked for records, and knows what is asked again and again, decodes at once, but never many elements.
    """
    if hasattr(handler, "elements_max"):
        return getattr(handler, "long_frame_bytes", NEVER_LONG)
    pieces = getattr(type(handler), "pieces", None)  # of the class: a lazy handler is not to be made for this
    return pieces.long_frame_bytes if isinstance(pieces, ListPieces) else LONG_FRAME_BYTES
