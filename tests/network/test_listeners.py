"""Listeners: binding, limits on connections, and what an operator is told."""

import resource
import socket
import struct
import sys
from typing import Any

import pytest
import trio

from odradek.kernel.errors import ConfigError
from odradek.kernel.machine.clock import SystemClock
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.machine.system.network import SystemNetwork
from odradek.kernel.network.listener import bind, plain_host, set_options
from odradek.kernel.network.server import NetworkServer, make_loop
from odradek.kernel.network.settings import ListenerSettings, LoopKind, NetworkSettings
from tests.machines import NetworkWithoutEpoll, machine_with

from .conftest import framed


def settings(*listeners: ListenerSettings, **others: Any) -> NetworkSettings:
    return NetworkSettings(listeners, **others)


def test_several_listeners_are_served_and_a_connection_knows_its_own(serve: Any, loop_kind: LoopKind) -> None:
    both = (ListenerSettings("ONE", "127.0.0.1", 0), ListenerSettings("TWO", "127.0.0.1", 0))

    async def main() -> None:
        async with serve(loop_kind, listeners=both) as serving:
            for name in ("ONE", "TWO"):
                async with await serving.connect(name) as client:
                    assert await serving.ask(client, b"e") == b"e"
                    assert serving.service.opened[-1].listener_name == name
                    assert serving.server.statistics().connections_by_listener[name] == 1

    trio.run(main)


def test_clients_wait_in_the_backlog_until_they_are_admitted(serve: Any, loop_kind: LoopKind) -> None:
    both = (
        ListenerSettings("CONTROLLER", "127.0.0.1", 0, goes_first=True),
        ListenerSettings("CLIENTS", "127.0.0.1", 0),
    )

    async def main() -> None:
        async with (
            serve(loop_kind, listeners=both, admits_clients=False) as serving,
            await serving.connect("CLIENTS") as client,
            await serving.connect("CONTROLLER") as node,
        ):
            await client.send_all(b"\0\0\0\1e")
            assert await serving.ask(node, b"ee") == b"ee"
            assert serving.service.frames == [b"ee"]
            serving.server.admit_clients()
            assert await serving.answer(client) == b"e"
            serving.server.admit_clients()
            assert await serving.ask(client, b"eee") == b"eee"

    trio.run(main)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_all_addresses_means_both_families(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind, listeners=(ListenerSettings("ANY", "", 0),)) as serving:
            port = serving.addresses["ANY"][1]
            for host in ("127.0.0.1", "::1"):
                async with await trio.open_tcp_stream(host, port) as client:
                    assert await serving.ask(client, b"e") == b"e"
                    assert serving.service.opened[-1].client_host == host

    trio.run(main)


def test_without_dual_stack_all_addresses_are_those_of_the_older_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with SystemNetwork().listen("", 0, backlog=1, receive_buffer_bytes=65_536) as listening:
        assert listening.getsockname()[0] == "0.0.0.0"


def test_a_wrapped_address_is_shown_plain() -> None:
    assert [plain_host(host) for host in ("::ffff:10.0.0.1", "::1", "10.0.0.1")] == ["10.0.0.1", "::1", "10.0.0.1"]


def test_the_buffer_that_is_set_is_the_socket_s() -> None:
    with socket.socket() as client:
        set_options(client, "10.0.0.1", settings(send_buffer_bytes=50_000))
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in {50_000, 100_000}  # Linux tells the double


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no option for it")
def test_nothing_paces_what_a_client_on_this_machine_fetches() -> None:
    def chosen(host: str | None) -> bytes:
        with socket.socket() as client:
            if host is not None:
                set_options(client, host, settings())
            return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")

    assert [chosen(host) for host in ("127.0.0.1", "127.1.2.3", "::1")] == [b"reno"] * 3
    assert [chosen(host) for host in ("10.0.0.1", "::2", "fe80::1")] == [chosen(None)] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no option for it")
@pytest.mark.parametrize(("host", "is_paced_by_default"), [("localhost", False), ("", True)])
def test_clients_of_a_loopback_listener_were_never_paced(host: str, is_paced_by_default: bool) -> None:
    def chosen(by: socket.socket) -> bytes:
        return by.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")

    with (
        socket.socket() as untouched,
        SystemNetwork().listen(host, 0, backlog=1, receive_buffer_bytes=-1) as listening,
        socket.create_connection(("localhost", listening.getsockname()[1])),
    ):
        listening.settimeout(10)
        accepted, _ = listening.accept()
        with accepted:
            assert chosen(accepted) == (chosen(untouched) if is_paced_by_default else b"reno")


