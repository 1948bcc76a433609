"""The asking end of a connection: who waits for an answer is told what became of it, also when it cannot be read."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from odradek.kernel.peers.connection import Connection, Pending
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest


@pytest.mark.parametrize(
    "answer", [b"\x00\x00\x00\x05" + bytes(6), b"\x00\x00\x00\x00\xff\xff"], ids=["of another request", "unreadable"]
)
def test_who_waits_for_an_answer_that_cannot_be_read_is_told_and_so_are_those_behind_it(answer: bytes) -> None:
    told: list[tuple[int, str]] = []

    def note(pending: Pending) -> None:
        told.append((pending.correlation_id, str(pending.error)))

    async def main() -> None:
        ours, theirs = trio.testing.memory_stream_pair()
        connection = Connection(ours, "test", "broker:9092")
        for _ in range(2):
            connection.queue(ApiVersionsRequest(), 3).on_done = note
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            await theirs.send_all(len(answer).to_bytes(4, "big") + answer)
            await connection.wait_closed()
        with pytest.raises(ConnectionFailedError):
            connection.queue(ApiVersionsRequest(), 3)

    trio.run(main)

    assert [number for number, _ in told] == [0, 1]
    assert all("cannot be read" in reason or "no Kafka broker" in reason for _, reason in told)
