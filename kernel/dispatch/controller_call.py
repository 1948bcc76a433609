"""Pure core: how answers tell that the controller refused or took too long."""

from __future__ import annotations

from ..errors import ErrorCode


def message_of(code: ErrorCode, detail: str) -> str | None:
    """Return the text that goes with an error; Kafka gives none with a time-out."""
    return None if code is ErrorCode.REQUEST_TIMED_OUT else detail
