"""The bare reactor against a raw epoll loop in Python and a C loop: requests a second, and bytes a second.

    python -m benchmarks.echo [--seconds 1] [--rounds 5] [--connections 8,500] [--ingest] [--loops epoll,portable]

The server runs in a process of its own on one core, a C client (compiled on first use with `cc`) on another. Rounds
alternate between the servers, so that what the machine does meanwhile meets them all; medians are printed. Rates drift
by half as the machine likes: trust the ratios, and CPU a request where others share the cores.

`raw` sends back what it received, whatever it is; `framed` is the same loop that finds the requests and answers each.
`reactor` is our bare reactor, which does with each socket what `raw` does; `epoll` is the reactor with our connections,
which frame, order answers and bound memory, and `portable` the portable loop with them; `c` is the raw loop in C.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ECHO_BYTES = 104
SIZE = struct.Struct(">i")
PREFIX = SIZE.pack(ECHO_BYTES - 4)
HERE = Path(__file__).parent
SERVERS = ("raw", "framed", "reactor", "epoll", "portable", "c")


class Load(NamedTuple):
    """What the client does: one request in flight on each connection."""

    mode: str
    connections: int
    frame_bytes: int


def serve(kind: str, mode: str) -> None:
    """Run one of the servers until it is ended; prints its port."""
    os.sched_setaffinity(0, {0})
    if kind in ("raw", "framed"):
        serve_raw("framed" if kind == "framed" and mode == "echo" else mode)
    elif kind == "reactor":
        serve_bare_reactor()
    else:
        serve_odradek(kind, mode)


def listen() -> socket.socket:
    """Return a listening socket; prints its port."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    print(listening.getsockname()[1], flush=True)
    return listening


def serve_raw(mode: str) -> None:
    """The least that Python can do: no framing for echo; for ingest exactly the frame's bytes, then four of answer."""
    import select

    listening = listen()
    poller = select.epoll()
    poller.register(listening.fileno(), select.EPOLLIN)
    clients: dict[int, socket.socket] = {}
    missing: dict[int, int] = {}
    buffer = memoryview(bytearray(2 << 20))
    frames: dict[int, memoryview] = {}
    filled: dict[int, int] = {}
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == listening.fileno():
                client, _ = listening.accept()
                client.setblocking(False)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                clients[client.fileno()] = client
                missing[client.fileno()] = filled[client.fileno()] = 0
                frames[client.fileno()] = memoryview(bytearray(2 << 20)) if mode == "ingest" else buffer
                poller.register(client.fileno(), select.EPOLLIN)
                continue
            client = clients[descriptor]
            place = buffer
            try:
                place = buffer if mode != "ingest" else frames[descriptor][filled[descriptor] :]
                size = client.recv_into(place)
            except ConnectionResetError:
                size = 0
            if not size:
                poller.unregister(descriptor)
                clients.pop(descriptor).close()
            elif mode == "echo":
                client.send(buffer[:size])
            elif mode == "framed":
                client.send(b"".join(echo_frames(buffer, size)))
            else:
                # One request in flight: what comes is never more than the frame.
                if not missing[descriptor]:
                    missing[descriptor] = 4 + struct.unpack_from(">i", place)[0]
                missing[descriptor] -= size
                filled[descriptor] += size
                if not missing[descriptor]:
                    filled[descriptor] = 0
                    client.send(b"\0\0\0\0")


def echo_frames(buffer: memoryview, size: int) -> list[bytes]:
    """Return an answer for every request; none is ever cut in two here, as each client waits for its answer."""
    answers = []
    position = 0
    while size - position >= 4:
        (length,) = SIZE.unpack_from(buffer, position)
        if not 0 <= length <= 104_857_600 or position + 4 + length > size:
            raise ValueError("not a whole request")
        answers.append(PREFIX + buffer[position + 4 : position + 4 + length])
        position += 4 + length
    return answers


def serve_bare_reactor() -> None:
    """The reactor, with sockets that are treated as the raw loop treats its own."""
    import attrs
    import trio

    from odradek.kernel.machine.clock import SystemClock
    from odradek.kernel.machine.system.machine import real_machine
    from odradek.kernel.network.connection import Connection
    from odradek.kernel.network.endpoint import Endpoint
    from odradek.kernel.network.reactor import Reactor
    from odradek.kernel.network.settings import ListenerSettings, NetworkSettings

    buffer = memoryview(bytearray(2 << 20))

    class RawEndpoint(Endpoint):
        def on_event(self, mask: int) -> None:
            try:
                size = self.socket.recv_into(buffer)
            except ConnectionResetError:
                size = 0
            if size:
                self.socket.send(buffer[:size])
            else:
                self.loop.close(self, "the client left")

    class Nothing:
        def connection_opened(self, connection: Connection) -> None: ...

        def frame_received(self, connection: Connection, frame: memoryview) -> None: ...

        def turn_ended(self) -> None: ...

        def connection_closed(self, connection: Connection) -> None: ...

    settings = NetworkSettings(listeners=(ListenerSettings("PLAINTEXT", "127.0.0.1", 0),))
    machine = attrs.evolve(real_machine(), clock=SystemClock())
    poller = machine.network.new_poller()
    assert poller is not None, "the reactor needs epoll"
    reactor = Reactor(receiver=Nothing(), settings=settings, machine=machine, poller=poller)
    listening = listen()

    def accept() -> None:
        client, (host, port) = listening.accept()
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reactor.adopt(
            client,
            listener_name="PLAINTEXT",
            client_host=host,
            client_port=port,
            frame_limit_bytes=1 << 20,
            make_endpoint=RawEndpoint,
        )

    reactor.watch_listener(listening, accept)
    trio.run(reactor.run)


