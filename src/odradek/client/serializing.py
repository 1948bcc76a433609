"""Pure core: what a user gives as a record becomes bytes, or is refused before any of it stands in a batch.

A record that fails while it is written into its batch would take the others of that batch, and the producer, with it.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from .errors import ClientUsageError, SerializationError

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMESTAMP_END: Final = 2**63


def serialize(what: str, serializer: Callable[[str, Any], Any] | None, topic: str, given: Any) -> bytes | None:
    """Return a key or value as bytes; without a serializer that is bytes, text or None.

    Raises:
        SerializationError: The serializer failed, or it is none of these.
    """
    if serializer is not None:
        try:
            given = serializer(topic, given)
        except Exception as error:
            raise SerializationError(f"the {what} serializer failed: {error}") from error
    kind = type(given)
    if given is None or kind is bytes:
        plain: bytes | None = given
        return plain
    if kind is str and serializer is None:
        try:
            return str(given).encode()
        except UnicodeEncodeError as error:
            raise SerializationError(f"the {what} is no text: {error}") from None
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    raise SerializationError(f"a {what} of type {kind.__name__}: set {what}.serializer, or give bytes or text")


def check_headers(headers: object) -> None:
    """See that headers are a sequence of pairs: a text, and bytes or None.

    Raises:
        SerializationError: They are not.
    """
    if not isinstance(headers, Sequence):
        raise SerializationError(f"headers of type {type(headers).__name__}: give a list of names and values")
    for header in headers:
        if not isinstance(header, Sequence) or len(header) != 2:
            raise SerializationError(f"the header {header!r} is no pair of a name and a value")
        name, content = header
        if not isinstance(name, str):
            raise SerializationError(f"a header's name of type {type(name).__name__}: give text")
        if not isinstance(content, bytes | bytearray | None):
            raise SerializationError(
                f"the value of header {name!r} of type {type(content).__name__}: give bytes or None"
            )
        try:
            name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise SerializationError(f"a header's name is no text: {error}") from None


def check_timestamp(timestamp: object) -> None:
    """See that a record's timestamp is a whole number of milliseconds since the Unix epoch.

    Raises:
        ClientUsageError: It is none; Kafka's clients refuse negative ones too.
    """
    if not isinstance(timestamp, int):
        raise ClientUsageError(f"a timestamp of type {type(timestamp).__name__}: give milliseconds since 1970")
    if not 0 <= timestamp < _TIMESTAMP_END:
        raise ClientUsageError(f"timestamp {timestamp} is negative or does not fit into 63 bits")


def check_place(topic: object, partition: object) -> None:
    """See that a record's topic and partition can be asked for.

    Raises:
        ClientUsageError: They cannot.
    """
    if not isinstance(topic, str):
        raise ClientUsageError(f"a topic of type {type(topic).__name__}: give its name")
    if partition is None:
        return
    if not isinstance(partition, int):
        raise ClientUsageError(f"a partition of type {type(partition).__name__}: give its number")
    if partition < 0:
        raise ClientUsageError(f"partition {partition} is negative")
