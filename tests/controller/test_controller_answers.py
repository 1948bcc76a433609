"""The controller answers as Apache Kafka 4.3.1 did, request by request, but for a list of differences."""

from __future__ import annotations

import json
import uuid
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.wire.codec import decode, encode_bytes
from odradek.kernel.wire.message import Message

from .controller_requests import REQUESTS
from .metadata_helpers import DrivenController

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parent / "golden" / "controller_answers.json").read_text(encoding="utf-8")
)["answers"]

DIFFERENCES = {
    "metadata.version down": "Kafka's level 30 came with a record; here none was added, and nothing would be lost",
    "an unknown operation": "Kafka fails inside (UNKNOWN_SERVER_ERROR); here it is INVALID_REQUEST with a reason",
    "set an unknown key for the broker": "Kafka keeps any name; a misspelled key that is silently kept helps nobody",
}


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """Hold the whole conversation once; who asks for one answer has all that led to it."""
    driven = DrivenController()
    given = {}
    for name, version, request in REQUESTS:
        response = driven.apply(driven.controller.decide(request))
        module = import_module(type(request).__module__)
        response_class = getattr(module, type(request).__name__.replace("Request", "Response"))
        given[name] = plain(decode(response_class, encode_bytes(response, version), version))
    return given


def plain(value: Any) -> Any:
    if isinstance(value, Message):
        fields = {name: plain(getattr(value, name)) for name in [spec.name for spec in value.__fields__]}
        if fields.get("configs"):
            rows = {row["name"]: f"{row['value']} ({row['config_source']})" for row in fields["configs"]}
            fields["configs"] = {name: text for name, text in rows.items() if not name.startswith("odradek.")}
        return fields
    if isinstance(value, list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, uuid.UUID) else value


def normalised(value: Any) -> Any:
    """Ids become one word; what the answer's order is free to be is sorted."""
    if isinstance(value, dict):
        value = {name: normalised(item) for name, item in value.items()}
        if "replica_election_results" in value:
            value["replica_election_results"].sort(key=lambda result: str(result["topic"]))
        if "responses" in value:
            value["responses"].sort(key=lambda response: str(response.get("name")))
        topic_id = value.get("topic_id", "0")
        if topic_id.strip("0-"):
            value["topic_id"] = "an id"
        return value
    return [normalised(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", [name for name, _, _ in REQUESTS])
def test_the_controller_answers_as_kafka_does(name: str, answers: dict[str, Any]) -> None:
    expected = normalised(GOLDEN[name]["answer"])
    actual = normalised(answers[name])

    if name in DIFFERENCES:
        assert expected != actual, f"{name} is no difference any more: {DIFFERENCES[name]}"
    else:
        assert expected == actual
