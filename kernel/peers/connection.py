"""Shell: one connection to one broker: requests in a pipeline, answers by correlation id, the newest common versions.

    async with open_connection("127.0.0.1", 9092, settings, network=machine.network) as connection:
        response = await connection.request(MetadataRequest(topics=None), timeout_ms=30_000)

Three tasks own it, all inside the `async with`: one writes what callers queued (joined, so that requests of one turn
leave together), one reads answers and wakes their callers, one closes the connection when an answer is overdue. Brokers
answer in order, so the oldest waiting request is always the one that is answered.

.. versionadded:: 0.1
"""

from __future__ import annotations

import math
import os
import ssl
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import attrs
import trio

from odradek import __version__

from .. import wire
from ..errors import ErrorCode
from ..wire.messages.api_18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ..wire.registry import API_VERSIONS_KEY
from ..wire.versions import Versions
from . import strangers
from .errors import (
    ClientError,
    ConnectionFailedError,
    NobodyListensError,
    NotABrokerError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from .lifetime import single_error
from .versions import THROTTLED_FROM, common_version, decode_api_versions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ..machine.network import Network
    from ..wire import Message
    from .settings import ConnectionSettings

_FETCH_KEY: Final = 1
_RECEIVE_BYTES: Final = 256 * 1024
_FRAME_BYTES_MAX: Final = 2**31 - 1
"""Answers are as large as the client asked for: the broker is trusted with the size."""
ANSWER_ELEMENTS_MAX: Final = 10_000_000
"""How many items and numbers an answer may hold: a cluster has many partitions, and this client asked."""
_FIRST_BYTES: Final = 32
"""What is kept of a connection's first answer, to tell who it is that does not speak Kafka's protocol."""
_CORRELATION_MASK: Final = 2**31 - 1
_SOFTWARE_NAME: Final = "odradek"


@attrs.define(eq=False)
class Pending:
    """One request on its way.

    Attributes:
        correlation_id: What its answer will carry.
        response_class: What the answer will be.
        version: What both are written in.
        timeout_ms: After how long without an answer the connection is to be closed; None for never.
        overdue_s: When that is, in trio's time.
        done: Set when there is an answer or an error.
        response: The answer.
        error: Why there will be none.
        on_done: Called when there is either, by the task that owns the connection: answers in their order. Tasks that
            wait for `done` run in any order.
    """

    correlation_id: int
    response_class: type[Message]
    version: int
    timeout_ms: int | None
    overdue_s: float
    done: trio.Event
    response: Message | None = None
    error: ClientError | None = None
    on_done: Callable[[Pending], None] | None = None

    def finish(self) -> None:
        """Tell whoever waits; `response` or `error` is set."""
        self.done.set()
        if self.on_done is not None:
            self.on_done(self)

    async def answer(self) -> Any:
        """Wait for the answer and return it; raises and is cancelled as `Connection.request`."""
        await self.done.wait()
        if self.error is not None:
            raise self.error
        return self.response

    @property
    def name(self) -> str:
        """The API's name."""
        return wire.APIS[self.response_class.__api_key__].name


class Connection:
    """The conversation with one broker; made by `open_connection`, used by any number of tasks.

    Invariant: `_pending` holds the requests whose answers are due, in the order in which they are written.

    Attributes:
        features_epoch: How new `features` is; -1 when the broker does not say.
        features: The cluster's finalized features and their levels.
    """

    def __init__(self, stream: trio.abc.Stream, client_id: str, address: str) -> None:
        self._stream = stream
        self._client_id = client_id
        self._address = address
        self._frames = wire.FrameBuffer(strangers.ANSWER_BYTES_MAX)
        self._first = b""
        self._pending: deque[Pending] = deque()
        self._unanswered: list[Pending] = []
        self._outbox: list[bytes] = []
        self._has_output = trio.Event()
        self._closed = trio.Event()
        self._error: ClientError | None = None
        self._is_retired = False
        self._next_correlation_id = 0
        self._versions: dict[int, Versions] | None = None
        self._used_s = trio.current_time()
        self._awaited_since_s = self._used_s
        self._throttled_until_s = 0.0
        self._looks_again_s = math.inf
        self._has_earlier = trio.Event()
        self.features_epoch = -1
        self.features: dict[str, int] = {}

    @property
    def is_open(self) -> bool:
        """Whether requests are taken."""
        return self._error is None

    @property
    def in_flight_count(self) -> int:
        """How many requests wait for their answers."""
        return len(self._pending)

    @property
    def error(self) -> ClientError | None:
        """Why the connection ended; None while it is open."""
        return self._error

    @property
    def idle_since_s(self) -> float:
        """When it was last used, in trio's time; now while answers are due."""
        return trio.current_time() if self._pending else self._used_s

    @property
    def silent_since_s(self) -> float:
        """Since when the oldest request waits, or the broker has answered nothing; now while no answer is due."""
        return max(self._awaited_since_s, self._throttled_until_s) if self._pending else trio.current_time()

    async def wait_closed(self) -> None:
        """Wait until the connection has ended. Cancelled: nothing happens to it."""
        await self._closed.wait()

    def version_of(self, message: type[Message], version_max: int | None = None) -> int:
        """Return the newest version of an API that both sides know.

        Args:
            message: The request's class.
            version_max: Not above this, if given.

        Raises:
            UnsupportedVersionError: There is none.
        """
        return common_version(message, self._versions, self._address, version_max)

    async def request(self, message: Message, *, timeout_ms: int, version: int | None = None) -> Any:
        """Send a request and return the decoded answer; the caller knows its class.

        Args:
            message: The request.
            timeout_ms: How long to wait for the answer.
            version: Which version to speak; the newest common one when None.

        Raises:
            ConnectionFailedError: The connection broke; whether the broker did it is unknown.
            RequestTimeoutError: No answer came in time; the connection is closed.
            UnsupportedVersionError: The broker does not speak a common version; nothing was sent.
            wire.EncodeError: The message holds what the version cannot say; nothing was sent.

        Cancelled, the answer is dropped when it comes; whether the broker does the request is unknown.
        """
        pending = self.queue(message, version)
        # Not `queue`'s time-out: who is cancelled as the time is over does not take the connection from the others.
        with trio.move_on_at(self._overdue_s(timeout_ms)):
            return await pending.answer()
        if not pending.done.is_set():
            self._close_overdue(pending, timeout_ms)
        return await pending.answer()

    def queue(
        self, message: Message, version: int | None = None, *, timeout_ms: int | None = None, is_answered: bool = True
    ) -> Pending:
        """Queue a request: requests leave in the order of these calls.

        Args:
            message: The request.
            version: Which version to speak; the newest common one when None.
            timeout_ms: After so long without an answer the connection is closed; None where somebody waits who does it.
            is_answered: False for Produce with acks=0: it is done, without a response, once it is written.

        Raises:
            ConnectionFailedError: The connection is closed.
            UnsupportedVersionError: The broker does not speak a common version.
            wire.EncodeError: The message holds what the version cannot say.
        """
        if self._error is not None:
            raise _again(self._error)
        api = wire.APIS[message.__api_key__]
        chosen = self.version_of(type(message)) if version is None else version
        correlation_id = self._next_correlation_id
        encoded = wire.encode_request(message, chosen, correlation_id, self._client_id)
        self._next_correlation_id = (correlation_id + 1) & _CORRELATION_MASK
        now_s = self._used_s = trio.current_time()
        overdue_s = math.inf if timeout_ms is None else self._overdue_s(timeout_ms)
        pending = Pending(correlation_id, api.response, chosen, timeout_ms, overdue_s, trio.Event())
        if overdue_s < self._looks_again_s:
            self._has_earlier.set()
        if not self._pending:
            self._awaited_since_s = now_s
        (self._pending if is_answered else self._unanswered).append(pending)
        self._outbox += cast("list[bytes]", encoded.parts)
        self._has_output.set()
        return pending

    def _overdue_s(self, timeout_ms: int) -> float:
        return max(trio.current_time(), self._throttled_until_s) + timeout_ms / 1_000  # behind a pause it was asked for

    def _close_overdue(self, pending: Pending, timeout_ms: int | None) -> None:
        self.close(RequestTimeoutError(f"{self._address} did not answer {pending.name} within {timeout_ms} ms"))

    def retire(self) -> None:
        """End the connection as soon as no answer is due: it is no longer needed."""
        self._is_retired = True
        self._close_retired()

    def _close_retired(self) -> None:
        if self._is_retired and not self._pending and not self._outbox:
            self.close(ConnectionFailedError(f"the connection to {self._address} was no longer needed"))

    def close(self, error: ClientError) -> None:
        """End the connection: every waiting caller gets `error`, and the tasks end."""
        if self._error is not None:
            return
        self._error = error
        waiting = (*self._pending, *self._unanswered)
        self._pending.clear()
        self._unanswered.clear()
        self._outbox.clear()
        self._closed.set()
        for pending in waiting:
            pending.error = _again(error)
            pending.finish()

    async def run(self) -> None:
        """Read and write until the connection ends. Cancelled: waiting callers get an error."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._read)
                nursery.start_soon(self._expire)
                await self._closed.wait()
                nursery.cancel_scope.cancel()
        finally:
            self.close(ConnectionFailedError(f"the connection to {self._address} was closed"))

    async def _write(self) -> None:
        while True:
            await self._has_output.wait()
            if self._throttled_until_s > trio.current_time():
                await trio.sleep_until(self._throttled_until_s)
            self._has_output = trio.Event()
            data, self._outbox = b"".join(self._outbox), []
            written_count = len(self._unanswered)
            try:
                await self._stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                self.close(ConnectionFailedError(f"sending to {self._address} failed: {error.__cause__ or error}"))
                return
            written, self._unanswered = self._unanswered[:written_count], self._unanswered[written_count:]
            for pending in written:
                pending.finish()

    async def _expire(self) -> None:
        """Close the connection once an answer is overdue; one task for all, which a request mostly finds asleep."""
        while True:
            first = min((*self._pending, *self._unanswered), key=lambda pending: pending.overdue_s, default=None)
            self._looks_again_s = math.inf if first is None else first.overdue_s
            self._has_earlier = trio.Event()
            with trio.move_on_at(self._looks_again_s) as patience:
                await self._has_earlier.wait()
            if patience.cancelled_caught and first is not None and not first.done.is_set():
                self._close_overdue(first, first.timeout_ms)

    async def _read(self) -> None:
        frames = self._frames
        while True:
            try:
                data = await self._stream.receive_some(_RECEIVE_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                self.close(ConnectionFailedError(f"reading from {self._address} failed: {error.__cause__ or error}"))
                return
            if not data:
                ended = ConnectionFailedError(f"{self._address} closed the connection")
                self.close(ended if self._versions is not None else self._stranger(strangers.HANGS_UP))
                return
            if not self._first:
                self._first = bytes(data[:_FIRST_BYTES])
            frames.receive(memoryview(data))
            try:
                while (frame := frames.next_frame()) is not None:
                    self._on_answer(frame)
            except wire.DecodeError as error:
                who = strangers.who_answered(self._first) if self._versions is None else ""
                unreadable = ConnectionFailedError(f"{self._address} sent what cannot be read: {error}")
                self.close(self._stranger(who) if who else unreadable)
                return

    def _stranger(self, who: str) -> NotABrokerError:
        return NotABrokerError(f"{self._address} is no Kafka broker for this client: {who}")

    def _on_answer(self, frame: memoryview) -> None:
        if not self._pending:
            raise wire.DecodeError("an answer that nobody asked for")
        pending = self._pending[0]  # until it is read: whoever closes tells all who are due
        cls = pending.response_class
        correlation_id, position = wire.decode_response_header(frame, cls.__api_key__, pending.version)
        if correlation_id != pending.correlation_id:
            raise wire.DecodeError(f"correlation id {correlation_id} instead of {pending.correlation_id}")
        if cls.__api_key__ == API_VERSIONS_KEY:
            pending.response = decode_api_versions(frame, position, pending.version)
        else:
            if cls.__api_key__ == _FETCH_KEY:
                self._frames.detach()  # the records stay views into this memory
            body = frame[position:]
            pending.response = wire.decode(cls, body, version=pending.version, elements_max=ANSWER_ELEMENTS_MAX)
        self._used_s = self._awaited_since_s = trio.current_time()
        if pending.version >= THROTTLED_FROM.get(cls.__api_key__, 0):
            throttle_ms = getattr(pending.response, "throttle_time_ms", 0)
            if throttle_ms > 0:
                self._throttled_until_s = self._used_s + throttle_ms / 1_000
        self._pending.popleft()
        pending.finish()
        self._close_retired()

    async def negotiate(self, timeout_ms: int) -> None:
        """Ask the broker which versions it speaks.

        Raises:
            ConnectionFailedError: It closed the connection instead.
            UnsupportedVersionError: It refuses every version of the question.

        Cancelled, nothing is known; close the connection.

        *Source:* KIP-511: a broker that does not know the version answers in version 0 and says what it knows.
        """
        request = ApiVersionsRequest(client_software_name=_SOFTWARE_NAME, client_software_version=__version__)
        version = ApiVersionsRequest.__versions__.highest
        response: ApiVersionsResponse = await self.request(request, timeout_ms=timeout_ms, version=version)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            known = [item.max_version for item in response.api_keys if item.api_key == API_VERSIONS_KEY]
            version = min(known[0] if known else 0, version)
            response = await self.request(request, timeout_ms=timeout_ms, version=version)
        if response.error_code:
            raise UnsupportedVersionError(f"{self._address} refuses ApiVersions: error {response.error_code}")
        self._frames.limit_bytes = _FRAME_BYTES_MAX
        self._versions = {item.api_key: Versions(item.min_version, item.max_version) for item in response.api_keys}
        self.features_epoch = response.finalized_features_epoch
        self.features = {item.name: item.max_version_level for item in response.finalized_features}

    def __repr__(self) -> str:
        state = f"closed: {self._error}" if self._error is not None else f"{len(self._pending)} in flight"
        return f"<Connection {self._address} {state}>"


def _again(error: ClientError) -> ClientError:
    """Return an error of the same kind, for another task to raise: tracebacks must not pile up on one object."""
    return type(error)(*error.args)


async def connect_stream(
    network: Network,
    host: str,
    port: int,
    settings: ConnectionSettings,
    context: ssl.SSLContext | None,
    setup_timeout_ms: int,
) -> trio.abc.Stream:
    """Connect to the first address of a host that takes the connection, and speak TLS if there is a context.

    Raises:
        ConnectionFailedError: The name is unknown, or no address answers in time.
        NobodyListensError: Every address refuses.
        NotABrokerError: TLS did not come about.

    Cancelled, nothing is left open.
    """
    reasons: dict[str, str] = {}
    kind_of_error: type[ConnectionFailedError] = NobodyListensError  # as long as every address says so
    try:
        addresses = await network.resolve(host, port)
    except OSError as error:
        raise ConnectionFailedError(f"cannot resolve {host}: {error}") from None
    for address in addresses:
        try:
            with trio.fail_after(setup_timeout_ms / 1_000):
                stream = await network.connect(
                    address,
                    send_buffer_bytes=settings.send_buffer_bytes,
                    receive_buffer_bytes=settings.receive_buffer_bytes,
                )
                return await _secure(stream, context, host)
        except (OSError, trio.TooSlowError, trio.BrokenResourceError) as error:
            if isinstance(error, trio.BrokenResourceError):  # TLS did not come about
                kind_of_error = NotABrokerError
            elif kind_of_error is NobodyListensError and not isinstance(error, ConnectionRefusedError):
                kind_of_error = ConnectionFailedError
            reasons[address.host] = _reason(error)
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    told = reasons.get(host) or "; ".join(f"{address}: {reason}" for address, reason in reasons.items())
    raise kind_of_error(f"cannot connect to {where} ({told})")


def _reason(error: OSError | trio.TooSlowError | trio.BrokenResourceError) -> str:
    """Return why a connection could not be made, without the address, which trio's texts repeat."""
    if isinstance(error, trio.TooSlowError):
        return "no answer in time"
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.errno:
        return os.strerror(error.errno)
    cause = error.__cause__ or error
    is_closed = isinstance(cause, ssl.SSLEOFError) or not isinstance(cause, ssl.SSLError)
    return strangers.who_refused_tls("" if is_closed else getattr(cause, "reason", None) or "?") or str(cause)


async def _secure(stream: trio.abc.Stream, context: ssl.SSLContext | None, host: str) -> trio.abc.Stream:
    if context is None:
        return stream
    secured = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
    try:
        await secured.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return secured


@asynccontextmanager
async def open_connection(
    host: str,
    port: int,
    settings: ConnectionSettings,
    *,
    network: Network,
    context: ssl.SSLContext | None = None,
    setup_timeout_ms: int | None = None,
) -> AsyncIterator[Connection]:
    """Connect, agree on versions, and keep the connection for the time of an `async with`.

    Args:
        host: The broker's name or address.
        port: Its port.
        settings: Time-outs, buffers, the client's id.
        network: By which the broker is reached.
        context: TLS, if any.
        setup_timeout_ms: For one attempt; the settings' when None.

    Raises:
        ConnectionFailedError: The broker cannot be reached.
        UnsupportedVersionError: It speaks another protocol.

    Cancelled or left, the socket is closed and callers that still wait get `ConnectionFailedError`.
    """
    stream = await connect_stream(network, host, port, settings, context, setup_timeout_ms or settings.setup_timeout_ms)
    connection = Connection(stream, settings.client_id, f"{host}:{port}")
    try:
        async with single_error(), trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            try:
                await connection.negotiate(settings.request_timeout_ms)
                yield connection
            finally:
                nursery.cancel_scope.cancel()
    finally:
        await trio.aclose_forcefully(stream)
