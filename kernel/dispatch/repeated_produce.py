"""Pure core: recognises a Produce that says what an earlier one said, but for its records.

A producer asks the same thing again and again: same acks, same time-out, same topic and partition, other records. In
the flexible versions, with one partition and no transactional id, one of two layouts stands before the records::

    v9-12   00 | acks 2 | timeout 4 | 02 | name 1 + n      | 02 | index 4 | records ...  | 00 00 00
    v13     00 | acks 2 | timeout 4 | 02 | topic id 16     | 02 | index 4 | records ...  | 00 00 00

so its length is known at once, and its bytes, with the client id before them, are a key: what the codec made of them
the first time is used again. What has another layout, or a very long client id, is not recognised, and decoded as ever;
nothing here judges a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..wire.errors import DecodeError
from ..wire.varint import read_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..network.connection import Connection
    from ..wire.messages.api_00_produce import ProduceRequest
    from .request import Request

    Finder = Callable[
        [dict[bytes, "RepeatedProduce"], memoryview, bool, int], tuple["RepeatedProduce", memoryview] | None
    ]

FIRST_VERSION: Final = 9
_FIRST_VERSION_WITH_IDS: Final = 13
KNOWN_MAX: Final = 4096
"""So many different requests of a version are kept; then all are forgotten."""
KEY_BYTES_MAX: Final = 512
"""What has a longer one is not kept: keys are held for good, thousands of them, and a client id may have 32 KB."""

_CLIENT_ID_SIZE: Final = 8
"""Where a header's client id begins, its size in front."""
_HEADER_BYTES: Final = 11
"""How long a flexible header without tagged fields is, but for the client id."""
_TOPICS: Final = 7
"""Where the number of topics stands, in bytes from the body's beginning."""
_NAME: Final = 8
_AFTER_NAME: Final = 5
_TOPIC_ID_BYTES: Final = 16
_ONE: Final = 2
"""One item, as a compact array counts."""
_NO_TAGS: Final = b"\0\0\0"
"""What stands behind the records: the partition's, the topic's and the request's tagged fields."""


class RepeatedProduce(NamedTuple):
    """What is known of a request that was seen before.

    Attributes:
        request: It, without its records; shared by all that repeat it, not to be changed.
        client_id: As its header has it.
    """

    request: ProduceRequest
    client_id: str | None


def find_repeated_in_python(
    known: dict[bytes, RepeatedProduce], frame: memoryview, has_topic_id: bool, client_id_size: int
) -> tuple[RepeatedProduce, memoryview] | None:
    """Return what is known of a request by the bytes before its records, and its records.

    Args:
        known: By these bytes.
        frame: The whole request.
        has_topic_id: Whether an id stands where other versions have a name.
        client_id_size: As the header has it, negative for none.

    Returns:
        None when it is not known, or of another layout.
    """
    try:
        end = _end_of_key(frame, has_topic_id, client_id_size)
        repeated = known.get(frame[_CLIENT_ID_SIZE:end].tobytes())
        if repeated is None:
            return None
        size, start = read_unsigned_varint(frame, end)
    except (IndexError, DecodeError):
        return None
    # One more than the length of the records, and three empty lists of tagged fields behind them.
    after = start + size - 1
    if size and after + len(_NO_TAGS) == len(frame) and frame[after:].tobytes() == _NO_TAGS:
        return repeated, frame[start:after]
    return None


def _end_of_key(frame: memoryview, has_topic_id: bool, client_id_size: int) -> int:
    """Return where the records' length stands; raises IndexError where a name would begin behind the frame's end."""
    name = _HEADER_BYTES + max(client_id_size, 0) + _NAME
    return name + (_TOPIC_ID_BYTES if has_topic_id else frame[name]) + _AFTER_NAME


def _load_kernel() -> Finder | None:
    try:
        from .handlers import _repeated
    except ImportError:
        return None
    return _repeated.find_repeated


_find_repeated: Final[Finder] = _load_kernel() or find_repeated_in_python


class RepeatedProduces:
    """The requests seen before, without their records. Owned by the reactor's task."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, dict[bytes, RepeatedProduce]] = {}

    def find(
        self, connection: Connection, frame: memoryview, version: int, client_id_size: int
    ) -> tuple[RepeatedProduce, memoryview] | None:
        """Return the request that this one repeats, and the records that it brings. Hot.

        Args:
            connection: The client's; it does not matter which.
            frame: The whole request.
            version: The API version.
            client_id_size: As the header has it, negative for none.

        Returns:
            None when it is to be decoded.
        """
        known = self._known.get(version)
        if known is None:
            return None
        return _find_repeated(known, frame, version >= _FIRST_VERSION_WITH_IDS, client_id_size)

    def learn(self, request: Request, frame: memoryview, client_id_size: int, body: ProduceRequest) -> None:
        """Take note of a request that was decoded, if it is of a kind that `find` recognises.

        Args:
            request: As its header has it.
            frame: The whole of it.
            client_id_size: As the header has it, negative for none.
            body: What the codec made of the frame; is kept, its records are taken away.
        """
        version, topics = request.api_version, body.topic_data
        if version < FIRST_VERSION or len(topics) != 1 or len(topics[0].partition_data) != 1:
            return
        (part,) = topics[0].partition_data
        if body.transactional_id is not None or part.records is None:
            return
        position = _HEADER_BYTES + max(client_id_size, 0)
        has_topic_id = version >= _FIRST_VERSION_WITH_IDS
        end = _end_of_key(frame, has_topic_id, client_id_size)
        has_tags = frame[position - 1] != 0
        has_long_name = not has_topic_id and frame[position + _NAME] >= 0x80
        if (
            has_tags
            or has_long_name
            or end > len(frame)
            or end - _CLIENT_ID_SIZE > KEY_BYTES_MAX
            or frame[position + _TOPICS] != _ONE
            or frame[end - _AFTER_NAME] != _ONE
        ):
            return
        part.records = None
        known = self._known.setdefault(version, {})
        if len(known) >= KNOWN_MAX:
            known.clear()
        known[frame[_CLIENT_ID_SIZE:end].tobytes()] = RepeatedProduce(body, request.client_id)
