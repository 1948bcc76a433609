"""Small requests beside large ones: a turn serves who asks for little first, and is bounded by bytes."""

import socket
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from odradek.kernel.network import reactor
from odradek.kernel.network.endpoint import RECEIVE_BYTES_PER_TURN, Endpoint
from odradek.kernel.network.settings import ListenerSettings, NetworkSettings
from tests.machines import make_reactor

from .conftest import Service, framed, needs_pump

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the reactor needs epoll")

LARGE = b"n" + bytes(1_000_000)
SMALL = b"nsmall"


class Clients:
    """A reactor whose turns a test makes, with clients at socket pairs."""

    def __init__(self, pump: ModuleType | None) -> None:
        self.service = Service()
        listeners = (
            ListenerSettings("PLAINTEXT", "127.0.0.1", 0),
            ListenerSettings("CONTROLLER", "127.0.0.1", 0, goes_first=True),
        )
        settings = NetworkSettings(listeners)
        self.reactor = make_reactor(self.service, settings)
        self.reactor.pump = pump
        self.sockets: list[socket.socket] = []

    def connect(self, listener: str = "PLAINTEXT") -> socket.socket:
        ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setblocking(False)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2_500_000)
        self.reactor.adopt(
            ours,
            listener_name=listener,
            client_host="here",
            client_port=len(self.sockets),
            frame_limit_bytes=1 << 24,
            make_endpoint=Endpoint,
        )
        self.sockets += [ours, theirs]
        return theirs

    def turn(self) -> int:
        """Make a turn; return how many bytes came."""
        before = self.reactor.bytes_in
        self.reactor.turn(self.reactor.poller.poll(0, 64))
        return self.reactor.bytes_in - before

    def close(self) -> None:
        for endpoint in list(self.reactor.endpoints.values()):
            self.reactor.close(endpoint, "the test is over")
        for each in self.sockets:
            each.close()
        self.reactor.poller.close()


@pytest.fixture(params=[pytest.param("pump", marks=needs_pump), "python"])
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    clients = Clients(reactor.PUMP if request.param == "pump" else None)
    yield clients
    clients.close()


def send(client: socket.socket, data: bytes) -> bytes:
    """Send what the socket takes; return the rest."""
    try:
        return data[client.send(data) :]
    except BlockingIOError:
        return data


def test_a_small_request_is_served_before_the_rest_of_large_ones(clients: Clients) -> None:
    large = [(clients.connect(), framed(LARGE)) for _ in range(20)]
    rests = [send(client, data[:100_000]) or data[100_000:] for client, data in large]
    clients.turn()
    rests = [send(client, rest) for (client, _), rest in zip(large, rests, strict=True)]
    send(clients.connect(), framed(SMALL))
    came = clients.turn()

    assert clients.service.frames[0] == SMALL
    assert came <= RECEIVE_BYTES_PER_TURN + 2_500_000


def test_the_controllers_listener_goes_ahead_of_client_traffic(clients: Clients) -> None:
    asking = [clients.connect() for _ in range(20)]
    brokers = [clients.connect("CONTROLLER") for _ in range(2)]
    for number, client in enumerate([*asking, *brokers]):
        send(client, framed(b"n%d" % number))
    clients.turn()

    assert sorted(clients.service.frames[:2]) == [b"n20", b"n21"]
    assert sorted(clients.service.frames[2:]) == sorted(b"n%d" % number for number in range(20))


def test_every_large_request_gets_on_within_bounded_turns(clients: Clients) -> None:
    large = [clients.connect() for _ in range(10)]
    rests = [framed(LARGE)] * len(large)
    turns = 0
    while len(clients.service.frames) < len(large) and turns < 200:
        rests = [send(client, rest) for client, rest in zip(large, rests, strict=True)]
        came = clients.turn()
        turns += 1

        assert came <= len(large) * 128 * 1024 + 2 * RECEIVE_BYTES_PER_TURN
    assert clients.service.frames == [LARGE] * len(large)


def test_who_is_closed_while_he_waits_is_forgotten(clients: Clients) -> None:
    large = [clients.connect() for _ in range(4)]
    rests = [send(client, framed(LARGE)) for client in large[:3]]
    send(large[3], framed(LARGE)[:400_000])
    clients.turn()
    large[3].close()
    for _ in range(50):
        rests = [send(client, rest) for client, rest in zip(large[:3], rests, strict=True)]
        clients.turn()

    assert clients.service.frames == [LARGE] * 3
    assert len(clients.service.closed) == 1


def low_water(clients: Clients) -> list[int]:
    options = [
        endpoint.socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
        for endpoint in clients.reactor.endpoints.values()
    ]
    return [option for option in options if option != 1]


def test_only_for_what_is_still_to_come_of_a_large_frame_a_wake_up_is_put_off(clients: Clients) -> None:
    client = clients.connect()
    whole, half = framed(b"n" + bytes(60_000)), framed(b"n" + bytes(90_000))
    for _ in range(2):
        send(client, whole)
        clients.turn()
        assert low_water(clients) == []

    send(client, half[:45_000])
    clients.turn()
    assert low_water(clients) == [len(half) - 45_000]

    send(client, half[45_000:])
    clients.turn()
    assert low_water(clients) == []
    assert clients.service.frames == [whole[4:]] * 2 + [half[4:]]


def test_who_expects_a_large_frame_waits_behind_small_ones_and_is_served_in_the_same_turn(clients: Clients) -> None:
    first, second = clients.connect(), clients.connect()
    send(first, framed(b"n" + bytes(60_000)))
    clients.turn()
    send(first, framed(b"nbehind"))
    send(second, framed(SMALL))

    clients.turn()

    assert clients.service.frames[1:] == [SMALL, b"nbehind"]
