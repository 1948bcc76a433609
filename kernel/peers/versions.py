"""Pure core: which version of an API a client and a broker speak with each other, and what ApiVersions answers.

*Source:* KIP-35, KIP-219, KIP-511.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .. import wire
from ..errors import ErrorCode
from ..wire.messages.api_18_api_versions import ApiVersionsResponse
from .errors import UnsupportedVersionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..types import Buffer
    from ..wire import Message
    from ..wire.versions import Versions


THROTTLED_FROM: Final = {
    0: 6,
    1: 8,
    2: 3,
    3: 6,
    8: 4,
    9: 4,
    10: 2,
    11: 3,
    12: 2,
    13: 2,
    14: 2,
    15: 2,
    16: 2,
    18: 2,
    19: 3,
    20: 2,
    21: 1,
    22: 1,
    24: 1,
    25: 1,
    26: 1,
    28: 1,
    32: 2,
    33: 1,
    34: 1,
    35: 1,
    37: 1,
    42: 1,
}
"""From which version on a broker answers at once and leaves the pause to the client (KIP-219), by API key; before, it
had paused already. APIs that are not here are younger than that."""


def common_version(
    message: type[Message], theirs: Mapping[int, Versions] | None, address: str, version_max: int | None = None
) -> int:
    """Return the newest version of an API that both sides know.

    Args:
        message: The request's class.
        theirs: What the broker said, by API key; None before it was asked: then the newest one of this side.
        address: The broker's, for errors.
        version_max: Not above this, if given.

    Raises:
        UnsupportedVersionError: There is none.
    """
    api = wire.APIS[message.__api_key__]
    ours = message.__versions__
    highest = min(ours.highest, api.versions.highest)
    if version_max is not None:
        highest = min(highest, version_max)
    if theirs is None:
        return highest
    known = theirs.get(message.__api_key__)
    if known is None:
        raise UnsupportedVersionError(f"{address} does not answer {api.name}")
    highest = min(highest, known.highest)
    if highest < max(known.lowest, ours.lowest):
        limit = "" if version_max is None else f", of which at most {version_max} serves here"
        raise UnsupportedVersionError(
            f"{address} answers {api.name} in versions {known}, this client knows {ours}{limit}"
        )
    return highest


def decode_api_versions(
    frame: Buffer, position: int, version: int, *, elements_max: int = wire.ELEMENTS_MAX
) -> ApiVersionsResponse:
    """Return an answer to ApiVersions: in version 0 where it refuses the version of the question (KIP-511).

    Some implementations refuse in a form that is none; that they refuse is clear all the same. librdkafka's mock
    cluster keeps the form of the version it refuses, with an array that says it is empty and is not.

    Args:
        frame: The answer.
        position: Where its header ends.
        version: What was asked in.
        elements_max: How many items its arrays may have.

    Raises:
        wire.DecodeError: It is no answer.
    """
    code = int.from_bytes(frame[position : position + 2], "big", signed=True)
    if code != ErrorCode.UNSUPPORTED_VERSION:
        return wire.decode(ApiVersionsResponse, frame, version, position=position, elements_max=elements_max)
    try:
        return wire.decode(ApiVersionsResponse, frame, 0, position=position, elements_max=elements_max)
    except wire.DecodeError:
        return ApiVersionsResponse(error_code=code)
