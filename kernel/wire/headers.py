"""Pure core: the headers before every request and response, and whole frames.

    request    size int32 | api_key int16 | api_version int16 | correlation_id int32 | client_id string | tags | body
    response   size int32 | correlation_id int32 | tags | body

The tags are there in flexible versions, but never in the response to ApiVersions. `client_id` may be null, and
keeps its length of two bytes in flexible versions, so that a broker can read the header of an ApiVersions request from
the future.

*Source:* KIP-482, KIP-511; RequestHeader and ResponseHeader of Apache Kafka 4.3.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from ..types import Buffer
from .codec import ELEMENTS_MAX, encode, encoder, encoder_in_steps
from .errors import DecodeError, EncodeError
from .message import Message
from .records import Encoded
from .registry import API_VERSIONS_KEY, APIS
from .varint import skip_tags

if TYPE_CHECKING:
    from collections.abc import Generator

_REQUEST: Final = struct.Struct(">hhih")
_RESPONSE: Final = struct.Struct(">i")
_FRAMED_RESPONSE: Final = struct.Struct(">ii")
_FRAMED_RESPONSE_TAGS: Final = struct.Struct(">iix")
_tuple_new: Final = tuple.__new__


class RequestHeader(NamedTuple):
    """What stands before a request's body.

    Attributes:
        api_key: Known to the registry.
        api_version: Not checked against the versions that are supported.
        correlation_id: To be repeated in the response; any number.
        client_id: The client's name for itself; may be null.
        size_bytes: Where the body begins.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size_bytes: int


def decode_request_header(frame: Buffer) -> RequestHeader:
    """Return the header at the beginning of a frame (without the frame's size).

    Raises:
        DecodeError: The frame is too short, or the API key is unknown: Kafka closes the connection in both cases.
    """
    try:
        api_key, api_version, correlation_id, length = _REQUEST.unpack_from(frame)
        position = 10
        client_id = None
        if length >= 0:
            position += length
            if position > len(frame):
                raise DecodeError("a request header ends too early")
            client_id = str(frame[10:position], "utf-8", "replace")
        api = APIS.get(api_key)
        if api is None:
            raise DecodeError(f"API key {api_key} is unknown")
        if api_version >= api.flexible_from:
            if frame[position]:
                position, _ = skip_tags(frame, position, len(frame), ELEMENTS_MAX)
            else:
                position += 1
    except (IndexError, struct.error):
        raise DecodeError("a request header ends too early") from None
    return _tuple_new(RequestHeader, (api_key, api_version, correlation_id, client_id, position))


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> Encoded:
    """Return a whole frame, size included.

    Raises:
        EncodeError: As `encode`; or `client_id` is longer than 32,767 bytes.
    """
    return _framed(message, version, correlation_id, client_id, encode(message, version))


def encode_request_in_steps(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> Generator[None, None, Encoded]:
    """Return a whole frame, size included, yielding after each item: for messages that may be long.

    Raises:
        EncodeError: As `encode_request`.
    """
    encoded = yield from encoder_in_steps(type(message), version)(message)
    return _framed(message, version, correlation_id, client_id, encoded)


def _framed(message: Message, version: int, correlation_id: int, client_id: str | None, encoded: Encoded) -> Encoded:
    parts, size_bytes = encoded
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    try:
        header = _REQUEST.pack(message.__api_key__, version, correlation_id, length) + name
    except struct.error as error:
        raise EncodeError(f"request header: {error}") from error
    if version >= message.__flexible_from__:
        header += b"\0"
    parts[0] = _RESPONSE.pack(len(header) + size_bytes) + header + cast(bytes, parts[0])
    return Encoded(parts, 4 + len(header) + size_bytes)


def encode_response(message: Message, version: int, correlation_id: int) -> Encoded:
    """Return a whole frame, size included.

    Raises:
        EncodeError: As `encode`.
    """
    cls = type(message)
    parts, size_bytes = (cls.__encoders__.get(version) or encoder(cls, version))(message)
    if version >= cls.__flexible_from__ and cls.__api_key__ != API_VERSIONS_KEY:
        head = _FRAMED_RESPONSE_TAGS.pack(size_bytes + 5, correlation_id)
    else:
        head = _FRAMED_RESPONSE.pack(size_bytes + 4, correlation_id)
    # The first part is bytes made by the encoder, never the caller's: records have their length before them.
    first: Any = parts[0]
    parts[0] = head + first
    return _tuple_new(Encoded, (parts, size_bytes + len(head)))


def decode_response_header(frame: Buffer, api_key: int, version: int) -> tuple[int, int]:
    """Return the correlation id of a response (its frame without the size) and where its body begins.

    Raises:
        DecodeError: The frame is too short.
    """
    try:
        (correlation_id,) = _RESPONSE.unpack_from(frame)
        if APIS[api_key].response_header_version(version) == 0:
            return correlation_id, 4
        position, _ = skip_tags(frame, 4, len(frame), ELEMENTS_MAX)
    except (IndexError, struct.error):
        raise DecodeError("a response header ends too early") from None
    return correlation_id, position
