"""Pure core: messages to bytes and back, by functions compiled at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ..types import Buffer
from .errors import DecodeError, EncodeError
from .message import Message
from .records import Encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

M = TypeVar("M", bound=Message)

ELEMENTS_MAX: Final = 500_000
"""How many array items, numbers of arrays and unknown tagged fields one message may hold.

Fifty million empty names fit into a request of 100 MB; this many take about 0.3 s, in slices, and 100 MB. The largest
honest request is a follower's full fetch of every partition of a cluster at Kafka's recommended limit: 200,000
partitions in as many topics. Whoever decodes the answer to its own request may allow more.
"""


def decoder(cls: type[M], version: int) -> Callable[[Buffer, int, int], tuple[M, int]]:
    """Return the function that decodes one version, for callers that keep it: `(buffer, position, elements_max)`.

    It returns the message and the position behind it, and raises `DecodeError` only.

    Raises:
        DecodeError: `cls` has no such version.
    """
    known = cls.__decoders__.get(version)
    if known is None:
        if version not in cls.__versions__:
            raise DecodeError(f"{cls.__name__} has no version {version}, only {cls.__versions__}")
        from .compile_decoder import compile_decoder

        known = cls.__decoders__[version] = compile_decoder(cls, version)
    return cast("Callable[[Buffer, int, int], tuple[M, int]]", known)


def decoder_in_steps(
    cls: type[M], version: int
) -> Callable[[memoryview, int, int], Generator[None, None, tuple[M, int]]]:
    """Return the generator that decodes one version, yielding after each item: for messages that may be long.

    Raises:
        DecodeError: `cls` has no such version.
    """
    known = cls.__decoders__.get(~version)
    if known is None:
        decoder(cls, version)
        from .compile_decoder import compile_decoder

        known = cls.__decoders__[~version] = compile_decoder(cls, version, in_steps=True)
    return cast("Callable[[memoryview, int, int], Generator[None, None, tuple[M, int]]]", known)


def encoder_in_steps(cls: type[M], version: int) -> Callable[[M], Generator[None, None, Encoded]]:
    """Return the generator that encodes one version, yielding after each item: for messages that may be long.

    Raises:
        EncodeError: `cls` has no such version.
    """
    known = cls.__encoders__.get(~version)
    if known is None:
        encoder(cls, version)
        from .compile_encoder import compile_encoder

        known = cls.__encoders__[~version] = compile_encoder(cls, version, in_steps=True)
    return cast("Callable[[M], Generator[None, None, Encoded]]", known)


def item_encoder_in_steps(
    owner: type[Message], cls: type[M], version: int
) -> Callable[[M], Generator[None, None, Encoded]]:
    """Return the generator that encodes a structure of one version of a message by itself, as for a `KeptItem`."""
    known = cls.__encoders__.get(~version)
    if known is None:
        from .compile_encoder import compile_encoder

        known = cls.__encoders__[~version] = compile_encoder(cls, version, in_steps=True, owner=owner)
    return cast("Callable[[M], Generator[None, None, Encoded]]", known)


def encoder(cls: type[M], version: int) -> Callable[[M], Encoded]:
    """Return the function that encodes one version, for callers that keep it.

    Raises:
        EncodeError: `cls` has no such version.
    """
    known = cls.__encoders__.get(version)
    if known is None:
        if version not in cls.__versions__:
            raise EncodeError(f"{cls.__name__} has no version {version}, only {cls.__versions__}")
        from .compile_encoder import compile_encoder

        known = cls.__encoders__[version] = compile_encoder(cls, version)
    return known


def decode(
    cls: type[M],
    buffer: Buffer,
    version: int,
    *,
    position: int = 0,
    exact: bool = False,
    elements_max: int = ELEMENTS_MAX,
) -> M:
    """Return the message that stands in `buffer`.

    Args:
        cls: What is expected.
        buffer: The bytes. A records field becomes a view into it, so it should be a `memoryview`, and must not change
            while the records are used. Everything else is copied.
        version: The version in which the bytes are.
        position: Where it begins, >= 0.
        exact: Whether bytes behind the message are an error. Kafka ignores them behind a request's body.
        elements_max: How many array items it may hold.

    Raises:
        DecodeError: The bytes are not such a message, or there is no such version.
    """
    message, end = decoder(cls, version)(buffer, position, elements_max)
    if exact and end != len(buffer):
        raise DecodeError(f"{cls.__name__} v{version}: {len(buffer) - end} bytes behind its end")
    return message


def encode(message: Message, version: int) -> Encoded:
    """Return the bytes of `message` as buffers for a gathered write.

    Raises:
        EncodeError: There is no such version, or it cannot carry the message: a field that it does not have is set
            and not ignorable, a value is null where it may not, or out of its type's range.
    """
    known: Callable[[Any], Encoded] | None = message.__encoders__.get(version)
    return (known or encoder(type(message), version))(message)


def encode_bytes(message: Message, version: int) -> bytes:
    """Return the bytes of `message` in one piece; for messages without records in files.

    Raises:
        EncodeError: As `encode`.
    """
    return encode(message, version).join()