def test_a_port_in_use_is_said_clearly_and_nothing_stays_bound() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = NetworkServer(
            None,  # type: ignore[arg-type]  # it is never asked
            settings(ListenerSettings("FREE", "127.0.0.1", 0), ListenerSettings("TAKEN", "127.0.0.1", port)),
            real_machine(),
        )

        with pytest.raises(ConfigError) as caught:
            server.bind()

    assert caught.value.where == "listeners"
    assert f"127.0.0.1:{port}" in str(caught.value)
    assert "another port" in caught.value.hint


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7"])
def test_a_host_that_is_not_ours_is_said_clearly(host: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bind(ListenerSettings("BAD", host, 0), settings(), SystemNetwork())

    assert "BAD" in str(caught.value)
    assert caught.value.hint


def test_epoll_where_there_is_none_is_refused() -> None:
    machine = machine_with(clock=SystemClock(), network=NetworkWithoutEpoll())

    with pytest.raises(ConfigError, match="auto or portable"):
        make_loop(None, settings(loop=LoopKind.EPOLL), machine)  # type: ignore[arg-type]  # it is never asked


def test_automatic_takes_the_portable_loop_where_there_is_no_epoll() -> None:
    machine = machine_with(clock=SystemClock(), network=NetworkWithoutEpoll())

    loop = make_loop(None, settings(), machine)  # type: ignore[arg-type]  # it is never asked

    assert type(loop).__name__ == "PortableLoop"


def test_simulated_sockets_do_not_go_to_the_portable_loop() -> None:
    class Simulated(SystemNetwork):
        is_system = False

    machine = machine_with(clock=SystemClock(), network=Simulated())

    with pytest.raises(ConfigError, match="take the reactor"):
        make_loop(None, settings(loop=LoopKind.PORTABLE), machine)  # type: ignore[arg-type]  # it is never asked


def test_beyond_the_limit_clients_wait_until_one_leaves(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind, connections_max=2) as serving:
            first, second, third = [await serving.connect() for _ in range(3)]
            assert await serving.ask(first, b"e") == b"e"
            assert await serving.ask(second, b"e") == b"e"
            await third.send_all(struct.pack(">i", 1) + b"e")
            assert await serving.ask(first, b"e") == b"e"
            assert len(serving.service.opened) == 2

            await first.aclose()

            assert await serving.answer(third) == b"e"
            await second.aclose()
            await third.aclose()

    trio.run(main)


def three_listeners() -> tuple[ListenerSettings, ...]:
    return (
        ListenerSettings("PLAINTEXT", "127.0.0.1", 0),
        ListenerSettings("INTERNAL", "127.0.0.1", 0, is_protected=True),
        ListenerSettings("CONTROLLER", "127.0.0.1", 0, goes_first=True),
    )


def test_controllers_are_reached_whatever_clients_hold(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind, listeners=three_listeners(), connections_max=1) as serving:
            nodes = [await serving.connect("CONTROLLER") for _ in range(2)]
            for node in nodes:
                assert await serving.ask(node, b"e") == b"e"
            first, second = await serving.connect(), await serving.connect()
            assert await serving.ask(first, b"e") == b"e"
            await second.send_all(b"\0\0\0\1e")
            async with await serving.connect("CONTROLLER") as third:
                assert await serving.ask(third, b"e") == b"e"
            assert await serving.ask(first, b"ee") == b"ee"
            assert len(serving.service.opened) == 4

            await first.aclose()
            assert await serving.answer(second) == b"e"
            for stream in (second, *nodes):
                await stream.aclose()

    trio.run(main)


def test_for_a_broker_beyond_the_limit_the_client_that_was_silent_longest_is_closed(
    serve: Any, loop_kind: LoopKind
) -> None:
    async def main() -> None:
        async with serve(loop_kind, listeners=three_listeners(), connections_max=3) as serving:
            clients = [await serving.connect() for _ in range(3)]
            for client in clients:
                assert await serving.ask(client, b"e") == b"e"
            owed, active, silent = (connection.driver for connection in serving.service.opened)
            await clients[0].send_all(framed(b"p"))
            await serving.until(lambda: bool(serving.service.parked))
            owed.last_active_ms -= 9_000
            silent.last_active_ms -= 3_000

            async with await serving.connect("INTERNAL") as broker:
                assert await serving.ask(broker, b"e") == b"e"
                assert await clients[2].receive_some() == b""
                assert await serving.ask(clients[1], b"e") == b"e"
                serving.service.parked[0].complete([framed(b"late")])
                assert await serving.answer(clients[0]) == b"late"
                async with await serving.connect("INTERNAL") as another:
                    assert await serving.ask(another, b"e") == b"e"
                    await serving.until(lambda: len(serving.service.closed) == 2)
                    assert {each.listener_name for each in serving.service.closed} == {"PLAINTEXT"}
                    assert active.connection.is_open is not owed.connection.is_open
            for client in clients:
                await client.aclose()

    trio.run(main)


def test_who_just_got_the_answer_that_it_waited_for_was_not_silent_meanwhile(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with (
            serve(loop_kind, listeners=three_listeners(), connections_max=2) as serving,
            await serving.connect() as patient,
            await serving.connect() as silent,
        ):
            for client in (patient, silent):
                assert await serving.ask(client, b"e") == b"e"
            answered, idle = (connection.driver for connection in serving.service.opened)
            await patient.send_all(framed(b"p"))
            await serving.until(lambda: bool(serving.service.parked))
            answered.last_active_ms -= 9_000
            idle.last_active_ms -= 3_000
            answered.loop.sweep(answered.loop.clock.monotonic_ms())
            serving.service.parked[0].complete([framed(b"late")])
            assert await serving.answer(patient) == b"late"

            async with await serving.connect("INTERNAL") as broker:
                assert await serving.ask(broker, b"e") == b"e"
                await serving.until(lambda: bool(serving.service.closed))
                assert serving.service.closed == [idle.connection]
                assert await serving.ask(patient, b"e") == b"e"

    trio.run(main)


def test_brokers_go_beyond_the_limit_where_there_is_no_client_to_close(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with (
            serve(loop_kind, listeners=three_listeners(), connections_max=0) as serving,
            await serving.connect("INTERNAL") as first,
            await serving.connect("INTERNAL") as second,
        ):
            assert await serving.ask(first, b"e") == b"e"
            assert await serving.ask(second, b"e") == b"e"
            assert await serving.ask(first, b"e") == b"e"

    trio.run(main)


def test_controllers_are_counted_by_address_for_themselves(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        async with serve(loop_kind, listeners=three_listeners(), connections_per_ip_max=1) as serving:
            async with await serving.connect() as client, await serving.connect("CONTROLLER") as node:
                assert await serving.ask(client, b"e") == b"e"
                assert await serving.ask(node, b"e") == b"e"
                for name in ("INTERNAL", "CONTROLLER"):
                    async with await serving.connect(name) as refused:
                        assert await refused.receive_some() == b""
            await serving.until(lambda: len(serving.service.closed) == 2)
            async with await serving.connect("CONTROLLER") as node:
                assert await serving.ask(node, b"e") == b"e"

    trio.run(main)


@pytest.mark.parametrize(
    "limits", [{"connections_per_ip_max": 1}, {"connections_per_ip_overrides": {"127.0.0.1": 1}}], ids=str
)
def test_beyond_the_limit_of_an_address_a_client_is_closed_at_once(
    serve: Any, loop_kind: LoopKind, limits: dict[str, Any]
) -> None:
    async def main() -> None:
        async with serve(loop_kind, **limits) as serving:
            first = await serving.connect()
            assert await serving.ask(first, b"e") == b"e"
            async with await serving.connect() as second:
                assert await second.receive_some() == b""
            assert serving.server.statistics().connections_refused_count == 1

            await first.aclose()
            await serving.until(lambda: len(serving.service.closed) == 1)
            async with await serving.connect() as third:
                assert await serving.ask(third, b"e") == b"e"

    trio.run(main)


def test_want_of_descriptors_pauses_accepting_and_disturbs_nobody(serve: Any, loop_kind: LoopKind) -> None:
    async def main() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        async with serve(loop_kind) as serving, await serving.connect() as first:
            assert await serving.ask(first, b"e") == b"e"
            waiting = socket.socket()
            waiting.setblocking(False)
            highest = waiting.fileno()
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
                waiting.connect_ex(serving.addresses["PLAINTEXT"])
                await serving.until(lambda: serving.server.statistics().accept_failures_count > 0)
                for _ in range(50):
                    assert await serving.ask(first, b"e") == b"e"
                assert serving.server.statistics().accept_failures_count < 5
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            async with trio.SocketStream(trio.socket.from_stdlib_socket(waiting)) as second:
                assert await serving.ask(second, b"e") == b"e"

    trio.run(main)


def test_the_limit_of_unknown_clients_is_the_listeners(serve: Any, loop_kind: LoopKind) -> None:
    listener = ListenerSettings("SASL", "127.0.0.1", 0, frame_limit_bytes=100)

    async def main() -> None:
        async with serve(loop_kind, listeners=(listener,)) as serving, await serving.connect("SASL") as client:
            assert await serving.ask(client, b"e" * 100) == b"e" * 100
            serving.service.opened[0].frame_limit_bytes = 200
            assert await serving.ask(client, b"e" * 200) == b"e" * 200
            await client.send_all(struct.pack(">i", 201))
            assert await client.receive_some() == b""

    trio.run(main)
