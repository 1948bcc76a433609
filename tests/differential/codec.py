"""Pure core: requests from dictionaries and answers to dictionaries, by the broker's own codec.

The codec has its own tests against independent ones; here it only carries what a session asks. A request's fields that
its version does not have are left out, so that one dictionary serves every version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.wire.codec import ELEMENTS_MAX, decoder, encode_bytes
from odradek.kernel.wire.errors import DecodeError
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.registry import APIS

if TYPE_CHECKING:
    from collections.abc import Mapping

_BY_NAME: Final = {api.name: api for api in APIS.values()}


def api_key(api: str) -> int:
    """Return an API's key."""
    return _BY_NAME[api].key


def versions(api: str) -> range:
    """Return the versions in which an API has messages."""
    lowest, highest = _BY_NAME[api].request.__versions__
    return range(lowest, highest + 1)


def request_is_flexible(api: str, version: int) -> bool:
    """Say whether requests of a version have the flexible header."""
    return version in _BY_NAME[api].flexible


def response_header_is_flexible(api: str, version: int) -> bool:
    """Say whether answers in a version have the flexible header."""
    return api != "ApiVersions" and version in _BY_NAME[api].flexible


def request_class(api: str) -> type[Message]:
    """Return the class of an API's requests."""
    return _BY_NAME[api].request


def encode_request(api: str, version: int, fields: Mapping[str, Any]) -> bytes:
    """Return a request's body.

    Raises:
        KeyError: no version has such a field: the session is wrong.
    """
    return encode_bytes(_message(_BY_NAME[api].request, version, fields), version)


def _message(kind: type[Message], version: int, fields: Mapping[str, Any]) -> Message:
    specs = {spec.name: spec for spec in kind.__fields__}
    values = {}
    for name, value in fields.items():
        spec = specs[name]
        if version not in spec.versions:
            continue
        structure = spec.struct
        if structure is None or value is None:
            values[name] = value
        elif spec.kind == "array":
            values[name] = [_message(structure, version, item) for item in value]
        else:
            values[name] = _message(structure, version, value)
    return kind(**values)


def decode_response(api: str, version: int, body: bytes) -> tuple[dict[str, Any], int]:
    """Return an answer's fields, and how many bytes are left over behind it.

    Raises:
        ValueError: the bytes are no such answer.
    """
    try:
        message, end = decoder(_BY_NAME[api].response, version)(body, 0, ELEMENTS_MAX)
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return _fields(message, version), len(body) - end


def _fields(message: Message, version: int) -> dict[str, Any]:
    return {
        spec.name: _plain(getattr(message, spec.name), version)
        for spec in message.__fields__
        if version in spec.versions
    }


def _plain(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return _fields(value, version)
    if isinstance(value, list):
        return [_plain(item, version) for item in value]
    return value