def serve_odradek(kind: str, mode: str) -> None:
    """The reactor (or the portable loop) with a receiver that does nothing else."""
    import trio

    from odradek.kernel.machine.system.machine import real_machine
    from odradek.kernel.network.connection import Connection, ReplySlot
    from odradek.kernel.network.server import NetworkServer
    from odradek.kernel.network.settings import ListenerSettings, LoopKind, NetworkSettings

    class Echo:
        def connection_opened(self, connection: Connection) -> None: ...

        def frame_received(self, connection: Connection, frame: memoryview) -> None:
            ReplySlot(connection).complete([PREFIX + frame])

        def turn_ended(self) -> None: ...

        def connection_closed(self, connection: Connection) -> None: ...

    class Ingest(Echo):
        def frame_received(self, connection: Connection, frame: memoryview) -> None:
            ReplySlot(connection).complete([b"\0\0\0\0"])

    buffers = int(os.environ.get("BUFFERS", "-1"))
    settings = NetworkSettings(
        listeners=(ListenerSettings("PLAINTEXT", "127.0.0.1", 0),),
        loop=LoopKind(kind),
        backlog=1024,
        receive_buffer_bytes=buffers,
        send_buffer_bytes=buffers,
    )

    async def main() -> None:
        server = NetworkServer(Echo() if mode == "echo" else Ingest(), settings, real_machine())
        print(server.bind()["PLAINTEXT"][1], flush=True)
        await server.run()

    if os.environ.get("PROFILE"):
        import cProfile

        profile = cProfile.Profile()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        try:
            profile.runcall(trio.run, main)
        except BaseException:
            profile.print_stats("tottime")
            raise
    trio.run(main)


def compile_client(folder: Path) -> Path:
    """Return the client's program, compiled from `echo_client.c`."""
    program = folder / "echo_client"
    subprocess.run(["cc", "-O2", "-o", str(program), str(HERE / "echo_client.c")], check=True)
    return program


def cpu_microseconds(pid: int) -> float:
    """Return how long the process's first thread has run so far."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000


def measure(kind: str, load: Load, program: Path, seconds: float) -> tuple[float, ...]:
    """Start a server and load it.

    Returns:
        Requests a second, their median and 99th percentile in us, and the server's CPU us a request.
    """
    if kind == "c":
        arguments = [str(program), "serve", load.mode]
    else:
        arguments = [sys.executable, "-m", "benchmarks.echo", "--serve", kind, load.mode]
    server = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
    assert server.stdout is not None
    try:
        port = server.stdout.readline().strip()
        client = [str(program), "load", port, str(load.connections), str(load.frame_bytes), str(seconds), load.mode]
        cpu_before = cpu_microseconds(server.pid)
        output = subprocess.run(client, check=True, capture_output=True, text=True).stdout.split()
        requests, p50, p99 = (float(each) for each in output)
        return requests / seconds, p50, p99, (cpu_microseconds(server.pid) - cpu_before) / requests
    finally:
        server.terminate()
        server.wait()


def compare(kinds: list[str], load: Load, program: Path, seconds: float, rounds: int) -> None:
    """Measure all servers in turn, again and again, and print the medians."""
    results: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            results[kind].append(measure(kind, load, program, seconds))
    print(f"\n{load.mode}, {load.frame_bytes} B, {load.connections} connections, {rounds} rounds of {seconds} s")
    medians = {kind: [statistics.median(column) for column in zip(*results[kind], strict=True)] for kind in kinds}
    for kind, (rate, p50, p99, cpu) in medians.items():
        ratio, cpu_ratio = rate / medians[kinds[0]][0], medians[kinds[0]][3] / cpu
        megabytes = rate * load.frame_bytes / 1e6
        print(
            f"  {kind:9}{rate:10,.0f}/s {ratio:6.2f} of {kinds[0]} {megabytes:8,.0f} MB/s"
            f"   p50 {p50:6.0f} us  p99 {p99:6.0f} us   CPU {cpu:6.1f} us a request, {cpu_ratio:.2f} of {kinds[0]}"
        )


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", default="8,500")
    parser.add_argument("--ingest", action="store_true", help="receive 64 KiB and 1 MiB frames, too")
    parser.add_argument("--loops", default=",".join(SERVERS), help=f"which of {', '.join(SERVERS)}")
    parser.add_argument("--serve", nargs=2, metavar=("KIND", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return
    kinds = options.loops.split(",")
    print(platform.platform(), f"{os.cpu_count()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        program = compile_client(Path(folder))
        for connections in (int(each) for each in options.connections.split(",")):
            compare(kinds, Load("echo", connections, ECHO_BYTES), program, options.seconds, options.rounds)
        if options.ingest:
            kinds = [kind for kind in kinds if kind != "reactor"]  # it frames nothing
            for connections, frame_bytes in ((1, 1 << 20), (1, 65_700), (4, 65_700), (4, 16_500)):
                compare(kinds, Load("ingest", connections, frame_bytes), program, options.seconds, options.rounds)


if __name__ == "__main__":
    main()
