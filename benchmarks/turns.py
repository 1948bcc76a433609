"""What a turn of the broker costs, without a client beside it: its loop's turns are made by hand, in one process.

    python -m benchmarks.turns [--case small] [--connections 8] [--depth 1] [--rounds 200] [--ready 4] [--against TREE]

Rates on a machine that others use say little. Here everything runs on one thread: frames are sent on real sockets, the
loop's turn is called with those that are ready, the answers are received; only the turn is timed, and of many
rounds the least counts: what nobody disturbed. `no network` gives the same frames to the connections' pure part.
`bare calls` is what no broker can leave out: it polls, receives, computes the CRC-32C, appends to a file, answers.

With `--against`, another checkout does the same in a process of its own, in turns with this one.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

import trio
from crc32c import crc32c

from benchmarks.broker import CASES, TOPIC, Case, produce_frame
from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.network.endpoint import Endpoint
from odradek.kernel.network.server import make_loop
from odradek.kernel.network.settings import ListenerSettings, LoopKind, NetworkSettings
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.network.connection import Connection

ROOT: Final = Path(__file__).parent.parent
BUFFER_BYTES: Final = 4 << 20
"""A frame waits in the sockets as a whole: who would receive it is who sends it."""


class Sink:
    """Takes a connection's answers and drops them: a driver without a socket."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.answers_count = 0

    def flush(self) -> None:
        """Drop what is to be sent."""
        connection = self.connection
        assert connection is not None
        connection.is_dirty = False
        self.answers_count += len(connection.outgoing)
        connection.outgoing.clear()


def least(rounds: int, turn: Callable[[], int]) -> tuple[float, float]:
    """Return the least and the median of what `turn`, which returns nanoseconds, takes, in us."""
    for _ in range(50):
        turn()
    times = sorted(turn() / 1000 for _ in range(rounds))
    return times[0], statistics.median(times)


class Bench:
    """A broker in this process, whose loop is driven by hand."""

    def __init__(self, broker: Broker, case: Case, connections: int, depth: int) -> None:
        self.broker = broker
        settings = NetworkSettings(listeners=(ListenerSettings("X", "127.0.0.1", 0),), loop=LoopKind.EPOLL)
        self.loop = make_loop(broker.parts.requests.router, settings, broker.machine)
        self.frames = [produce_frame(index, case) * depth for index in range(connections)]
        self.depth = depth
        self.clients = []
        for _ in range(connections):
            client, server = connected()
            self.clients.append(client)
            self.loop.adopt(
                server,
                listener_name="X",
                client_host="127.0.0.1",
                client_port=0,
                frame_limit_bytes=1 << 20,
                make_endpoint=Endpoint,
            )
        self.first = 0
        self.answer_bytes = 0
        self.answer_bytes = self.size_of_an_answer()

    def size_of_an_answer(self) -> int:
        """Make one turn for one request; return how many bytes its answer has."""
        self.over_tcp(1)()
        return len(self.clients[0].recv(65536)) // self.depth

    def over_tcp(self, ready: int) -> Callable[[], int]:
        """Return what makes a turn with so many connections ready, each of them in its turn."""
        loop = self.loop
        # The benchmark is the reactor's own task here.
        poll = loop.poller.poll  # type: ignore[attr-defined]

        def turn() -> int:
            count = len(self.clients)
            chosen = [(self.first + index) % count for index in range(ready)]
            self.first += ready
            for index in chosen:
                self.clients[index].sendall(self.frames[index])
            start = perf_counter_ns()
            events = poll(0, 64)
            loop.turn(events)  # type: ignore[attr-defined]  # as above
            end = perf_counter_ns()
            while loop.resumed or loop.turn_state.dirty:
                loop.turn([])  # type: ignore[attr-defined]  # as above
            for index in chosen:
                answered_bytes = 0
                while answered_bytes < self.answer_bytes * self.depth:
                    answered_bytes += len(self.clients[index].recv(65536))
            return end - start

        return turn

    def without_network(self, ready: int) -> Callable[[], int]:
        """Return what gives the same frames to connections without sockets."""
        loop = self.loop
        sinks = [Sink() for _ in range(ready)]
        connections = []
        for sink, endpoint in zip(sinks, list(loop.endpoints.values()), strict=False):
            connection = endpoint.connection
            connection.driver = sink
            sink.connection = connection
            connections.append(connection)
        frames = self.frames[:ready]
        receiver = loop.receiver

        def turn() -> int:
            start = perf_counter_ns()
            loop.begin_turn()
            for connection, frame in zip(connections, frames, strict=True):
                connection.receive_data(frame, receiver)
            loop.want_turn()
            loop.finish_turn()
            return perf_counter_ns() - start

        return turn


