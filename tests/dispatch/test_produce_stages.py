"""Produce to a topic with an append stage: every batch passes it, whatever the shape of the request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceResponse

from .house import House, produce_parts, produce_request
from .house import batch as batch_of

TAKEN, REFUSED, BUG, CHANGED, MORE = b"taken", b"refused", b"bug", b"changed", b"more"
OTHER = batch_of(b"other than it was")


class Stage:
    """Does what the batch's only value says."""

    def accept(self, batch: memoryview) -> memoryview | bytes | None:
        content = bytes(batch)
        if TAKEN in content:
            return None
        if REFUSED in content:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "not here")
        if BUG in content:
            raise RuntimeError("a bug of the plugin")
        if MORE in content:
            return batch_of(b"two", b"records")
        return OTHER if CHANGED in content else batch


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.hosted.open("t", 2)
    for index in (0, 1):
        house.hosted.replicas.get("t", index).stages = (Stage(),)
    yield house
    house.hosted.lifecycle.close()


def replica_of(house: House) -> Replica:
    return house.hosted.replicas.get("t", 0)


def produce(house: House, value: bytes, *, with_another: bool) -> PartitionProduceResponse:
    parts: list[tuple[int, bytes | None]] = [(0, batch_of(value))]
    if with_another:
        parts.append((1, batch_of(b"plain")))
    first, *others = produce_parts(house.client.ask(produce_request(*parts), 9))
    assert [part.error_code for part in others] == [ErrorCode.NONE] * with_another
    return first


@pytest.mark.parametrize("with_another", [False, True], ids=["one partition", "two partitions"])
@pytest.mark.parametrize(
    ("value", "code", "base_offset", "end_offset"),
    [
        (b"plain", ErrorCode.NONE, 0, 1),
        (TAKEN, ErrorCode.NONE, -1, 0),
        (CHANGED, ErrorCode.NONE, 0, 1),
        (MORE, ErrorCode.UNKNOWN_SERVER_ERROR, -1, 0),
        (REFUSED, ErrorCode.POLICY_VIOLATION, -1, 0),
        (BUG, ErrorCode.UNKNOWN_SERVER_ERROR, -1, 0),
    ],
)
def test_every_batch_passes_the_stages_of_its_topic(
    house: House, value: bytes, code: ErrorCode, base_offset: int, end_offset: int, with_another: bool
) -> None:
    answer = produce(house, value, with_another=with_another)

    assert (answer.error_code, answer.base_offset) == (code, base_offset)
    assert replica_of(house).log.log_end_offset == end_offset
    assert replica_of(house).log.size_bytes == (len(OTHER) if value == CHANGED else len(batch_of(value)) * end_offset)
