"""The asking end of a connection: who waits for an answer is told what became of it, also when it cannot be read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from odradek.kernel.peers.connection import Connection, Pending
from odradek.kernel.peers.errors import ClientError, ConnectionFailedError, RequestTimeoutError
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


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
            connection.queue(ApiVersionsRequest(), 3, timeout_ms=1_000).on_done = note
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            await theirs.send_all(len(answer).to_bytes(4, "big") + answer)
            await connection.wait_closed()
        with pytest.raises(ConnectionFailedError):
            connection.queue(ApiVersionsRequest(), 3, timeout_ms=1_000)

    trio.run(main)

    assert [number for number, _ in told] == [0, 1]
    assert all("cannot be read" in reason or "no Kafka broker" in reason for _, reason in told)


class Overdue:
    """A connection whose broker is the test, on a clock that jumps."""

    def __init__(self) -> None:
        self.clock = trio.testing.MockClock(autojump_threshold=0)
        self.began_s = 0.0

    def run(self, ask: Callable[[Connection, trio.abc.HalfCloseableStream], Awaitable[None]]) -> Connection:
        """Let the test use a connection that speaks to nobody; return it once it is closed."""

        async def main() -> Connection:
            self.began_s = trio.current_time()
            ours, theirs = trio.testing.memory_stream_pair()
            connection = Connection(ours, "test", "broker:9092")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(connection.run)
                await ask(connection, theirs)
                await connection.wait_closed()
            return connection

        return trio.run(main, clock=self.clock)

    @property
    def elapsed_s(self) -> float:
        """How long ago the connection was made."""
        return self.clock.current_time() - self.began_s


def _answer(correlation_id: int) -> bytes:
    """Return an answer to ApiVersions in version 0 that knows no API."""
    content = correlation_id.to_bytes(4, "big") + bytes(6)
    return len(content).to_bytes(4, "big") + content


def test_the_connection_is_closed_by_the_request_that_is_overdue_first() -> None:
    told: list[str] = []
    overdue = Overdue()

    async def ask(connection: Connection, _theirs: object) -> None:
        for timeout_ms in (30_000, 5_000, 20_000):
            connection.queue(ApiVersionsRequest(), 0, timeout_ms=timeout_ms).on_done = lambda pending: told.append(
                str(pending.error)
            )
            await trio.sleep(1)

    connection = overdue.run(ask)

    assert overdue.elapsed_s == pytest.approx(6)
    assert isinstance(connection.error, RequestTimeoutError)
    assert told == ["broker:9092 did not answer ApiVersions within 5000 ms"] * 3


def test_an_answer_in_time_leaves_the_connection_to_those_behind_it() -> None:
    overdue = Overdue()

    async def ask(connection: Connection, theirs: trio.abc.HalfCloseableStream) -> None:
        for correlation_id in range(3):
            await trio.sleep(60)  # so that nothing is due in between
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(connection.request, ApiVersionsRequest(), timeout_ms=5_000, version=0))
                await trio.sleep(4)
                await theirs.send_all(_answer(correlation_id))
        connection.queue(ApiVersionsRequest(), 0, timeout_ms=5_000)

    connection = overdue.run(ask)

    assert overdue.elapsed_s == pytest.approx(3 * 64 + 5)
    assert isinstance(connection.error, RequestTimeoutError)


def test_no_time_at_all_is_no_time_without_end() -> None:
    overdue = Overdue()

    async def ask(connection: Connection, _theirs: object) -> None:
        connection.queue(ApiVersionsRequest(), 0, timeout_ms=0)

    connection = overdue.run(ask)

    assert overdue.elapsed_s == pytest.approx(0)
    assert isinstance(connection.error, RequestTimeoutError)


def test_who_waits_no_longer_takes_the_connection_from_nobody() -> None:
    overdue = Overdue()

    async def ask(connection: Connection, _theirs: object) -> None:
        with trio.move_on_after(1):
            await connection.request(ApiVersionsRequest(), timeout_ms=5_000, version=0)
        with trio.move_on_after(3):
            await connection.request(ApiVersionsRequest(), timeout_ms=3_000, version=0)
        connection.queue(ApiVersionsRequest(), 0, timeout_ms=20_000)

    connection = overdue.run(ask)

    assert overdue.elapsed_s == pytest.approx(24)
    assert isinstance(connection.error, RequestTimeoutError)


def test_a_request_without_an_answer_is_done_once_it_is_written_and_overdue_as_long_as_it_is_not() -> None:
    done: list[ClientError | None] = []
    overdue = Overdue()

    async def main() -> None:
        overdue.began_s = trio.current_time()
        ours, _theirs = trio.testing.lockstep_stream_pair()  # takes what is read, and nobody reads
        connection = Connection(ours, "test", "broker:9092")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            pending = connection.queue(ApiVersionsRequest(), 0, timeout_ms=5_000, is_answered=False)
            pending.on_done = lambda pending: done.append(pending.error)
            await connection.wait_closed()

    trio.run(main, clock=overdue.clock)

    assert overdue.elapsed_s == pytest.approx(5)
    assert [type(error) for error in done] == [RequestTimeoutError]

    async def write(connection: Connection, _theirs: object) -> None:
        connection.queue(ApiVersionsRequest(), 0, timeout_ms=5_000, is_answered=False).on_done = lambda pending: (
            done.append(pending.error)
        )
        await trio.sleep(60)
        connection.close(ConnectionFailedError("the test is over"))

    overdue = Overdue()
    overdue.run(write)

    assert done[1:] == [None]