class BareCalls:
    """The least that a log does with the same frames, call by call, one connection after the other."""

    def __init__(self, bench: Bench, file: Path) -> None:
        self.frames = bench.frames
        self.pairs = [connected() for _ in self.frames]
        self.epoll = select.epoll()
        self.servers = {server.fileno(): server for _, server in self.pairs}
        for descriptor in self.servers:
            self.epoll.register(descriptor, select.EPOLLIN)
        self.answer = bytes(bench.answer_bytes)
        self.window = memoryview(bytearray(max(map(len, self.frames))))
        self.file = file.open("wb", buffering=0)
        self.end = self.first = 0

    def over_tcp(self, ready: int) -> Callable[[], int]:
        """Return what serves so many connections, each of them in its turn."""

        def turn() -> int:
            chosen = [(self.first + index) % len(self.pairs) for index in range(ready)]
            self.first += ready
            for index in chosen:
                self.pairs[index][0].sendall(self.frames[index])
            wanted_end = self.end + sum(len(self.frames[index]) for index in chosen)
            start = perf_counter_ns()
            for descriptor, _ in self.epoll.poll(0, 64):
                server = self.servers[descriptor]
                received = self.window[: server.recv_into(self.window)]
                crc32c(received)
                self.end += os.pwrite(self.file.fileno(), received, self.end)
                server.send(self.answer)
            end = perf_counter_ns()
            assert self.end == wanted_end, f"a frame has no room: raise net.core.rmem_max to {BUFFER_BYTES}"
            for index in chosen:
                self.pairs[index][0].recv(65536)
            return end - start

        return turn


def connected() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a connection; the second, the server's, does not block."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        client = socket.create_connection(listening.getsockname())
        server, _ = listening.accept()
    server.setblocking(False)
    for each in (server, client):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client, server


def is_open(broker: Broker, partitions_count: int) -> bool:
    """Return whether the topic's partitions can be appended to."""
    topic = broker.parts.logs.replicas.topics.get(TOPIC)
    return topic is not None and len(topic.partitions) == partitions_count


async def run(options: argparse.Namespace) -> None:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder:
        read = read_broker_options(
            config=None, environment={}, options=[], listen=["127.0.0.1:0"], data_dir=Path(folder) / "data"
        )
        broker = Broker(read)
        async with trio.open_nursery() as nursery:
            await nursery.start(broker.run)
            topic = CreatableTopic(name=TOPIC, num_partitions=options.connections, replication_factor=1)
            await broker.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
            while not is_open(broker, options.connections):  # noqa: ASYNC110  # the task that opens them tells nobody
                await trio.sleep(0.01)
            bench = Bench(broker, CASES[options.case], options.connections, options.depth)
            if options.profile:
                profile(bench.over_tcp(options.ready), options.rounds)
            per = options.ready * options.depth
            bare = BareCalls(bench, Path(folder) / "bare")
            makes = {"bare calls": bare.over_tcp, "tcp": bench.over_tcp, "no network": bench.without_network}
            for name, make in makes.items():
                best, median = least(options.rounds, make(options.ready))
                print(f"{name:12} {best / per:7.2f} {median / per:7.2f}", flush=True)
            broker.stop()
            await broker.wait_stopped()


def profile(turn: Callable[[], int], rounds: int) -> None:
    """Print where the calls go."""
    import cProfile

    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(rounds):
        turn()
    profiler.disable()
    profiler.print_stats("tottime")


def compare(options: argparse.Namespace) -> None:
    """Run both trees in turns and print the least of each."""
    trees = {"against": Path(options.against), "this": ROOT}
    best: dict[tuple[str, str], list[float]] = {}
    arguments = [f"--{name}={getattr(options, name)}" for name in ("case", "connections", "depth", "ready", "rounds")]
    for _ in range(options.times):
        for label, tree in trees.items():
            environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{ROOT}"}
            command = [sys.executable, Path(__file__), *arguments]
            done = subprocess.run(
                [str(part) for part in command], env=environment, cwd=tree, capture_output=True, text=True, check=True
            )
            for line in done.stdout.splitlines():
                name, least_us = line[:12].strip(), float(line[12:].split()[0])
                best.setdefault((name, label), []).append(least_us)
    for name in ("tcp", "no network"):
        before, after = (min(best[name, label]) for label in trees)
        print(f"{name:12} {before:7.2f} -> {after:7.2f} us a request, {after / before:.2f}")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--case", default="small", choices=[name for name, case in CASES.items() if case.api == "produce"]
    )
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--ready", type=int, default=4, help="connections with a request in each turn")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--times", type=int, default=3, help="processes of each tree, with --against")
    parser.add_argument("--against", help="another checkout of this repository")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    assert hasattr(select, "epoll"), "the reactor needs epoll"
    if options.against:
        compare(options)
    else:
        trio.run(run, options)


if __name__ == "__main__":
    main()
