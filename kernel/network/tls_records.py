"""Pure core: where the records of TLS end in what a client sends, so that few of them are decrypted in one go.

A record begins with five bytes, in every version: its kind, two of the version, and two of how long the rest is, big
endian. Nothing else of it is looked at; that it is sound is for the library to see.

*Source:* RFC 8446, 5.1 and 5.2; RFC 5246, 6.2.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..classes import define

if TYPE_CHECKING:
    from ..types import Buffer

_HEADER_BYTES: Final = 5


@define
class RecordWalk:
    """Walks from record to record through one client's bytes, in whatever pieces they come.

    Attributes:
        count: How many records have begun, up to the last of their first five bytes.
    """

    count: int = attrs.field(default=0, init=False)
    _rest_bytes: int = attrs.field(default=0, init=False)
    _header: bytes = attrs.field(default=b"", init=False)

    def take(self, data: Buffer, count_max: int) -> int:
        """Go through the next bytes up to the end of as many records, > 0, at most; return how many bytes that is.

        Whoever calls gives the others again: all of `data` unless it holds more records.
        """
        size_bytes, count_end = len(data), self.count + count_max
        position = self._rest_bytes
        if self._header:
            position = _HEADER_BYTES - len(self._header)
            self._header += bytes(data[:position])
            if len(self._header) < _HEADER_BYTES:
                return size_bytes
            position += self._header[3] << 8 | self._header[4]
            self._header = b""
            self.count += 1
        while position < size_bytes:
            if self.count == count_end:
                self._rest_bytes = 0
                return position
            if position + _HEADER_BYTES > size_bytes:
                self._header = bytes(data[position:])
                position = size_bytes
                break
            position += _HEADER_BYTES + (data[position + 3] << 8 | data[position + 4])
            self.count += 1
        self._rest_bytes = position - size_bytes
        return size_bytes
