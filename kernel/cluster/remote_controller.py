"""Shell: how a broker asks the controller of another node: `ControllerCalls` over the wire.

What clients asked this broker goes in an Envelope, in the newest version that the controller knows, too, and that says
all of it; what the broker asks for itself goes as it is. A request is asked again until its time is over while nobody
who is the controller answers it; so it may be done twice, as in Kafka: a topic whose creation was answered to a
connection that broke exists already. While another controller is elected it waits: clients see a slower answer.

What is long, of what is sent and of what comes, is written and read in slices, as where it came from.

*Source:* KIP-590; Kafka's `NodeToControllerChannelManager`, `ForwardingManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from .. import wire
from ..errors import ErrorCode, KafkaError, error_code
from ..machine.turnstile import Slices
from ..peers.connection import ANSWER_ELEMENTS_MAX
from ..peers.errors import ClientError
from ..wire.codec import decoder_in_steps
from ..wire.complete import says_all
from ..wire.errors import DecodeError, EncodeError
from ..wire.headers import decode_response_header, encode_request_in_steps
from ..wire.messages.api_58_envelope import EnvelopeRequest
from ..wire.messages.data_principal import DefaultPrincipalData

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..wire.message import Message
    from ..wire.messages.api_58_envelope import EnvelopeResponse
    from .controller_channel import ControllerChannel

OF_BROKERS: Final = frozenset({56, 62, 63, 67, 70, 73})
"""The APIs that a broker asks for itself."""

_UNKNOWN_HOST: Final = bytes(4)
_SIZE_BYTES: Final = 4


class RemoteController:
    """`ControllerCalls` of a broker that is not the controller's node. Safe to use from many tasks."""

    def __init__(
        self, channel: ControllerChannel, *, client_id: str, timeout_ms: int, own: ControllerChannel | None = None
    ) -> None:
        """Ask over this channel.

        Args:
            channel: To the controller; its requests are answered one by one.
            client_id: What this broker calls itself.
            timeout_ms: How long a request is tried that names no time.
            own: To the controller as well, for what the broker asks for itself: in-sync sets do not wait until what
                clients asked is answered. None where it does.
        """
        self._channel = channel
        self._own = own or channel
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        # In the form that Kafka's controllers read. Nobody proves here who he is.
        self._anybody = b"\0\0" + wire.encode_bytes(DefaultPrincipalData(type="User", name="ANONYMOUS"), 0)

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `metadata.controller_calls.ControllerCalls.ask`."""
        limit_ms = self._timeout_ms if timeout_ms is None else max(timeout_ms, 0)
        is_own = request.__api_key__ in OF_BROKERS
        channel = self._own if is_own else self._channel
        with trio.move_on_after(limit_ms / 1000):
            while True:
                try:
                    if is_own:
                        return await channel.request(request, timeout_ms=limit_ms)
                    return await self._send_on(request, limit_ms)
                except ClientError:
                    pass
                except KafkaError as error:
                    if error.code is not ErrorCode.NOT_CONTROLLER:
                        raise
                await channel.rest()
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    async def _send_on(self, request: Message, timeout_ms: int) -> Any:
        newest = await self._channel.version_of(type(request), timeout_ms=timeout_ms)
        slices = Slices()
        version = await slices.run(_telling_version(request, newest))
        try:
            encoded = await slices.run(encode_request_in_steps(request, version, 0, self._client_id))
        except EncodeError as error:  # the controller's build is older, and cannot be told this
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
        envelope = EnvelopeRequest(
            request_data=encoded.join()[_SIZE_BYTES:],
            request_principal=self._anybody,
            client_host_address=_UNKNOWN_HOST,
        )
        answer: EnvelopeResponse = await self._channel.request(envelope, timeout_ms=timeout_ms)
        if answer.error_code:
            raise KafkaError(error_code(answer.error_code), "the controller refused what was sent on to it")
        return await Slices().run(_opened(request, version, answer))


def _telling_version(request: Message, newest: int) -> Generator[None, None, int]:
    """Return the newest version that says all that was asked: an older client's may say what later ones cannot."""
    for version in range(newest, request.__versions__.lowest - 1, -1):
        if (yield from says_all(request, version)):
            return version
    return newest


def _opened(request: Message, version: int, answer: EnvelopeResponse) -> Generator[None, None, Any]:
    """Return the answer in an envelope.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR: it is none.
    """
    data = memoryview(answer.response_data or b"")
    try:
        _, position = decode_response_header(data, request.__api_key__, version)
        decode = decoder_in_steps(wire.APIS[request.__api_key__].response, version)
        body, _end = yield from decode(data, position, ANSWER_ELEMENTS_MAX)
    except DecodeError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the controller's answer cannot be read: {error}") from error
    return body
