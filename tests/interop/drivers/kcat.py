"""Driver of kcat, a command line program: one process of its own for every operation."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from .json_lines import DriverError, record_of, reset_of, serve, tell_positioned, to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else ""
LIMIT_S = 50
KEY_ENDS = b"\x1e<key|\x1f"
RECORD_ENDS = b"\x1e<record|\x1f"
MESSAGE_TOO_LARGE = 10


def error_of(error: Exception) -> DriverError:
    """Reduce an exception."""
    return DriverError(-1, str(error))


def check(status: int, said: bytes) -> None:
    """Raise what kcat said, when it failed."""
    if status:
        code = MESSAGE_TOO_LARGE if b"Message size too large" in said else -1
        raise DriverError(code, said.decode(errors="replace"))


def kcat(*words: str, given: bytes = b"") -> bytes:
    """Run kcat to its end; return what it printed."""
    done = subprocess.run(
        ["kcat", "-b", BOOTSTRAP, *words], input=given, capture_output=True, timeout=LIMIT_S, check=False
    )
    check(done.returncode, done.stderr)
    return done.stdout


def settings(**properties: object) -> list[str]:
    """Return options for librdkafka's properties; dots are written as underscores."""
    return [word for key, value in properties.items() for word in ("-X", f"{key.replace('_', '.')}={value}")]


def kind_of(record: dict[str, Any]) -> tuple[str, bool, bool]:
    """Return what all records of one run of kcat have in common."""
    return json.dumps(record["headers"]), record["key"] is None, record["value"] is None


def produce(
    *, topic: str, records: list[dict[str, Any]], compression: str, acks: str, idempotent: bool, max_request_bytes: int
) -> list[int | None]:
    """Produce records to partition 0, those of one kind by one run; kcat tells no offsets."""
    options = settings(
        compression_codec=compression,
        acks=acks,
        enable_idempotence=str(idempotent).lower(),
        message_max_bytes=max_request_bytes,
        linger_ms=5,
    )
    for (_, no_key, no_value), some in itertools.groupby(records, kind_of):
        produce_alike(topic, list(some), options, has_keys=not no_key, has_values=not no_value)
    return []


def produce_alike(
    topic: str, records: list[dict[str, Any]], options: list[str], *, has_keys: bool, has_values: bool
) -> None:
    """Produce records that have the same headers, and keys and values or none."""
    words = ["-P", "-t", topic, "-p", "0", "-D", RECORD_ENDS.decode(), *options]
    for name, value in records[0]["headers"]:
        text = to_bytes(value)
        words += ["-H", name if text is None else f"{name}={text.decode()}"]
    if has_keys:
        words += ["-K", KEY_ENDS.decode()]
    if not has_values:
        words += ["-Z"]
    lines = []
    for record in records:
        key = (to_bytes(record["key"]) or b"") + KEY_ENDS if has_keys else b""
        lines.append(key + (to_bytes(record["value"]) or b""))
    kcat(*words, given=RECORD_ENDS.join(lines))


def start_of(position: str | dict[str, int]) -> str:
    """Return a position as kcat takes it."""
    if isinstance(position, str):
        return position
    return str(position["offset"]) if "offset" in position else f"s@{position['timestamp']}"


def parse(line: bytes) -> dict[str, Any]:
    """Return a record of kcat's JSON: its strings are raw bytes with JSON's escapes."""
    found = json.loads(line.decode("latin-1"))
    names, values = found.get("headers", [])[::2], found.get("headers", [])[1::2]
    headers = [
        (name.encode("latin-1").decode(), None if value is None else value.encode("latin-1"))
        for name, value in zip(names, values, strict=True)
    ]
    key, value = (None if found[part] is None else found[part].encode("latin-1") for part in ("key", "payload"))
    return record_of(found["offset"], found["ts"], key, value, headers)


def consume(*, topic: str, position: str | dict[str, int], count: int, isolation: str) -> list[dict[str, Any]]:
    """Read `count` records of partition 0."""
    policy = {"none": "error"}.get(reset_of(position), "earliest")
    words = ["-C", "-t", topic, "-p", "0", "-o", start_of(position), "-c", str(count), "-J", "-u"]
    command = ["kcat", "-b", BOOTSTRAP, *words, *settings(isolation_level=isolation, auto_offset_reset=policy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        if position == "end":
            for said in process.stderr:
                if b"Reached end of topic" in said:
                    tell_positioned()
                    break
        try:
            out, said = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    check(process.returncode, said)
    return [parse(line) for line in out.splitlines()]


def offsets(*, topic: str, at: str | int) -> int:
    """Return the offset of a position."""
    asked = {"earliest": -2, "latest": -1}[at] if isinstance(at, str) else at
    found = re.search(rb"offset (\d+)", kcat("-Q", "-t", f"{topic}:0:{asked}"))
    if found is None:
        raise DriverError(-1, "no offset")
    return int(found[1])


def describe_cluster() -> dict[str, Any]:
    """Return broker ids and the controller."""
    cluster = json.loads(kcat("-L", "-J"))
    return {"brokers": [broker["id"] for broker in cluster["brokers"]], "controller": cluster["controllerid"]}


OPERATIONS: dict[str, Callable[..., Any]] = {
    "produce": produce,
    "consume": consume,
    "offsets": offsets,
    "describe_cluster": describe_cluster,
}

if __name__ == "__main__":
    serve(OPERATIONS, error_of)
