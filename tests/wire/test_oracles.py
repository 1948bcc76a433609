"""Every message in every version against two other implementations. They are fed only bytes that we encoded."""

from __future__ import annotations

import io
import random
import warnings
import zlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from kio.index import load_entity_schema, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from odradek.kernel.wire import APIS, Message, decode, encode

from .random_messages import all_messages, random_message, versions_of

ROUNDS = 3


def _name(value: object) -> str | None:
    return value.__name__ if isinstance(value, type) else None


def _random_messages(cls: type[Message]) -> Iterator[tuple[int, Any]]:
    for version in versions_of(cls):
        source = random.Random(zlib.crc32(f"{cls.__name__}{version}".encode()))
        for _ in range(ROUNDS):
            yield version, random_message(cls, version, source)


def _kio_schema(cls: type[Message], version: int) -> Any:
    if cls.__api_key__ < 0:
        words = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__)[1:]
        return load_entity_schema(words, version, EntityType.data)
    load = load_request_schema if cls.__name__.endswith("Request") else load_response_schema
    return load(cls.__api_key__, version)


def _kafka_python_classes() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas by a deprecated function
        for module in ("metadata", "consumer", "producer", "admin", "sasl"):
            import_module(f"kafka.protocol.{module}")
        base = import_module("kafka.protocol.api_message").ApiMessage
    return {cls.__name__: cls for cls in base.__subclasses__()}


KAFKA_PYTHON = _kafka_python_classes()


def _is_coordinator_record(cls: type[Message]) -> bool:
    return cls.__api_key__ >= 0 and not cls.__name__.endswith(("Request", "Response"))


COORDINATOR_RECORDS = [cls for cls in all_messages() if _is_coordinator_record(cls)]
KNOWN_TO_KIO = [cls for cls in all_messages() if not _is_coordinator_record(cls)]
KNOWN_TO_KAFKA_PYTHON = [cls for cls in all_messages() if cls.__name__ in KAFKA_PYTHON]


@pytest.mark.parametrize("cls", COORDINATOR_RECORDS, ids=_name)
def test_records_of_coordinators_come_back_though_no_oracle_knows_them(cls: type[Message]) -> None:
    for version, message in _random_messages(cls):
        assert message == decode(cls, encode(message, version).join(), version, exact=True)


@pytest.mark.parametrize("cls", KNOWN_TO_KIO, ids=_name)
def test_kio_reads_and_writes_the_same_bytes_in_every_version(cls: type[Message]) -> None:
    for version, message in _random_messages(cls):
        schema = _kio_schema(cls, version)
        encoded = encode(message, version)
        data = encoded.join()
        value, end = entity_reader(schema)(data, 0)
        rewritten = io.BytesIO()
        entity_writer(schema)(rewritten, value)

        assert len(data) == encoded.size_bytes == end
        assert data == rewritten.getvalue()
        assert message == decode(cls, memoryview(data), version, exact=True)


@pytest.mark.parametrize("cls", KNOWN_TO_KAFKA_PYTHON, ids=_name)
def test_kafka_python_reads_and_writes_the_same_bytes_in_every_version(cls: type[Message]) -> None:
    other = KAFKA_PYTHON[cls.__name__]
    for version, message in _random_messages(cls):
        if version > other.max_version:
            continue
        if cls.__name__ == "ApiVersionsResponse":
            message.error_code = 0  # with an error it is read as version 0, as a client should
        data = encode(message, version).join()
        value = other.decode(data, version=version)
        value._header = None

        assert data == bytes(value.encode(version=version))


def test_kafka_python_was_compared_with_most_of_its_apis() -> None:
    ours = {cls.__name__ for cls in all_messages()}

    assert len(ours & KAFKA_PYTHON.keys()) >= 90


def test_every_api_has_its_request_and_its_response() -> None:
    for api in APIS.values():
        first = 3 if api.name == "Produce" else api.versions.lowest
        for message in api.messages:
            assert (api.key, first, api.versions.highest) == (message.__api_key__, *message.__versions__)
            assert api.flexible == message.__flexible__
