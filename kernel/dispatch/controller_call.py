"""Shell: how handlers ask the controller: an operation, submitted, with the patience that the client stated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio

from ..errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..controller.metadata_log import MetadataLog, Operation

R = TypeVar("R")


class Submit(Protocol):
    """What handlers need of the metadata log: `MetadataLog.submit`."""

    async def __call__(self, operation: Operation[R]) -> R:
        """Run an operation of the controller and return its response once it is durable."""
        ...


class MetadataLogCall:
    """Submits to a metadata log that may be made after the handlers."""

    def __init__(self, metadata: Callable[[], MetadataLog]) -> None:
        """Take a function that returns the log; it is asked at each operation."""
        self._metadata = metadata

    async def submit(self, operation: Operation[R]) -> R:
        """Run an operation of the controller; see `MetadataLog.submit`."""
        return await self._metadata().submit(operation)


async def submit_within(submit: Submit, operation: Operation[R], timeout_ms: int, *, is_empty: bool = False) -> R:
    """Run an operation of the controller and wait for it as long as the client does.

    If it is cancelled, the operation may or may not take place.

    Args:
        submit: `MetadataLog.submit`.
        operation: It.
        timeout_ms: How long the client waits; nothing below 1 is long enough for anything.
        is_empty: The client asks for nothing, which takes no time.

    Raises:
        KafkaError: REQUEST_TIMED_OUT: the operation may or may not take place; or what the controller says.
    """
    with trio.move_on_after(math.inf if is_empty else max(timeout_ms, 0) / 1000):
        return await submit(operation)
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def message_of(code: ErrorCode, detail: str) -> str | None:
    """Return the text that goes with an error; Kafka gives none with a time-out."""
    return None if code is ErrorCode.REQUEST_TIMED_OUT else detail
