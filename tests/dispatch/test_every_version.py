"""Every API that is answered, in every version: its answer and its error response leave as the version wants them.

A field that a version does not have and that may not be left out in silence would close the connection; so would a
null where the version has none. Requests are plain: every field that the version has is set to something that exists.
"""

from __future__ import annotations

import struct
import uuid
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.dispatch.routes import Route
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.fields import FieldSpec
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.waiting import PATIENCE_S

TOPICS_COUNT: Final = 10
"""More than DeleteTopics has versions: each deletes one."""

WITHOUT_AN_ERROR: Final = {(35, 1), (35, 2)}
"""DescribeLogDirs has a place for an error from version 3 on; Kafka answers with no directories before."""

KEYS_THAT_NAME_A_NEW_TOPIC: Final = {19}
KEYS_THAT_DELETE: Final = {20}


def batch() -> bytes:
    builder = BatchBuilder()
    builder.append(None, b"value", timestamp=1_700_000_000_000)
    return bytes(builder.build())


class PlainRequests:
    """Makes a request of any class: by name of the field, or what stands for its type."""

    def __init__(self, topic: str, topic_id: uuid.UUID, log_dir: str) -> None:
        self.values: dict[str, Any] = {
            "topic": topic,
            "name": topic,
            "topic_name": topic,
            "topic_names": [topic],
            "topic_id": topic_id,
            "path": log_dir,
            "acks": 1,
            "max_bytes": 1 << 20,
            "partition_max_bytes": 1 << 20,
            "timeout_ms": 5_000,
            "num_partitions": 1,
            "replication_factor": 1,
            "count": 2,
            "assignments": [],
            "configs": [],
            "replicas": [1],
            "replica_id": -1,
            "session_epoch": -1,
            "current_leader_epoch": -1,
            "last_fetched_epoch": -1,
            "timestamp": -1,
            "transactional_id": None,
            "transaction_timeout_ms": 1_000,
            "producer_id": -1,
            "producer_epoch": -1,
            "resource_type": 2,
            "resource_types": [2, 4],
            "resource_name": topic,
            "configuration_keys": None,
            "config_name": "retention.ms",
            "value": "1000",
            "client_software_name": "plain",
            "client_software_version": "1",
            "response_partition_limit": 100,
            "cursor": None,
            "broker_id": 9,
            "feature": "metadata.version",
            "endpoint_type": 1,
            "records": batch(),
            "forgotten_topics_data": [],
            # Of what Kafka's classes know: others are broken requests.
            "resource_type_filter": 1,
            "pattern_type_filter": 1,
            "resource_pattern_type": 3,
            "operation": 3,
            "permission_type": 3,
        }

    def make(self, cls: type[Message], version: int) -> Any:
        values = {}
        for spec in cls.__fields__:
            if version in spec.versions and not (spec.tag >= 0 and spec.kind != "array"):
                values[spec.name] = self._value(spec, version)
        return cls(**values)

    def _value(self, spec: FieldSpec, version: int) -> Any:
        if spec.kind == "float64":
            return 0.0  # a quota's, whose field has the name of a config's text
        if spec.name in self.values and (self.values[spec.name] is not None or version in spec.nullable):
            return self.values[spec.name]
        if spec.kind == "array":
            return [self._plain(spec.item, spec, version)]
        return self._plain(spec.kind, spec, version)

    def _plain(self, kind: str, spec: FieldSpec, version: int) -> Any:
        if kind == "struct":
            assert spec.struct is not None
            return self.make(spec.struct, version)
        return {"string": "", "bool": False, "bytes": b"", "uuid": uuid.UUID(int=0)}.get(kind, 0)


class Refusing:
    """A handler that raises, and lets the real one say what is answered then."""

    def __init__(self, handler: Any, error: Exception) -> None:
        self._error = error
        self.api_key = handler.api_key
        self.error_response = handler.error_response

    def handle(self, request: object, context: object) -> object:
        raise self._error

    async def handle_async(self, request: object, context: object) -> object:
        raise self._error


async def ask(port: int, request: Message, version: int, response: type[Message]) -> Message:
    """Return the answer; fail when the connection is closed instead."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        await stream.send_all(encode_request(request, version, 7, "plain").join())
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
            piece = await stream.receive_some()
            assert piece, f"{type(request).__name__} v{version}: closed without an answer"
            data += piece
    body = memoryview(data)[4:]
    found, position = decode_response_header(body, request.__api_key__, version)
    assert found == 7
    return decode(response, body, version, position=position, exact=True)


def error_codes(message: Any) -> set[int]:
    """Every error code in an answer."""
    found = set()
    for spec in type(message).__fields__:
        value = getattr(message, spec.name)
        if spec.name.endswith("error_code"):
            found.add(value)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Message):
                found |= error_codes(item)
    return found


class Served:
    """A broker within this test's trio run."""

    def __init__(self, broker: Broker, port: int) -> None:
        self.broker = broker
        self.router = broker.parts.requests.router
        self.port = port

    async def ask(self, route: Route, version: int) -> tuple[Message, Message]:
        """Send the plain request of a version; return it and its answer."""
        number = version if route.api_key in KEYS_THAT_DELETE else TOPICS_COUNT - 1
        name = f"new-{version}" if route.api_key in KEYS_THAT_NAME_A_NEW_TOPIC else f"t{number}"
        topic = self.broker.parts.published.image.topics_by_name.get(name)
        requests = PlainRequests(
            name, topic.topic_id if topic is not None else uuid.UUID(int=0), self.broker.options.config.log_dirs[0]
        )
        request = requests.make(route.api.request, version)
        return request, await ask(self.port, request, version, route.api.response)


def serve(tmp_path: Path, work: Any) -> None:
    """Run `work(served)` beside a broker."""

    async def main() -> None:
        options = read_broker_options(
            config=None, environment={}, options=(), listen=["127.0.0.1:0"], data_dir=tmp_path / "data"
        )
        broker = Broker(options)
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                first, *_ = await nursery.start(broker.run)
                wanted = [
                    CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1)
                    for number in range(TOPICS_COUNT)
                ]
                await broker.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=wanted, timeout_ms=10_000))
                await work(Served(broker, first.port))
                broker.stop()

    trio.run(main)


def test_every_version_of_every_api_answers_a_plain_request(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        for route in served.router.routes.values():
            for version in range(route.min_version, route.max_version + 1):
                _, answer = await served.ask(route, version)
                assert ErrorCode.UNKNOWN_SERVER_ERROR not in error_codes(answer), (route, version, answer)
        assert served.router.unexpected_errors_count == 0

    serve(tmp_path, work)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KafkaError(ErrorCode.INVALID_REQUEST, "why"), ErrorCode.INVALID_REQUEST),
        (KafkaError(ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER),
        (ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_every_version_of_every_api_can_say_that_it_failed(
    tmp_path: Path, error: Exception, expected: ErrorCode
) -> None:
    async def work(served: Served) -> None:
        for route in served.router.routes.values():
            route.handler = Refusing(route.handler, error)
            for version in range(route.min_version, route.max_version + 1):
                request, answer = await served.ask(route, version)
                if (route.api_key, version) not in WITHOUT_AN_ERROR:
                    assert expected in error_codes(answer), (request, version, answer)

    serve(tmp_path, work)
