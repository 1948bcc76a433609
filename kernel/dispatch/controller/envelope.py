"""Shell: Envelope (key 58): a request that a client asked any broker, sent on to the controller.

The answer is the inner one with its header, as the client's broker would have got it. What is refused within it (a
topic that exists) is no refusal of the envelope. A long one is taken in slices, as the router does with its like.

*Source:* KIP-590; Kafka's `EnvelopeUtils`.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

import trio

from ...contracts.api_handler import AS_TASK, PENDING
from ...errors import ErrorCode, KafkaError, MalformedRequestError
from ...machine.turnstile import run_in_slices
from ...wire.codec import decode
from ...wire.errors import DecodeError
from ...wire.headers import decode_request_header
from ...wire.messages.api_58_envelope import EnvelopeResponse
from ...wire.messages.data_principal import DefaultPrincipalData
from ..forwarded import InnerRequest
from ..long_requests import LONG_REQUESTS_MAX, GaveUpError, LongPlace, TaskPlace, answer_in_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.pieces import ListPieces
    from ...metadata.feed_view import MetadataFeedView
    from ...wire.headers import RequestHeader
    from ...wire.messages.api_58_envelope import EnvelopeRequest
    from ..routes import Route

FORWARDABLE: Final = frozenset({19, 20, 29, 30, 31, 33, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81})
"""The APIs that an envelope may hold: what clients ask any broker and the controller answers."""

_SIZE_BYTES: Final = 4
_VERSION_BYTES: Final = 2


class EnvelopeHandler:
    """Answers Envelope through the handler of the request in it."""

    api_key = 58

    def __init__(self, *, routes: Mapping[int, Route], feed: Callable[[], MetadataFeedView]) -> None:
        """Make the handler; `routes` are those of the controller's listener, `feed` returns the node's metadata log."""
        self._routes = routes
        self._feed = feed
        self._limiter = trio.Semaphore(LONG_REQUESTS_MAX)

    async def handle_async(self, request: EnvelopeRequest, context: RequestContext) -> Answer:
        """Answer what the controller answers to the inner request. Cancelled: the node is stopping.

        Raises:
            KafkaError: INVALID_REQUEST: there is no request in it that may be sent on; UNSUPPORTED_VERSION;
                NOT_CONTROLLER: another node is, by now: whoever sent it on finds that one, and its client does not see.
        """
        if not self._feed().is_leader:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        _check_principal(request.request_principal)
        data = memoryview(request.request_data)
        try:
            header = decode_request_header(data)
            ipaddress.ip_address(bytes(request.client_host_address))
        except (DecodeError, ValueError) as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
        route = self._route(header)
        place = TaskPlace(None) if len(data) < route.long_frame_bytes else LongPlace(self._limiter)
        inner = InnerRequest(
            route,
            header.api_key,
            header.api_version,
            header.correlation_id,
            header.client_id,
            context.connection,
            envelope=context,
            place=place,
        )
        await place.take()
        try:
            return await _opened(data, header.size_bytes, inner)
        finally:
            place.give_back()

    def _route(self, header: RequestHeader) -> Route:
        route = self._routes.get(header.api_key) if header.api_key in FORWARDABLE else None
        if route is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"API key {header.api_key} is not sent on to a controller")
        if not route.min_version <= header.api_version <= route.max_version:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{route.name} has no version {header.api_version}")
        return route

    def error_response(self, request: EnvelopeRequest, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the response without an inner one."""
        return EnvelopeResponse(error_code=code)


def _check_principal(data: bytes | None) -> None:
    """See that somebody is named for whom the request is sent on: nobody asks here who may do what.

    Raises:
        KafkaError: PRINCIPAL_DESERIALIZATION_FAILURE.
    """
    try:
        version = int.from_bytes((data or b"")[:_VERSION_BYTES], "big")
        decode(DefaultPrincipalData, memoryview(data or b""), version, position=_VERSION_BYTES)
    except DecodeError as error:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error


async def _opened(data: memoryview, position: int, inner: Any) -> EnvelopeResponse:
    """Return the envelope around the answer to a request whose body begins at `position`.

    Raises:
        KafkaError: INVALID_REQUEST: it is malformed.
    """
    route: Route = inner.route
    is_long = len(data) >= route.long_frame_bytes
    try:
        body = await run_in_slices(route.decode_in_steps(data, position, inner.api_version))
    except MalformedRequestError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    try:
        answer = await (_answer_in_pieces(body, inner) if is_long else _answer(body, inner))
    except KafkaError as error:
        if error.code is ErrorCode.NOT_CONTROLLER:  # it has ceased to be while this was asked: see `handle_async`
            raise
        answer = route.handler.error_response(body, inner, error.code, error.detail)
    parts = await run_in_slices(route.encode_in_steps(inner, answer))
    return EnvelopeResponse(response_data=b"".join(parts)[_SIZE_BYTES:])


async def _answer(body: Any, inner: Any) -> Any:
    """Return what a handler answers."""
    route: Route = inner.route
    answer = AS_TASK if route.is_async else route.handler.handle(body, inner)
    if answer is AS_TASK:
        answer = await route.handler.handle_async(body, inner)
    assert answer is not PENDING, f"{route.name} is answered at once or by a task"
    return answer


async def _answer_in_pieces(body: Any, inner: Any) -> Any:
    """Return what a handler answers, which is asked piece by piece, where it says how."""
    pieces: ListPieces | None = getattr(inner.route.handler, "pieces", None)
    if pieces is None:
        return await _answer(body, inner)
    try:
        return await answer_in_pieces(pieces, inner, body)
    except GaveUpError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
