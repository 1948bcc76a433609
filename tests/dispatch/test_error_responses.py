"""Whatever goes wrong, in whatever version: every handler has an answer that can be encoded and that says it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.broker import read_broker_options
from odradek.kernel.broker.parts import BrokerParts
from odradek.kernel.dispatch.request import Request
from odradek.kernel.dispatch.routes import Route
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.wire.codec import decode, encode_bytes
from odradek.kernel.wire.message import Message
from tests.machines import machine_with
from tests.wire.random_messages import random_message

from .memory_client import MemoryClient

CODES = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.TOPIC_DELETION_DISABLED)
SAID_OTHERWISE = {ErrorCode.TOPIC_DELETION_DISABLED: {ErrorCode.INVALID_REQUEST}}
"""Codes that older versions do not know, and what stands for them there."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerParts]:
    """All handlers of a broker that serves nobody."""
    directory: Path = tmp_path_factory.mktemp("data")
    options = read_broker_options(config=None, environment={}, options=[], data_dir=directory)
    parts = BrokerParts(options, machine_with(clock=ManualClock()))
    parts.start_storage()
    yield parts
    parts.close()


def codes_in(value: Any, version: int) -> Iterator[int]:
    """Iterate over the error codes that an answer of this version has."""
    if isinstance(value, Message):
        for spec in value.__fields__:
            found = getattr(value, spec.name)
            if spec.name == "error_code" and version in spec.versions:
                yield found
            elif version in spec.versions:
                yield from codes_in(found, version)
    elif isinstance(value, list):
        for item in value:
            yield from codes_in(item, version)


def error_answer(parts: BrokerParts, route: Route, version: int, code: ErrorCode, source: random.Random) -> Any:
    """Return what the handler says to a random request, as a client decodes it; None for no answer."""
    client = MemoryClient(parts.requests.router)
    connection = client.connection
    request = Request(route, version, 1, "test", connection, 0.0)
    body = random_message(route.api.request, version, source)
    if route.api_key == 0:
        body.acks = 1
    body = decode(route.api.request, encode_bytes(body, version), version)
    answer = route.handler.error_response(body, request, code, "a detail")
    return decode(route.api.response, encode_bytes(answer, version), version)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_every_handler_says_what_went_wrong_in_every_version(parts: BrokerParts, code: ErrorCode) -> None:
    source = random.Random(7)
    said: dict[int, set[int]] = {}
    for route in parts.requests.router.routes.values():
        for version in range(route.min_version, route.max_version + 1):
            for _ in range(3):
                answer = error_answer(parts, route, version, code, source)
                said.setdefault(route.api_key, set()).update(codes_in(answer, version))

    allowed = {code, *SAID_OTHERWISE.get(code, ())}
    assert {key: codes - allowed for key, codes in said.items() if codes - allowed} == {}
    assert [key for key, codes in said.items() if not codes & allowed] == []


def test_a_produce_that_wants_no_answer_is_told_by_the_end_of_its_connection(parts: BrokerParts) -> None:
    route = parts.requests.router.routes[0]
    client = MemoryClient(parts.requests.router)
    request = Request(route, 9, 1, "test", client.connection, 0.0)
    body = random_message(route.api.request, 9, random.Random(1))
    body.acks = 0

    assert route.handler.error_response(body, request, ErrorCode.UNKNOWN_SERVER_ERROR, "a detail") is None
    assert not client.connection.wants_input
