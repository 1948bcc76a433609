"""Pure core: recognises a Fetch that says what its connection said before, but for where it goes on.

A consumer asks for the same partitions again and again: from other offsets, and in a session (KIP-227) with another
epoch. Where these numbers stand is not known by a table of layouts, but found out from the codec: what was decoded is
encoded once as it is and once with every bit of them turned over, and where the two differ, they stand. A frame that
is equal everywhere else needs no decoding: its numbers are put into the request that was decoded then.

What looks otherwise is decoded as ever; nothing here judges a request.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import TYPE_CHECKING, Final

import attrs

from ..wire.codec import encode_bytes
from ..wire.frame_template import RECORDS_MARK, RecordsFrameTemplate, mark
from ..wire.messages.api_01_fetch import PartitionData
from .fetch_context import SessionlessContext
from .fetch_session import SESSIONLESS_EPOCH

if TYPE_CHECKING:
    from ..network.connection import Connection
    from ..wire.messages.api_01_fetch import FetchRequest
    from ..wire.records import Part
    from .fetch_context import FetchContext
    from .fetch_operation import FetchLimits, FetchResult
    from .request import Request

FIRST_VERSION_WITH_SESSIONS: Final = 7
LEARNED_BYTES_MAX: Final = 4096
"""A longer request is not remembered: some hundred partitions, kept for as long as the connection lives."""
ATTEMPTS: Final = 4
"""So often in a row something is learned that is never repeated; then nothing more is."""

_HEADER_BYTES: Final = 10
"""How long a header is, but for the client id and, in the flexible versions, the number of tagged fields."""
_START: Final = 8
"""Where what is compared begins: behind key and version, which the caller knows, and the correlation id."""
_TURNED: Final = re.compile(rb"\xff+")
_FORMATS: Final = {4: "i", 8: "q"}


@attrs.define(eq=False)
class RepeatedFetch:
    """What a connection's fetches look like, and what the codec made of one.

    Attributes:
        size_bytes: Of the last frame that was decoded.
        attempts: How often something may be learned before anything is repeated.
        request: With the numbers of the frame found last; valid until the next is.
        client_id: As its header has it.
        version: Of the request.
        layout: What is compared and numbers in turn; None before anything is learned.
        fixed: What is compared.
        limits: Those of `request`, once they were asked for.
        session: What `request` was answered from, if that was outside of a session: it is used again.
        template: Of an answer to `request` outside of a session, once there was one.
    """

    size_bytes: int
    attempts: int = ATTEMPTS
    request: FetchRequest = attrs.field(init=False)
    client_id: str | None = None
    version: int = -1
    layout: Struct | None = None
    fixed: tuple[bytes, ...] = ()
    limits: FetchLimits | None = None
    session: SessionlessContext | None = None
    template: RecordsFrameTemplate | None = None

    def go_on(self, numbers: tuple[int, ...]) -> SessionlessContext | None:
        """Put the numbers of a frame that was found into `request`, and into what is returned: what `keep` was given.

        None when there is no such thing, or the client asks for a session now.
        """
        request = self.request
        _put(numbers, request, self.version)
        session = self.session
        if session is None or request.session_epoch != SESSIONLESS_EPOCH:
            return None
        session.go_on(request)
        return session

    def keep(self, session: FetchContext) -> None:
        """Keep what `request` is answered from for those that repeat it, if that leaves nothing behind."""
        names_count = sum(len(topic.partitions) for topic in self.request.topics)
        if isinstance(session, SessionlessContext) and len(session.targets) == names_count:  # none is named twice
            self.session = session

    def frame(self, result: FetchResult, correlation_id: int) -> list[Part] | None:
        """Return the frame of an answer from `session`: by template where all went well, and it is of one partition.

        None where that is not so: it is to be encoded. Hot.
        """
        answers = result.answers
        if len(answers) != 1 or result.is_final:
            return None
        answer = answers[0]
        if answer is None or answer.aborted_transactions or answer.records is None:
            return None
        template = self.template
        if template is None:
            template = self.template = self._new_template(answer)
        numbers = (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset)
        return template.fill(correlation_id, numbers, answer.records)

    def _new_template(self, like: PartitionData) -> RecordsFrameTemplate:
        assert self.session is not None, "only what is answered outside of a session has a template"
        answer = PartitionData(
            partition_index=like.partition_index,
            high_watermark=mark(0),
            last_stable_offset=mark(1),
            log_start_offset=mark(2),
            aborted_transactions=like.aborted_transactions,
            records=RECORDS_MARK,
        )
        return RecordsFrameTemplate(self.session.build([answer]), self.version)


class RepeatedFetches:
    """Finds what connections repeat; what is known of one is kept with it."""

    __slots__ = ()

    def find(
        self, connection: Connection, frame: memoryview, version: int, client_id_size: int
    ) -> tuple[RepeatedFetch, tuple[int, ...]] | None:
        """Return what the connection repeats, and the numbers that are new, for its `go_on`. Hot.

        Args:
            connection: The client's.
            frame: The whole request.
            version: The API version.
            client_id_size: Not needed.

        Returns:
            None when the frame is to be decoded.
        """
        known: RepeatedFetch | None = connection.remembered
        if known is None or known.layout is None or len(frame) != known.layout.size or version != known.version:
            return None
        values = known.layout.unpack(frame)
        if values[::2] != known.fixed:
            return None
        known.attempts = ATTEMPTS
        return known, values[1::2]

    def learn(self, request: Request, frame: memoryview, client_id_size: int, body: FetchRequest) -> None:
        """Take note of a request that was decoded, the second time that one of its size is.

        Args:
            request: As its header has it.
            frame: The whole of it.
            client_id_size: As the header has it, negative for none.
            body: What the codec made of the frame; is kept.
        """
        connection, size_bytes = request.connection, len(frame)
        known: RepeatedFetch | None = connection.remembered
        if known is None:
            connection.remembered = RepeatedFetch(size_bytes)
            return
        if known.size_bytes != size_bytes or not known.attempts or size_bytes > LEARNED_BYTES_MAX:
            known.size_bytes = size_bytes
            return
        known.attempts -= 1
        version = request.api_version
        header_bytes = _HEADER_BYTES + max(client_id_size, 0) + (version >= body.__flexible_from__)
        layout = _layout_of(frame, header_bytes, version, body)
        if layout is not None:
            known.layout, known.fixed = layout, layout.unpack(frame)[::2]
            known.request, known.client_id, known.version = body, request.client_id, version
            known.limits = known.session = known.template = None


def _put(numbers: tuple[int, ...], request: FetchRequest, version: int) -> None:
    left = iter(numbers)
    if version >= FIRST_VERSION_WITH_SESSIONS:
        request.session_epoch = next(left)
    for topic in request.topics:
        for part in topic.partitions:
            part.fetch_offset = next(left)


def _turn_over(request: FetchRequest, version: int) -> None:
    """Turn every bit over of the numbers that `_put` puts in; a second time gives them back."""
    if version >= FIRST_VERSION_WITH_SESSIONS:
        request.session_epoch = ~request.session_epoch
    for topic in request.topics:
        for part in topic.partitions:
            part.fetch_offset = ~part.fetch_offset


def _layout_of(frame: memoryview, start: int, version: int, request: FetchRequest) -> Struct | None:
    """Return the layout of a frame whose body should begin at `start`; None if the codec would not write it so."""
    body = encode_bytes(request, version)
    if frame[start:] != body:
        return None
    _turn_over(request, version)
    turned = encode_bytes(request, version)
    _turn_over(request, version)
    difference = (int.from_bytes(body, "big") ^ int.from_bytes(turned, "big")).to_bytes(len(body), "big")
    layout, position = f">{_START}x", _START
    for found in _TURNED.finditer(difference):
        begin, end = found.span()
        layout += f"{start + begin - position}s{_FORMATS[end - begin]}"
        position = start + end
    return Struct(f"{layout}{len(frame) - position}s")
