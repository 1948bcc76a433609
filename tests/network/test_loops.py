"""What both loops do with real sockets on loopback."""

import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.network import loop as loops
from odradek.kernel.network.connection import Connection
from odradek.kernel.network.endpoint import READ_AHEAD_BYTES, STALL_MS_MAX
from odradek.kernel.network.loop import IDLE_LENDER_MS
from odradek.kernel.network.paces import PACE_WINDOW_MS
from odradek.kernel.network.receive_memory import ARENA_BYTES, FREE_BYTES, block_capacity
from odradek.kernel.network.settings import LoopKind

from .conftest import Service, Slice, framed

ROUND_TRIP = b"echo me"


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[[bytes], Any]:
    def make(data: bytes) -> Any:
        path = tmp_path / "segment.log"
        path.write_bytes(data)
        return path.open("rb")

    return make


def test_a_request_is_answered(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            assert await serving.ask(client, ROUND_TRIP) == ROUND_TRIP

    trio.run(main)


def test_a_loop_that_waits_is_idle_while_it_waits(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            assert await serving.ask(client, ROUND_TRIP) == ROUND_TRIP
            before = serving.server.statistics()
            await trio.sleep(0.05)
            after = serving.server.statistics()

            assert after.busy_s - before.busy_s < (after.served_s - before.served_s) / 2

    trio.run(main)


def test_who_wants_a_turn_of_a_loop_that_has_ended_writes_into_nobodys_file(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving:
            pass
        opened_since = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(50)]  # one of them has the loop's number
        serving.server.want_turn()
        for descriptor in opened_since:
            with pytest.raises(BlockingIOError):
                os.eventfd_read(descriptor)
            os.close(descriptor)

    trio.run(main)


def test_large_requests_and_answers_pass_whole(serve: Any, loop_kind: LoopKind) -> None:
    body = b"e" + os.urandom(3_000_000)

    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.send_all, framed(body))
            assert await serving.answer(client) == body
            statistics = serving.server.statistics()
            assert (statistics.bytes_in, statistics.block_bytes) == (len(body) + 4, 0)

    trio.run(main)


def test_pipelined_requests_are_answered_in_order(serve: Any, loop_kind: LoopKind) -> None:
    bodies = [b"%s%d" % (b"te"[number % 2 : number % 2 + 1], number) for number in range(500)]

    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            await client.send_all(b"".join(framed(body) for body in bodies))

            assert [await serving.answer(client) for _ in bodies] == bodies

    trio.run(main)


def test_a_parked_request_is_answered_from_outside_a_turn_and_mutes_meanwhile(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            service = serving.service
            await client.send_all(framed(b"p"))
            await serving.until(lambda: bool(service.parked))
            await client.send_all(framed(b"e2"))
            async with await serving.connect() as other:
                assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP
            assert service.frames == [b"p", ROUND_TRIP]

            service.parked[0].complete([framed(b"parked")])

            assert await serving.answer(client) == b"parked"
            assert await serving.answer(client) == b"e2"

    trio.run(main)


def test_a_held_request_keeps_those_behind_it_waiting(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            service = serving.service
            await client.send_all(b"".join(framed(kind) for kind in (b"h", b"e", b"h", b"e")))
            await serving.until(lambda: len(service.parked) == 1)
            assert service.frames == [b"h"]
            service.parked[0].complete(None)
            await serving.until(lambda: len(service.parked) == 2)
            service.parked[1].complete(None)

            assert await serving.answer(client) == b"e"
            assert await serving.answer(client) == b"e"

    trio.run(main)


def test_a_completion_in_one_connections_turn_reaches_another(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as waiting, await serving.connect() as other:
            service = serving.service
            await waiting.send_all(framed(b"p"))
            await serving.until(lambda: bool(service.parked))
            ended = service.turn_ended

            def turn_ended() -> None:
                ended()
                service.parked.pop().complete([struct.pack(">i", 4) + b"done"])

            service.turn_ended = turn_ended
            assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP

            assert await serving.answer(waiting) == b"done"

    trio.run(main)


def test_a_request_without_an_answer_lets_the_next_pass(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            await client.send_all(struct.pack(">i", 1) + b"n")

            assert await serving.ask(client, ROUND_TRIP) == ROUND_TRIP

    trio.run(main)


@pytest.mark.parametrize("is_cached", [True, False])
def test_file_slices_are_sent_between_memory_in_order(
    serve: Any, loop_kind: LoopKind, file_of: Callable[[bytes], Any], is_cached: bool
) -> None:
    data = os.urandom(READ_AHEAD_BYTES + 1_500_000)

    async def main() -> None:
        with file_of(data) as file:
            async with serve(loop_kind) as serving, await serving.connect() as client:
                serving.service.slices = [
                    Slice(file, 100, len(data) - 100, is_cached),
                    Slice(file, 0, 10, is_cached),
                ]

                assert await serving.ask(client, b"s") == b"<" + data[100:] + data[:10] + b">"
                assert await serving.ask(client, ROUND_TRIP) == ROUND_TRIP

    trio.run(main)


def test_file_slices_are_sent_where_the_system_has_no_sendfile(
    serve: Any, loop_kind: LoopKind, file_of: Callable[[bytes], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(READ_AHEAD_BYTES + 100_000)

    async def main() -> None:
        with file_of(data) as file:
            async with serve(loop_kind) as serving, await serving.connect() as client:
                serving.service.slices = [Slice(file, 5, len(data) - 5, is_cached=False), Slice(file, 0, 10)]

                assert await serving.ask(client, b"s") == b"<" + data[5:] + data[:10] + b">"

    monkeypatch.setattr(loops, "HAS_SENDFILE", False)
    trio.run(main)


def test_a_file_shorter_than_promised_closes_that_connection(
    serve: Any, loop_kind: LoopKind, file_of: Callable[[bytes], Any]
) -> None:
    async def main() -> None:
        with file_of(b"short") as file:
            async with serve(loop_kind) as serving, await serving.connect() as client:
                serving.service.slices = [Slice(file, 0, 50)]
                with pytest.raises((EOFError, trio.BrokenResourceError)):
                    await serving.ask(client, b"s")
                async with await serving.connect() as other:
                    assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP

    trio.run(main)


def test_a_cold_file_that_cannot_be_read_closes_that_connection(
    serve: Any, loop_kind: LoopKind, tmp_path: Path
) -> None:
    async def main() -> None:
        descriptor = os.open(tmp_path, os.O_RDONLY)

        @attrs.define
        class Folder(Slice):
            def fileno(self) -> int:
                return descriptor

        try:
            async with serve(loop_kind) as serving, await serving.connect() as client:
                serving.service.slices = [Folder(None, 0, 50, is_cached=False)]
                with pytest.raises((EOFError, trio.BrokenResourceError)):
                    await serving.ask(client, b"s")
                assert serving.server.statistics().failures_count == 1
        finally:
            os.close(descriptor)

    trio.run(main)


def test_a_slow_reader_waits_alone_and_gets_everything(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as slow, await serving.connect() as other:
            await slow.send_all(struct.pack(">i", 8) + b"z9000000" + struct.pack(">i", 1) + b"e")
            await serving.until(lambda: len(serving.service.frames) == 2)
            for _ in range(20):
                assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP
            # What the slow one sends now is not even read.
            await slow.send_all(struct.pack(">i", 6) + b"unread")
            assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP
            assert b"unread" not in serving.service.frames

            assert len(await serving.answer(slow)) == 9_000_000
            assert await serving.answer(slow) == b"e"
            assert await serving.answer(slow) == b"unread"

    trio.run(main)


HOSTILE = {
    "a web browser": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS client": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "a giant length": struct.pack(">i", 2**31 - 1),
    "a negative length": struct.pack(">i", -1) + b"rest",
    "a malformed request": struct.pack(">i", 1) + b"m",
    "a request that finds a bug": struct.pack(">i", 1) + b"b",
    "half a frame": struct.pack(">i", 100) + b"half",
    "half a large frame": struct.pack(">i", 1_000_000) + bytes(300_000),
    "half a length": b"\0\0",
    "nothing": b"",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_client_is_closed_and_others_are_served(serve: Any, loop_kind: LoopKind, data: bytes) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as other:
            assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP
            hostile = await serving.connect()
            with suppress(trio.BrokenResourceError):
                await hostile.send_all(data)
                await hostile.send_eof()
                assert await hostile.receive_some() == b""
            await serving.until(lambda: len(serving.service.closed) == 1)
            await hostile.aclose()

            assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP
            statistics = serving.server.statistics()
            assert (statistics.connections_count, statistics.block_bytes) == (1, 0)

    trio.run(main)


def test_what_was_asked_before_a_malformed_request_is_answered(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            await client.send_all(b"".join(map(framed, (b"e1", b"p", b"t2", b"m", b"e3"))))
            assert await serving.answer(client) == b"e1"
            serving.service.parked[0].complete([framed(b"parked")])

            assert await serving.answer(client) == b"parked"
            assert await serving.answer(client) == b"t2"
            assert await client.receive_some() == b""

    trio.run(main)


def test_what_was_asked_before_half_closing_is_answered(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            await client.send_all(struct.pack(">i", 1) + b"e")
            await client.send_eof()

            assert await serving.answer(client) == b"e"
            assert await client.receive_some() == b""

    trio.run(main)


def test_what_was_asked_before_half_closing_is_answered_however_long_it_takes(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            service = serving.service
            await client.send_all(framed(b"p"))
            await serving.until(lambda: service.parked)
            await client.send_eof()
            await serving.until(lambda: service.closed or not driver_of(service).interest)
            service.parked[0].complete([framed(b"late")])

            assert await serving.answer(client) == b"late"
            assert await client.receive_some() == b""

    trio.run(main)


@pytest.mark.parametrize("first", [b"n", b"t", b"h"])
def test_what_a_client_asked_is_done_though_it_has_left(serve: Any, loop_kind: LoopKind, first: bytes) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            service = serving.service
            await client.send_all(framed(first) + framed(b"n") * 100)
            await client.send_eof()
            if first == b"h":
                await serving.until(lambda: service.closed or (service.opened and not driver_of(service).interest))
                service.parked[0].complete(None)
            await serving.until(lambda: service.closed)

            assert service.frames == [first, *[b"n"] * 100]

    trio.run(main)


def driver_of(service: Service) -> Any:
    """Return who moves the bytes of the one connection."""
    return service.opened[0].driver


def reset(client: trio.SocketStream) -> None:
    """Close without a farewell: the peer meets ECONNRESET."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


def test_a_client_that_resets_in_the_midst_of_a_file_is_forgotten(
    serve: Any, loop_kind: LoopKind, file_of: Callable[[bytes], Any]
) -> None:
    async def main() -> None:
        with file_of(bytes(20_000_000)) as file:
            async with serve(loop_kind) as serving, await serving.connect() as other:
                client = await serving.connect()
                serving.service.slices = [Slice(file, 0, 20_000_000)]
                await client.send_all(struct.pack(">i", 1) + b"s")
                await client.receive_some(1000)
                reset(client)
                await serving.until(lambda: len(serving.service.closed) == 1)

                assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP

    trio.run(main)


def test_a_client_that_resets_while_an_answer_is_owed_is_forgotten(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as other:
            client = await serving.connect()
            await client.send_all(framed(b"p"))
            await serving.until(lambda: bool(serving.service.parked))
            reset(client)
            await serving.until(lambda: len(serving.service.closed) == 1)
            serving.service.parked[0].complete([b"too late"])

            assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP

    trio.run(main)


def test_a_client_that_resets_after_it_said_more_while_an_answer_is_owed_is_forgotten(
    serve: Any, loop_kind: LoopKind
) -> None:
    async def main() -> None:
        async with serve(loop_kind, connections_idle_ms_max=1_000) as serving:
            service = serving.service
            client = await serving.connect()
            await client.send_all(framed(b"p"))
            await serving.until(lambda: bool(service.parked))
            await client.send_all(framed(b"e"))  # which stays in the socket
            await serving.until(lambda: not driver_of(service).interest)
            reset(client)
            await serving.until(lambda: len(service.closed) == 1)

            assert not service.parked[0].is_complete

    trio.run(main)


def test_a_bug_at_a_turns_end_closes_whom_an_answer_is_owed(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as owed, await serving.connect() as other:
            assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP
            serving.service.fails_at_turns_end = True
            await owed.send_all(struct.pack(">i", 1) + b"t")
            assert await owed.receive_some() == b""

            assert await serving.ask(other, ROUND_TRIP) == ROUND_TRIP
            assert serving.server.statistics().failures_count == 1

    trio.run(main)


def test_a_turn_is_ended_once_for_all_frames_of_a_read(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as client:
            await client.send_all(framed(b"tt") * 10)
            for _ in range(10):
                await serving.answer(client)

            assert serving.service.turns == 1

    trio.run(main)


def test_silence_is_counted_from_the_answer_that_was_waited_for(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind, connections_idle_ms_max=600_000) as serving, await serving.connect() as client:
            await client.send_all(framed(b"p"))
            await serving.until(lambda: bool(serving.service.parked))
            loop, endpoint = serving.server._loop, serving.service.opened[0].driver
            now_ms = endpoint.last_active_ms + 700_000
            loop.sweep(now_ms)
            serving.service.parked[0].complete([framed(b"ok")])
            assert await serving.answer(client) == b"ok"
            loop.sweep(now_ms + 1_000)
            assert await serving.ask(client, b"e") == b"e"
            loop.sweep(now_ms + 600_000)

            assert await client.receive_some() == b""

    trio.run(main)


def test_an_idle_connection_is_closed_but_not_while_an_answer_is_owed(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind, connections_idle_ms_max=100) as serving:
            idle, owed = await serving.connect(), await serving.connect()
            await owed.send_all(framed(b"p"))

            assert await idle.receive_some() == b""

            serving.service.parked[0].complete([struct.pack(">i", 2) + b"ok"])
            assert await serving.answer(owed) == b"ok"
            assert await owed.receive_some() == b""
            assert serving.server.statistics().connections_idle_closed_count == 2
            await idle.aclose()
            await owed.aclose()

    trio.run(main)


def test_draining_answers_what_is_in_flight_and_ends_the_service(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind) as serving, await serving.connect() as idle, await serving.connect() as owed:
            service = serving.service
            await owed.send_all(framed(b"p"))
            await serving.until(lambda: bool(service.parked))
            await serving.ask(idle, ROUND_TRIP)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serving.server.drain)
                assert await idle.receive_some() == b""
                with pytest.raises(OSError, match="all attempts to connect"):
                    await serving.connect()
                service.parked[0].complete([struct.pack(">i", 4) + b"last"])
                assert await serving.answer(owed) == b"last"
                assert await owed.receive_some() == b""

            assert serving.server.statistics().connections_count == 0

    trio.run(main)


def test_draining_gives_up_on_answers_that_do_not_come(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind, drain_timeout_ms=50) as serving, await serving.connect() as owed:
            await owed.send_all(framed(b"p"))
            await serving.until(lambda: bool(serving.service.parked))

            await serving.server.drain()

            assert await owed.receive_some() == b""

    trio.run(main)


@pytest.mark.parametrize(
    "phase", ["before a client", "with an idle client", "half a frame", "parked", "sending", "cold"]
)
def test_cancelling_closes_everything_in_any_phase(
    serve: Any, loop_kind: LoopKind, phase: str, file_of: Callable[[bytes], Any]
) -> None:
    async def main() -> None:
        with file_of(bytes(9_000_000)) as file:
            async with serve(loop_kind) as serving:
                service = serving.service
                clients = [] if phase == "before a client" else [await serving.connect()]
                sends = {
                    "half a frame": b"\0\0\0\1",
                    "parked": b"\0\0\0\1p",
                    "sending": b"\0\0\0\1s",
                    "cold": b"\0\0\0\1s",
                }
                service.slices = [Slice(file, 0, 9_000_000, is_cached=phase != "cold")]
                for client in clients:
                    await client.send_all(sends.get(phase, b""))
                    await serving.until(lambda: bool(service.opened))
                if phase in ("parked", "sending", "cold"):
                    await serving.until(lambda: bool(service.frames))

            assert len(service.closed) == len(clients)
            assert serving.server.statistics().connections_count == 0
            for client in clients:
                await client.aclose()

    trio.run(main)


def test_memory_in_flight_is_bounded_and_everyone_gets_a_turn(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind, request_memory_bytes=1_000_000) as serving, trio.open_nursery() as nursery:
            most = 0

            async def ask(number: int) -> None:
                nonlocal most
                body = b"e" + bytes([number]) * 600_000
                async with await serving.connect() as client, trio.open_nursery() as both:
                    both.start_soon(client.send_all, framed(body))
                    assert await serving.answer(client) == body
                    most = max(most, serving.server.statistics().block_bytes)

            for number in range(6):
                nursery.start_soon(ask, number)
        assert most <= 1_000_000 + 6 * 150_000

    trio.run(main)


def test_frames_that_hold_what_the_others_wait_for_are_all_answered(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        limit_bytes, size, begun = 2_500_000, 2_000_000, 30_000
        async with serve(loop_kind, request_memory_bytes=limit_bytes) as serving:
            bodies = [b"e" + bytes([number]) * size for number in range(5)]
            clients = [await serving.connect() for _ in bodies]
            for client, body in zip(clients, bodies, strict=True):
                await client.send_all(framed(body)[:begun])
            (loop,) = {endpoint.loop for endpoint in serving.server._loop.endpoints.values()}
            await serving.until(lambda: loop.bytes_in == begun * len(clients))
            most = 0

            async def ask(client: trio.SocketStream, body: bytes) -> None:
                nonlocal most
                async with client, trio.open_nursery() as both:
                    both.start_soon(client.send_all, framed(body)[begun:])
                    assert await serving.answer(client) == body
                    most = max(most, loop.memory.block_bytes)

            with trio.fail_after(STALL_MS_MAX / 1000 / 2):  # without anybody being taken for one that stalls
                async with trio.open_nursery() as nursery:
                    for client, body in zip(clients, bodies, strict=True):
                        nursery.start_soon(ask, client, body)

            assert most <= limit_bytes + block_capacity(size + 5)
            await serving.until(lambda: loop.memory.block_bytes == loop.memory.owed_bytes == 0)
            assert loop.memory.waiting_bytes == 0

    trio.run(main)


def test_a_large_request_that_waits_for_others_does_not_end_the_help_for_frames(
    serve: Any, loop_kind: LoopKind
) -> None:
    async def main() -> None:
        begun = 30_000
        async with serve(loop_kind, request_memory_bytes=2_500_000) as serving, await serving.connect() as parked:
            await parked.send_all(framed(b"p"))
            await serving.until(lambda: len(serving.service.parked) == 1)
            serving.service.opened[0].keep_memory(500_000)
            serving.service.opened[0].rest_memory(500_000)
            bodies = [b"e" + bytes([number]) * 2_000_000 for number in range(5)]
            clients = [await serving.connect() for _ in bodies]
            for client, body in zip(clients, bodies, strict=True):
                await client.send_all(framed(body)[:begun])

            async def ask(client: trio.SocketStream, body: bytes) -> None:
                async with client, trio.open_nursery() as both:
                    both.start_soon(client.send_all, framed(body)[begun:])
                    assert await serving.answer(client) == body

            with trio.fail_after(STALL_MS_MAX / 1000 / 2):  # without anybody being taken for one that stalls
                async with trio.open_nursery() as nursery:
                    for client, body in zip(clients, bodies, strict=True):
                        nursery.start_soon(ask, client, body)

    trio.run(main)


def test_while_nobody_can_be_helped_those_that_wait_are_not_looked_at_in_every_turn(
    serve: Any, loop_kind: LoopKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with (
            one_holds_memory_another_waits(serve, loop_kind) as (serving, loop, _holder, _waiting),
            await serving.connect() as other,
        ):
            loop.memory.keep(2_000_000)  # a long request that was helped, and waits for others now
            loop.memory.rest(2_000_000)
            loop.sweep(loop.clock.monotonic_ms() + IDLE_LENDER_MS)
            assert await serving.ask(other, b"e") == b"e"  # all looked at once more, as what the holder had is back
            assert loop.memory.is_stuck
            looked: list[Connection] = []
            with monkeypatch.context() as patched:
                patched.setattr(Connection, "retry_memory", lambda connection, **_: looked.append(connection))
                for _ in range(3):
                    assert await serving.ask(other, b"e") == b"e"
                assert not looked
                loop.sweep(loop.clock.monotonic_ms())

            assert looked
            loop.memory.go_on(2_000_000)
            loop.memory.let_go(2_000_000)

    trio.run(main)


LARGE = b"e" + bytes(600_000)


@asynccontextmanager
async def one_holds_memory_another_waits(serve: Any, loop_kind: LoopKind) -> AsyncIterator[tuple[Any, Any, Any, Any]]:
    """A third of `LARGE` came from a holder; who waits has no room to send it. Gives server, loop, holder, waiting."""
    async with (
        serve(loop_kind, request_memory_bytes=700_000) as serving,
        await serving.connect() as holder,
        await serving.connect() as waiting,
        trio.open_nursery() as nursery,
    ):
        await holder.send_all(framed(LARGE)[:200_000])
        await serving.until(lambda: serving.server.statistics().block_bytes > 600_000)
        nursery.start_soon(waiting.send_all, framed(LARGE))
        (loop,) = {endpoint.loop for endpoint in serving.server._loop.endpoints.values()}
        await serving.until(lambda: bool(loop._waiting_for_memory))
        yield serving, loop, holder, waiting


def test_who_waits_for_memory_is_not_taken_for_one_that_stalls(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with (
            one_holds_memory_another_waits(serve, loop_kind) as (serving, loop, holder, waiting),
            await serving.connect() as silent,
        ):
            await silent.send_all(framed(LARGE)[:1000])
            await serving.until(lambda: len(loop._waiting_for_memory) == 2)
            _, *others = loop.endpoints.values()
            await serving.until(others[0].has_unread)
            for endpoint in others:
                endpoint.last_active_ms -= STALL_MS_MAX
            loop.sweep(loop.clock.monotonic_ms())

            (closed,) = serving.service.closed
            assert closed.client_port == silent.socket.getsockname()[1]
            await holder.send_all(framed(LARGE)[200_000:])
            assert await serving.answer(holder) == LARGE
            assert await serving.answer(waiting) == LARGE

    trio.run(main)


def test_who_stalls_gives_its_room_to_who_waits(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with one_holds_memory_another_waits(serve, loop_kind) as (serving, loop, idle, busy):
            loop.sweep(loop.clock.monotonic_ms() + IDLE_LENDER_MS)

            assert await serving.answer(busy) == LARGE
            await idle.send_all(framed(LARGE)[200_000:])
            assert await serving.answer(idle) == LARGE

    trio.run(main)


def test_who_creeps_gives_its_room_to_who_waits(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with one_holds_memory_another_waits(serve, loop_kind) as (serving, loop, creeping, busy):
            (waiting,) = loop._waiting_for_memory
            begun_ms = loop.clock.monotonic_ms()
            for now_ms in range(begun_ms, begun_ms + PACE_WINDOW_MS + 1, 1000):
                assert loop._waiting_for_memory == [waiting]
                serving.service.opened[0].missing_bytes -= 1  # as if a byte had come
                for endpoint in loop.endpoints.values():
                    endpoint.last_active_ms = now_ms
                loop.sweep(now_ms)

            assert await serving.answer(busy) == LARGE
            await creeping.send_all(framed(LARGE)[200_000:])
            assert await serving.answer(creeping) == LARGE

    trio.run(main)


def test_who_stalls_after_most_of_a_frame_takes_no_memory_beyond_the_limit(serve: Any, loop_kind: LoopKind) -> None:
    limit_bytes, body = 700_000, LARGE

    async def send(client: trio.SocketStream, data: bytes) -> None:
        with suppress(trio.BrokenResourceError):
            await client.send_all(data)

    async def main() -> None:
        async with serve(loop_kind, request_memory_bytes=limit_bytes) as serving, trio.open_nursery() as nursery:
            stalling = [await serving.connect() for _ in range(5)]
            for client in stalling:
                nursery.start_soon(send, client, framed(body)[:500_000])
            await serving.until(lambda: len(serving.service.opened) == len(stalling))
            (loop,) = {endpoint.loop for endpoint in serving.server._loop.endpoints.values()}
            await serving.until(lambda: len(loop._waiting_for_memory) == len(stalling) - 1)
            honest = await serving.connect()
            nursery.start_soon(send, honest, framed(body))
            most = 0
            while not serving.service.frames:
                for _ in range(1000):  # who has its room receives what was sent
                    await trio.lowlevel.checkpoint()
                for endpoint in loop.endpoints.values():
                    if not endpoint.has_unread():
                        endpoint.last_active_ms -= IDLE_LENDER_MS
                loop.sweep(loop.clock.monotonic_ms())
                most = max(most, loop.memory.block_bytes + loop.memory.owed_bytes)
            nursery.cancel_scope.cancel()
        for client in [*stalling, honest]:
            await client.aclose()

        assert most <= limit_bytes + block_capacity(len(body)) + ARENA_BYTES + (len(stalling) + 1) * FREE_BYTES

    trio.run(main)


def test_a_client_that_waits_for_memory_behind_its_own_answer_still_gets_the_answer(
    serve: Any, loop_kind: LoopKind
) -> None:
    echo = framed(b"e" + bytes(200_000))

    async def main() -> None:
        async with (
            serve(loop_kind, request_memory_bytes=100_000) as serving,
            await serving.connect() as holder,
            await serving.connect() as client,
        ):
            await holder.send_all(echo[:100])
            await serving.until(lambda: serving.server.statistics().block_bytes > 0)
            await client.send_all(framed(b"z32000000") + echo[:100])
            await serving.until(lambda: len(serving.service.frames) == 1)
            connection = serving.service.opened[1]
            assert connection.waits_for_memory
            await trio.testing.wait_all_tasks_blocked()
            await holder.aclose()
            await serving.until(lambda: not connection.waits_for_memory)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.send_all, echo[100:])
                for _ in range(100):  # what can be sent while the answer stands in the way is sent
                    await trio.lowlevel.checkpoint()

                assert await serving.answer(client) == bytes(32_000_000)
                assert await serving.answer(client) == echo[4:]

    trio.run(main)
