"""Record what Apache Kafka's controller answers to the requests of `tests/controller/controller_requests.py`.

    python -m tools.record_controller_answers HOST:PORT

The Kafka must be fresh: one broker (id 1) with the settings of a default `server.properties`. Writes
`tests/controller/golden/controller_answers.json`.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import uuid
from importlib import import_module
from pathlib import Path
from typing import Any

from odradek.kernel.wire.codec import decode, encode_bytes
from odradek.kernel.wire.message import Message
from tests.controller.controller_requests import REQUESTS


def plain(value: Any) -> Any:
    """Return a message as JSON can write it."""
    if isinstance(value, Message):
        fields = {name: plain(getattr(value, name)) for name in [spec.name for spec in value.__fields__]}
        if fields.get("configs"):
            rows = ((row["name"], f"{row['value']} ({row['config_source']})") for row in fields["configs"])
            fields["configs"] = dict(rows)
        return fields
    if isinstance(value, list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, uuid.UUID) else value


def ask(connection: socket.socket, request: Message, version: int) -> Any:
    """Send one request and return the decoded answer, or a word on why there is none."""
    key = request.__api_key__
    flexible = version in request.__flexible__
    header = struct.pack(">hhih4s", key, version, 7, 4, b"test") + (b"\0" if flexible else b"")
    frame = header + encode_bytes(request, version)
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    with connection.makefile("rb") as stream:
        prefix = stream.read(4)
        if len(prefix) < 4:
            return "closed"
        body = stream.read(struct.unpack(">i", prefix)[0])
    module = import_module(type(request).__module__)
    response = getattr(module, type(request).__name__.replace("Request", "Response"))
    return plain(decode(response, body, version, position=5 if flexible else 4, exact=True))


def main() -> None:
    """Ask everything, write the file."""
    host, _, port = sys.argv[1].rpartition(":")
    answers = {}
    for name, version, request in REQUESTS:
        assert name not in answers, name
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            answers[name] = {"version": version, "answer": ask(connection, request, version)}
    path = Path(__file__).parents[1] / "tests" / "controller" / "golden" / "controller_answers.json"
    text = {"origin": "Apache Kafka 4.3.1, one broker", "answers": answers}
    path.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(answers)} answers in {path}")


if __name__ == "__main__":
    main()
