"""Streams of bytes between simulated hosts, and what can happen to them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from odradek.lab.simulator.network import CAPACITY_BYTES, GIVE_UP_NS, Host, LinkSettings, Network
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.sockets import HANG_UP, READ, WRITE, ListeningSocket, Poller, Socket
from odradek.lab.simulator.stream import Stream, connect
from odradek.lab.simulator.world import MILLISECOND, SECOND, World

PORT = 9092
STEADY = LinkSettings(MILLISECOND, MILLISECOND, 1_000_000_000, 0.0)


class Net:
    """Two hosts, one of which listens, and a world to run in."""

    def __init__(self, seed: int = 1, settings: LinkSettings = STEADY) -> None:
        self.world = World(Seeds(seed))
        self.network = Network(self.world, settings)
        self.client = self.network.add_host("client")
        self.server = self.network.add_host("server")
        self.listening = ListeningSocket(self.network, self.server, PORT)

    async def connect(self) -> tuple[Stream, Socket]:
        """Return both ends of a new connection."""
        stream = await connect(self.network, self.client, "server", PORT)
        served, _ = self.listening.accept()
        return stream, served

    def cut(self, source: Host, target: Host) -> None:
        self.network.cut(source, target)


def in_net(work: Callable[[Net], Awaitable[Any]], seed: int = 1, settings: LinkSettings = STEADY) -> Net:
    net = Net(seed, settings)

    async def main() -> None:
        await work(net)

    run_in_world(net.world, main, limit_ns=1000 * SECOND)
    return net


async def read_all(served: Socket) -> bytes:
    data = b""
    while True:
        await served.wait_ready(READ)
        part = served.recv(1 << 20)
        if not part:
            return data
        data += part


@pytest.mark.parametrize("seed", range(10))
def test_bytes_arrive_in_order_however_they_are_cut(seed: int) -> None:
    sent = bytes(range(256)) * 100
    received = b""

    async def work(net: Net) -> None:
        nonlocal received
        stream, served = await net.connect()
        for start in range(0, len(sent), 1000):
            await stream.send_all(sent[start : start + 1000])
        await stream.send_eof()
        received = await read_all(served)

    in_net(work, seed, LinkSettings(split_share=0.5))

    assert received == sent


def test_an_answer_comes_after_two_latencies() -> None:
    elapsed_s = 0.0

    async def work(net: Net) -> None:
        nonlocal elapsed_s
        stream, served = await net.connect()
        began = trio.current_time()
        await stream.send_all(b"question")
        await served.wait_ready(READ)
        served.send(served.recv(100))
        assert await stream.receive_some() == b"question"
        elapsed_s = trio.current_time() - began

    in_net(work)

    assert elapsed_s == pytest.approx(0.002, rel=0.01)


def test_a_slow_link_takes_its_time() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        began = trio.current_time()
        await stream.send_all(bytes(100_000))
        await stream.send_eof()
        await read_all(served)
        assert trio.current_time() - began == pytest.approx(1.001, rel=0.01)

    in_net(work, settings=LinkSettings(MILLISECOND, MILLISECOND, 100_000, 0.0))


def test_who_does_not_read_holds_up_the_sender() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        with trio.move_on_after(10) as scope:
            await stream.send_all(bytes(CAPACITY_BYTES + 1))
        assert scope.cancelled_caught
        assert len(served.recv(1 << 30)) == CAPACITY_BYTES
        await stream.send_all(b"more")

    in_net(work)


def test_connections_overtake_each_other() -> None:
    orders = set()

    async def work(net: Net) -> None:
        pairs = [await net.connect() for _ in range(4)]
        poller = Poller(net.network, net.server)
        for _, served in pairs:
            poller.register(served.fileno(), READ)
        for stream, _ in pairs:
            await stream.send_all(b"x")
        seen: list[int] = []
        while len(seen) < 4:
            await poller.wait()
            for descriptor, mask in poller.poll(0, 64):
                assert mask == READ
                number = next(i for i, (_, served) in enumerate(pairs) if served.fileno() == descriptor)
                seen.append(number)
                pairs[number][1].recv(1)
        orders.add(tuple(seen))

    for seed in range(10):
        in_net(work, seed, LinkSettings())

    assert len(orders) > 3


def test_nobody_listens() -> None:
    async def work(net: Net) -> None:
        with pytest.raises(ConnectionRefusedError):
            await connect(net.network, net.client, "server", PORT + 1)
        assert not net.client.sockets

    in_net(work)


def test_nobody_has_the_name() -> None:
    async def work(net: Net) -> None:
        with pytest.raises(socket.gaierror):
            await connect(net.network, net.client, "stranger", PORT)

    in_net(work)


def test_nobody_answers_a_host_that_cannot_be_reached_until_it_gives_up() -> None:
    async def work(net: Net) -> None:
        net.network.power_off(net.server)
        began = trio.current_time()
        with pytest.raises(TimeoutError):
            await connect(net.network, net.client, "server", PORT)
        assert trio.current_time() - began == pytest.approx(63, abs=1)

    in_net(work)


def test_a_connection_comes_about_when_the_link_is_whole_again() -> None:
    async def work(net: Net) -> None:
        net.cut(net.server, net.client)
        net.world.after(2 * SECOND, net.network.heal, net.server, net.client)
        await net.connect()
        assert net.world.elapsed_ns > 2 * SECOND

    in_net(work)


def test_who_asked_several_times_on_a_stalled_link_gets_one_connection() -> None:
    async def work(net: Net) -> None:
        net.network.stall(net.client, net.server, 5 * SECOND)
        stream, served = await net.connect()
        await trio.sleep(10)
        await stream.send_all(b"to the first")

        await served.wait_ready(READ)
        assert served.recv(100) == b"to the first"
        with pytest.raises(BlockingIOError):
            net.listening.accept()

    in_net(work)


def test_two_do_not_listen_at_one_port() -> None:
    net = Net()

    with pytest.raises(OSError, match="already in use"):
        ListeningSocket(net.network, net.server, PORT)
    net.listening.close()
    assert ListeningSocket(net.network, net.server, PORT).getsockname() == (net.server.address, PORT)


def test_a_port_of_any_number_is_a_free_one() -> None:
    net = Net()
    ports = [ListeningSocket(net.network, net.server, 0).port for _ in range(3)]

    assert len({*ports, PORT}) == 4


def test_who_reads_everything_and_closes_says_farewell() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        await stream.send_all(b"last words")
        await stream.aclose()
        assert await read_all(served) == b"last words"

    in_net(work)


def test_who_closes_with_something_unread_breaks_the_connection() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        served.send(b"unread")
        await stream.socket.wait_ready(READ)
        await stream.aclose()
        await served.wait_ready(READ)
        with pytest.raises(ConnectionResetError):
            served.recv(1)
        assert served.recv(1) == b""
        with pytest.raises(BrokenPipeError):
            served.send(b"x")

    in_net(work)


def test_what_came_before_a_reset_can_still_be_read() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        await stream.send_all(b"before")
        await served.wait_ready(READ)
        net.network.reset(served)
        assert served.recv(100) == b"before"
        with pytest.raises(ConnectionResetError):
            served.recv(1)
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()

    in_net(work)


def test_a_reset_comes_behind_what_was_sent_before_it() -> None:
    async def work(net: Net) -> None:
        for _ in range(30):
            stream, served = await net.connect()
            await stream.send_all(b"question")
            await served.wait_ready(READ)
            served.send(b"answer")
            served.close()  # with something unread
            await trio.sleep(1)
            received = b""
            while len(received) < len(b"answer"):
                received += await stream.receive_some()
            assert received == b"answer"
            with pytest.raises(trio.BrokenResourceError):
                await stream.receive_some()

    in_net(work, settings=LinkSettings())


def test_sending_to_one_who_has_closed_is_answered_by_a_reset() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        served.close()
        assert await stream.receive_some() == b""
        await stream.send_all(b"too late")
        await trio.sleep(1)
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"again")

    in_net(work)


def test_a_link_cut_in_one_direction_still_carries_the_other() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        net.cut(net.client, net.server)
        await stream.send_all(b"held")
        served.send(b"passes")
        assert await stream.receive_some() == b"passes"
        await trio.sleep(5)
        assert not served.readiness & READ
        net.network.heal(net.client, net.server)
        await served.wait_ready(READ)
        assert served.recv(100) == b"held"

    in_net(work)


def test_a_sender_gives_up_and_the_other_end_never_learns_of_it() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        net.cut(net.client, net.server)
        net.cut(net.server, net.client)
        await stream.send_all(b"lost")
        with pytest.raises(trio.BrokenResourceError, match="timed out"):
            await stream.receive_some()
        assert net.world.elapsed_ns >= GIVE_UP_NS
        assert served.readiness == WRITE

    in_net(work)


def test_a_stalled_link_delivers_late() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        net.network.stall(net.client, net.server, 3 * SECOND)
        began = trio.current_time()
        await stream.send_all(b"late")
        await served.wait_ready(READ)
        assert trio.current_time() - began == pytest.approx(3, abs=0.1)

    in_net(work)


def test_a_host_without_power_says_nothing_and_knows_nothing_when_it_is_up_again() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        served.send(b"underway")
        net.network.power_off(net.server)
        await stream.send_all(b"question")
        with trio.move_on_after(10) as scope:
            await stream.receive_some()
        assert scope.cancelled_caught
        net.network.power_on(net.server)
        with pytest.raises(trio.BrokenResourceError, match="reset"):
            await stream.receive_some()

    in_net(work)


def test_a_host_whose_process_dies_tells_its_peers() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        net.network.end_process(net.server)
        assert await stream.receive_some() == b""
        with pytest.raises(ConnectionRefusedError):
            await net.connect()
        # What the dead process still does has no effect.
        assert served.send(b"from the grave") == 14
        with pytest.raises(BlockingIOError):
            net.listening.accept()

    in_net(work)


def test_who_waits_for_accept_is_turned_away_when_the_listener_closes() -> None:
    async def work(net: Net) -> None:
        stream = await connect(net.network, net.client, "server", PORT)
        net.listening.close()
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()

    in_net(work)


def test_peeking_leaves_bytes_where_they_are() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        await stream.send_all(b"ab")
        await served.wait_ready(READ)
        assert served.recv(1, socket.MSG_PEEK) == b"a"
        window = bytearray(5)
        assert served.recv_into(memoryview(window)) == 2
        with pytest.raises(BlockingIOError):
            served.recv(1, socket.MSG_PEEK)

    in_net(work)


def test_low_water_keeps_a_socket_quiet_until_enough_has_come() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        served.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 10)
        await stream.send_all(b"12345")
        await trio.sleep(1)
        assert not served.readiness & READ
        await stream.send_all(b"67890")
        await served.wait_ready(READ)
        assert served.recv(100) == b"1234567890"

    in_net(work)


def test_a_poller_tells_of_a_hang_up_nobody_asked_for_and_is_woken() -> None:
    async def work(net: Net) -> None:
        stream, served = await net.connect()
        poller = Poller(net.network, net.server)
        poller.register(served.fileno(), 0)
        await stream.send_all(b"x")
        await trio.sleep(1)
        assert poller.poll(0, 64) == []
        net.network.reset(served)
        await poller.wait()
        assert all(mask & HANG_UP for _, mask in poller.poll(0, 64))
        poller.unregister(served.fileno())
        poller.wake()
        await poller.wait()
        assert poller.poll(0, 64) == [(poller.wake_descriptor, READ)]
        poller.woken()
        assert poller.poll(0, 64) == []
        poller.close()

    in_net(work)


def test_a_poller_hands_out_the_others_next() -> None:
    async def work(net: Net) -> None:
        pairs = [await net.connect() for _ in range(3)]
        poller = Poller(net.network, net.server)
        for stream, served in pairs:
            poller.register(served.fileno(), READ)
            await stream.send_all(b"x")
        await trio.sleep(1)
        first, second = poller.poll(0, 2), poller.poll(0, 2)
        assert len({descriptor for descriptor, _ in (*first, *second)}) == 3

    in_net(work)


def test_an_error_is_told_once_by_the_option() -> None:
    async def work(net: Net) -> None:
        _, served = await net.connect()
        net.network.reset(served)
        assert served.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
        assert served.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0

    in_net(work)


def test_one_seed_is_one_run() -> None:
    async def work(net: Net) -> None:
        async def talk() -> None:
            stream = await connect(net.network, net.client, "server", PORT)
            for size in range(1, 50):
                await stream.send_all(bytes(size))
            await stream.aclose()

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(talk)

    digests = [in_net(work, seed, LinkSettings()).world.trace.digest for seed in (1, 1, 2)]

    assert digests[0] == digests[1] != digests[2]
