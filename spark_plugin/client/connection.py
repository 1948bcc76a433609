"""Shell: one conversation with one broker: requests in a pipeline, answers in their order.

    sent = connection.send(request)             # returns at once
    ...                                          # decode what came before
    response = connection.receive()              # the answer to the oldest request

An answer is read by its size prefix into memory taken for it: one piece, no copy. A fetch brings its own `Landing`, the
same memory for every answer; so what was fetched is valid until the next `receive` into it.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.kernel import wire
from odradek.kernel.peers.strangers import who_answered
from odradek.kernel.peers.versions import common_version, decode_api_versions
from odradek.kernel.wire.registry import API_VERSIONS_KEY

from .errors import ClientError, ConnectionFailedError, RequestTimeoutError, UnsupportedVersionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.wire import Message
    from odradek.kernel.wire.versions import Versions

    from .clock import PausingClock
    from .transport import Transport

_PREFIX_BYTES: Final = 4
_STEP_BYTES: Final = 1 << 20
"""A size prefix alone costs no more memory than this: the rest is taken as bytes come."""
_CORRELATION_MASK: Final = 2**31 - 1
_ELEMENTS_MAX: Final = 10_000_000
"""Answers are as large as the client asked for: a listing of a large cluster may be larger than any request."""


class Sent(NamedTuple):
    """A request whose answer is due.

    Attributes:
        correlation_id: What the answer carries.
        response_class: What it will be.
        version: What both are written in.
    """

    correlation_id: int
    response_class: type[Message]
    version: int


class Landing:
    """Memory that answers are read into, one after the other; grows to the largest and stays so."""

    __slots__ = ("_memory",)

    def __init__(self, size_bytes: int = 0) -> None:
        self._memory = memoryview(bytearray(size_bytes))

    @property
    def size_bytes(self) -> int:
        """How much memory there is."""
        return len(self._memory)

    def take(self, size_bytes: int, have_bytes: int = 0) -> memoryview:
        """Return that much memory, of which the first `have_bytes` keep what they hold."""
        if len(self._memory) < size_bytes:
            fresh = memoryview(bytearray(size_bytes))
            fresh[:have_bytes] = self._memory[:have_bytes]
            self._memory = fresh
        return self._memory[:size_bytes]


class Connection:
    """The conversation with one broker; made by `Brokers`, one owner at a time.

    Any failure closes it: after that `is_open` is False and the caller begins again with another one.

    Attributes:
        address: `host:port`.
        node_id: Whom it leads to; negative for bootstrap servers.
        versions: What the broker speaks; None until it has said so.
        retire_at_ms: When it should be replaced, in monotonic time; infinite unless credentials expire.
        used_ms: When it was last used.
        features_epoch: How new `features` is; -1 when the broker does not say.
        features: The cluster's finalized features and their levels.
    """

    def __init__(self, transport: Transport, clock: PausingClock, client_id: str, address: str, node_id: int) -> None:
        self.address = address
        self.node_id = node_id
        self.versions: Mapping[int, Versions] | None = None
        self.retire_at_ms = float("inf")
        self.used_ms = clock.monotonic_ms()
        self.features_epoch = -1
        self.features: Mapping[str, int] = {}
        self._transport = transport
        self._clock = clock
        self._client_id = client_id
        self._sent: deque[Sent] = deque()
        self._next_correlation_id = 0
        self._throttled_until_ms = 0
        self._is_open = True
        self._prefix = memoryview(bytearray(_PREFIX_BYTES))

    @property
    def is_open(self) -> bool:
        """Whether requests are taken."""
        return self._is_open

    @property
    def in_flight_count(self) -> int:
        """How many answers are due."""
        return len(self._sent)

    @property
    def is_fresh(self) -> bool:
        """Whether nothing is due and the broker has not hung up meanwhile."""
        return self._is_open and not self._sent and self._transport.is_quiet()

    def close(self) -> None:
        """End the conversation; answers that are due never come. May be repeated."""
        self._is_open = False
        self._sent.clear()
        self._transport.close()

    def version_of(self, message: type[Message], version_max: int | None = None) -> int:
        """Return the newest version of an API that both sides know.

        Args:
            message: The request's class.
            version_max: Not above this, if given.

        Raises:
            UnsupportedVersionError: There is none.
        """
        return common_version(message, self.versions, self.address, version_max)

    def send(self, message: Message, *, timeout_ms: int, version: int | None = None, is_answered: bool = True) -> Sent:
        """Send a request; its answer comes after those that are due already.

        Args:
            message: The request.
            timeout_ms: How long the broker may take to accept it.
            version: Which version to speak; the newest common one when None.
            is_answered: False for Produce with acks=0.

        Raises:
            ConnectionFailedError: The connection is closed, or broke.
            UnsupportedVersionError: There is no common version, or none that can say what the message holds; nothing
                was sent.
        """
        if not self._is_open:
            raise ConnectionFailedError(f"the connection to {self.address} is closed")
        chosen = self.version_of(type(message)) if version is None else version
        correlation_id = self._next_correlation_id
        try:
            encoded = wire.encode_request(message, chosen, correlation_id, self._client_id)
        except wire.EncodeError as error:
            if chosen == type(message).__versions__.highest:
                raise
            raise UnsupportedVersionError(
                f"{self.address} is too old: version {chosen} cannot say what is needed: {error}"
            ) from None
        self._next_correlation_id = (correlation_id + 1) & _CORRELATION_MASK
        sent = Sent(correlation_id, wire.APIS[message.__api_key__].response, chosen)
        try:
            self._transport.send(encoded.parts, timeout_ms)  # type: ignore[arg-type]  # a client's records are buffers
        except ClientError:
            self.close()
            raise
        if is_answered:
            self._sent.append(sent)
        self.used_ms = self._clock.monotonic_ms()
        return sent

    def receive(self, *, timeout_ms: int, landing: Landing | None = None) -> Any:
        """Return the answer to the oldest request; the caller knows its class.

        Args:
            timeout_ms: How long to wait for it; longer by what the broker said it would pause.
            landing: Memory to read it into; of its own when None.

        Raises:
            RequestTimeoutError: It did not come in time.
            ConnectionFailedError: The connection broke, or the answer cannot be read.
        """
        assert self._sent, "an answer is due"
        sent = self._sent[0]
        deadline_ms = max(self._clock.monotonic_ms(), self._throttled_until_ms) + timeout_ms
        try:
            frame = self._read_frame(sent, deadline_ms, landing or Landing())
            response = self._decode(sent, frame)
        except ClientError:
            self.close()
            raise
        except wire.DecodeError as error:
            self.close()
            raise ConnectionFailedError(
                f"{self.address} answered {_api_name(sent)} v{sent.version} with what cannot be read: {error}"
            ) from None
        self._sent.popleft()
        self.used_ms = self._clock.monotonic_ms()
        throttle_ms: int = getattr(response, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._throttled_until_ms = self.used_ms + throttle_ms
        return response

    def request(self, message: Message, *, timeout_ms: int, version: int | None = None) -> Any:
        """Send a request and return its answer; nothing else may be due.

        Raises:
            ConnectionFailedError: As `send` and `receive`.
            UnsupportedVersionError: As `send`.
        """
        assert not self._sent, "other answers would come first"
        self.send(message, timeout_ms=timeout_ms, version=version)
        return self.receive(timeout_ms=timeout_ms)

    def _read_frame(self, sent: Sent, deadline_ms: int, landing: Landing) -> memoryview:
        self._fill(self._prefix, 0, sent, deadline_ms)
        size = int.from_bytes(self._prefix, "big", signed=True)
        is_first = sent.response_class.__api_key__ == API_VERSIONS_KEY
        stranger = who_answered(bytes(self._prefix)) if is_first else ""
        if stranger or size < _PREFIX_BYTES:
            reason = stranger or f"a frame of {size} bytes"
            raise ConnectionFailedError(f"{self.address} does not answer as a Kafka broker does: {reason}")
        have = 0
        limit = max(_STEP_BYTES, landing.size_bytes)
        while limit < size:
            space = landing.take(limit, have)
            self._fill(space, have, sent, deadline_ms)
            have = limit
            limit *= 2
        frame = landing.take(size, have)
        self._fill(frame, have, sent, deadline_ms)
        return frame

    def _fill(self, space: memoryview, have: int, sent: Sent, deadline_ms: int) -> None:
        """Read until `space`, of which `have` bytes are there, is full."""
        receive_into = self._transport.receive_into
        while have < len(space):
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                raise self._too_late(sent)
            try:
                count = receive_into(space[have:], left_ms)
            except RequestTimeoutError:
                raise self._too_late(sent) from None
            if not count:
                is_first = sent.response_class.__api_key__ == API_VERSIONS_KEY
                hint = " (perhaps it expects TLS or another security.protocol)" if is_first else ""
                raise ConnectionFailedError(
                    f"{self.address} closed the connection instead of answering {_api_name(sent)}{hint}"
                )
            have += count

    def _too_late(self, sent: Sent) -> RequestTimeoutError:
        return RequestTimeoutError(f"{self.address} did not answer {_api_name(sent)} within request.timeout.ms")

    def _decode(self, sent: Sent, frame: memoryview) -> Any:
        cls = sent.response_class
        correlation_id, position = wire.decode_response_header(frame, cls.__api_key__, sent.version)
        if correlation_id != sent.correlation_id:
            raise wire.DecodeError(f"correlation id {correlation_id} instead of {sent.correlation_id}")
        if cls.__api_key__ == API_VERSIONS_KEY:
            return decode_api_versions(frame, position, sent.version, elements_max=_ELEMENTS_MAX)
        return wire.decode(cls, frame, sent.version, position=position, elements_max=_ELEMENTS_MAX)

    def __repr__(self) -> str:
        state = f"{len(self._sent)} in flight" if self._is_open else "closed"
        return f"<Connection {self.address} {state}>"


def _api_name(sent: Sent) -> str:
    return wire.APIS[sent.response_class.__api_key__].name
