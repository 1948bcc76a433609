"""Pure core: recognises a Produce that says what an earlier one said, but for its records.

A producer asks the same thing again and again: same acks, same time-out, same topic and partition, other records. In
the flexible versions, with one partition and no transactional id, one of two layouts stands before the records::

    v9-12   00 | acks 2 | timeout 4 | 02 | name 1 + n      | 02 | index 4 | records ...  | 00 00 00
    v13     00 | acks 2 | timeout 4 | 02 | topic id 16     | 02 | index 4 | records ...  | 00 00 00

so its length is known at once, and its bytes are a key: what the codec made of them the first time is used again. What
has another layout is not recognised, and decoded as ever; nothing here judges a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...wire.errors import DecodeError
from ...wire.varint import read_unsigned_varint

if TYPE_CHECKING:
    from ...wire.messages.api_00_produce import ProduceRequest

FIRST_VERSION: Final = 9
_FIRST_VERSION_WITH_IDS: Final = 13
KNOWN_MAX: Final = 4096
"""So many different requests are kept; then all are forgotten."""

_TOPICS: Final = 7
"""Where the number of topics stands, in bytes from the body's beginning."""
_NAME: Final = 8
_ONE: Final = 2
"""One item, as a compact array counts."""


class RepeatedProduces:
    """The requests seen before, without their records. Owned by the reactor's task."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, dict[bytes, ProduceRequest]] = {}

    def find(self, frame: memoryview, position: int, version: int) -> tuple[ProduceRequest, memoryview] | None:
        """Return the request that this one repeats, and the records that it brings. Hot.

        Args:
            frame: The whole request.
            position: Where its body begins.
            version: The API version.

        Returns:
            None when it is to be decoded. The request is shared by all that repeat it, and is not to be changed.
        """
        known = self._known.get(version)
        if known is None:
            return None
        try:
            end = _records_position(frame, position, version)
            request = known.get(bytes(frame[position:end]))
            if request is None:
                return None
            size = frame[end]
            if size < 0x80:
                start = end + 1
            else:
                size, start = read_unsigned_varint(frame, end)
            # One more than the length of the records, and three empty lists of tagged fields behind them.
            after = start + size - 1
            if size and after + 3 == len(frame) and not (frame[after] or frame[after + 1] or frame[after + 2]):
                return request, frame[start:after]
        except (IndexError, DecodeError):
            pass
        return None

    def learn(self, frame: memoryview, position: int, version: int, request: ProduceRequest) -> None:
        """Take note of a request that was decoded, if it is of a kind that `find` recognises.

        Args:
            frame: The whole request.
            position: Where its body begins.
            version: The API version.
            request: What the codec made of it; is kept, its records are taken away.
        """
        topics = request.topic_data
        if version < FIRST_VERSION or len(topics) != 1 or len(topics[0].partition_data) != 1:
            return
        (part,) = topics[0].partition_data
        if request.transactional_id is not None or part.records is None:
            return
        end = _records_position(frame, position, version)
        has_long_name = version < _FIRST_VERSION_WITH_IDS and frame[position + _NAME] >= 0x80
        if has_long_name or end > len(frame) or frame[position + _TOPICS] != _ONE or frame[end - 5] != _ONE:
            return
        part.records = None
        known = self._known.setdefault(version, {})
        if len(known) >= KNOWN_MAX:
            known.clear()
        known[bytes(frame[position:end])] = request


def _records_position(frame: memoryview, position: int, version: int) -> int:
    """Return where the records begin, if the request has the one layout that is recognised."""
    if version >= _FIRST_VERSION_WITH_IDS:
        return position + _NAME + 16 + 5
    return position + _NAME + frame[position + _NAME] + 5
