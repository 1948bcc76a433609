"""Share groups and streams groups: refused as Apache Kafka 4.3.1 does, `share.version` and `streams.version` at 0.

The answers are what it gave to these requests.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

import pytest

from odradek.kernel.dispatch.unkept_groups import UNKEPT_GROUPS_APIS, refuser_of
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.codec import decode, encode
from odradek.kernel.wire.registry import APIS

from .test_every_version import PlainRequests

TOPIC_ID: Final = uuid.UUID("c48529a1-f5be-44ec-9b6e-d00516a56c25")
NOT_COORDINATOR: Final = "This is not the correct coordinator."
NOT_SUPPORTED: Final = {"error_code": 35, "error_message": "The version of API is not supported."}
NOBODY: Final[Any] = None
"""Who asks: they do not look."""


def state(done: str, **rest: Any) -> dict[str, Any]:
    return {
        "results": [
            {
                "topic_id": TOPIC_ID,
                "partitions": [
                    {
                        "partition": 0,
                        "error_code": 16,
                        "error_message": f"Unable to {done}: {NOT_COORDINATOR}",
                        **rest,
                    }
                ],
            }
        ]
    }


ANSWERS: Final[dict[int, dict[str, Any]]] = {
    76: {"error_code": 35, "error_message": None, "member_id": None, "member_epoch": 0, "assignment": None},
    77: {"groups": [{"error_code": 35, "error_message": None, "group_id": "g", "group_state": "", "members": []}]},
    78: {"error_code": 35, "error_message": None, "acquisition_lock_timeout_ms": 0, "responses": []},
    79: {"error_code": 35, "error_message": None, "acquisition_lock_timeout_ms": 0, "responses": []},
    83: state("initialize share group state"),
    84: state("read share group state", state_epoch=0, start_offset=0, state_batches=[]),
    85: state("write share group state"),
    86: state("delete share group state"),
    87: state("read share group state summary", state_epoch=0, leader_epoch=0, delivery_complete_count=-1),
    88: {"error_code": 35, "error_message": None, "member_id": "", "active_tasks": None, "status": []},
    89: {"groups": [{"error_code": 35, "error_message": None, "group_id": "g", "topology": None, "members": []}]},
    90: {"groups": [{"error_code": 35, "error_message": None, "group_id": "g", "topics": []}]},
    91: {**NOT_SUPPORTED, "responses": []},
    92: {**NOT_SUPPORTED, "responses": []},
}


def plain_request(api_key: int) -> Any:
    requests = PlainRequests("t", TOPIC_ID, "/nowhere")
    requests.values.update(group_id="g", group_ids=["g"])
    return requests.make(APIS[api_key].request, APIS[api_key].versions.highest)


def check(message: Any, expected: dict[str, Any]) -> None:
    """See that a message has these fields; lists of messages, each the fields of its own."""
    for name, value in expected.items():
        found = getattr(message, name)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for item, fields in zip(found, value, strict=True):
                check(item, fields)
        else:
            assert found == value, name


@pytest.mark.parametrize("api_key", UNKEPT_GROUPS_APIS)
def test_it_is_refused_as_kafka_refuses_it(api_key: int) -> None:
    api = APIS[api_key]

    answer = refuser_of(api_key).handle(plain_request(api_key), NOBODY)

    sent = encode(answer, api.versions.highest).join()
    check(decode(api.response, memoryview(sent), api.versions.highest, exact=True), ANSWERS[api_key])


def test_every_api_of_these_groups_is_refused() -> None:
    ours = {key for key, api in APIS.items() if "Share" in api.name or "Streams" in api.name}

    assert ours == set(UNKEPT_GROUPS_APIS) == set(ANSWERS)


@pytest.mark.parametrize("api_key", UNKEPT_GROUPS_APIS)
def test_what_fails_otherwise_says_so_in_the_same_place(api_key: int) -> None:
    answer = refuser_of(api_key).error_response(plain_request(api_key), NOBODY, ErrorCode.INVALID_REQUEST, "why")

    lists = [getattr(answer, name) for name in ("groups", "results") if hasattr(answer, name)]
    said = lists[0][0] if lists else answer
    said = said.partitions[0] if hasattr(said, "partitions") else said
    assert said.error_code == ErrorCode.INVALID_REQUEST
    assert said.error_message == "why"
