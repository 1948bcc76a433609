"""What every driver in Python shares: operations in, answers out, one JSON object a line.

    {"do": "produce", "topic": "t", ...}   ->   {"result": ...} or {"error": {"code": 10, "text": "..."}}

A position to read from is `"beginning"`, `"end"`, `{"offset": 5}` or `{"timestamp": 1750000000000}`; with
`"reset": "earliest"` beside an offset that is not there any more, reading begins at the first one that is.

A driver may send `{"event": "positioned"}` before its answer: the consumer stands at the end and what is produced from
now on reaches it. Bytes travel as base64, `null` stays `null`. A record is
`{"key", "value", "headers": [[name, value], ...], "timestamp"}`, read back with its `"offset"` too.
`code` is Kafka's error code as the client gave it, or -1 where it has none.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

UNKNOWN = -1


class DriverError(Exception):
    """A client's own error, reduced to Kafka's code and its text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def to_text(data: bytes | None) -> str | None:
    """Return bytes as base64."""
    return None if data is None else base64.b64encode(data).decode()


def to_bytes(text: str | None) -> bytes | None:
    """Return the bytes of base64."""
    return None if text is None else base64.b64decode(text)


def headers_of(record: Mapping[str, Any]) -> list[tuple[str, bytes | None]]:
    """Return the headers of a record that came as JSON."""
    return [(name, to_bytes(value)) for name, value in record["headers"]]


def record_of(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]],
) -> dict[str, Any]:
    """Return a record as JSON takes it."""
    return {
        "offset": offset,
        "timestamp": timestamp,
        "key": to_text(key),
        "value": to_text(value),
        "headers": [[name, to_text(item)] for name, item in headers],
    }


def reset_of(position: str | Mapping[str, Any]) -> str:
    """Return what a consumer does whose position is not there (any more): `earliest`, or `none`: it fails."""
    return "none" if isinstance(position, str) else str(position.get("reset", "none"))


def tell_positioned() -> None:
    """Say that the consumer stands at the end."""
    say({"event": "positioned"})


def say(answer: Mapping[str, Any]) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def serve(operations: Mapping[str, Callable[..., Any]], error_of: Callable[[Exception], DriverError]) -> None:
    """Carry out operations until standard input ends.

    Args:
        operations: Name to function; it gets the rest of the request as keyword arguments.
        error_of: Reduces what the client raised.
    """
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: dict[str, Any] = {"result": operations[request.pop("do")](**request)}
        except Exception as error:
            reduced = error if isinstance(error, DriverError) else error_of(error)
            answer = {"error": {"code": reduced.code, "text": f"{type(error).__name__}: {error}"}}
        say(answer)
