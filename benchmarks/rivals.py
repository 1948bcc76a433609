"""Two brokers side by side, ours and Apache Kafka, and raw connections to them, for benchmarks that pair the two.

Kafka comes from the peers (`ODRADEK_PEERS`); where there are none, ours is measured alone.
"""

from __future__ import annotations

import contextlib
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from benchmarks.processes import cpu_seconds
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from odradek.kernel.wire.registry import APIS
from tools.peers_folder import peers_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from odradek.kernel.wire.message import Message

PEERS = peers_folder()
RETRIED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


class Rival(NamedTuple):
    """A broker that runs: its name, its address, its processes."""

    name: str
    bootstrap: str
    pids: Sequence[int]

    def cpu_seconds(self) -> float:
        """Return what its processes have used of the processors."""
        return sum(cpu_seconds(pid) for pid in self.pids)

    def connect(self) -> Wire:
        """Return a connection to it."""
        return Wire(self.bootstrap)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        self.connect().ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)

    def wait_coordinator(self, key: str, key_type: int) -> None:
        """Wait until a key has a coordinator: the first one waits for its internal topic."""
        wire = self.connect()
        while True:
            answer = wire.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4)
            if not answer.coordinators[0].error_code:
                return
            time.sleep(0.05)


class Wire:
    """A blocking connection that sends requests and takes answers in their order."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self._asked: list[tuple[int, int]] = []

    def fileno(self) -> int:
        """Return the socket's descriptor, so that the connection can be waited for."""
        return self.socket.fileno()

    def send(self, request: Message, version: int) -> None:
        """Send a request."""
        self._asked.append((request.__api_key__, version))
        self.socket.sendall(frame_of(request, version))

    def receive(self) -> Any:
        """Wait for the next answer and return it."""
        frame, key, version = self.receive_bytes()
        _, position = decode_response_header(frame, key, version)
        return decode(APIS[key].response, memoryview(frame), version, position=position)

    def receive_bytes(self) -> tuple[bytes, int, int]:
        """Wait for the next answer and return its bytes, with API key and version; a client's decoding is not timed."""
        while (size := self._frame_size()) is None:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._buffer += data
        frame = bytes(self._buffer[4 : 4 + size])
        del self._buffer[: 4 + size]
        return frame, *self._asked.pop(0)

    def _frame_size(self) -> int | None:
        if len(self._buffer) < 4:
            return None
        (size,) = struct.unpack_from(">i", self._buffer)
        return size if len(self._buffer) >= 4 + size else None

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and return its answer."""
        self.send(request, version)
        return self.receive()


def frame_of(request: Message, version: int) -> bytes:
    """Return a request's frame."""
    return encode_request(request, version, 1, "bench").join()


@contextlib.contextmanager
def ours(settings: Mapping[str, object]) -> Iterator[Rival]:
    """Run our broker."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", "--data-dir", folder]
        command += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield Rival("odradek", process.stdout.readline().split()[1], [process.pid])
        finally:
            process.terminate()
            process.wait(60)


@contextlib.contextmanager
def rivals(settings: Mapping[str, object]) -> Iterator[list[Rival]]:
    """Run our broker and, where the peers are, Apache Kafka, with the same settings."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(ours(settings))]
        if (PEERS / "peers.py").exists():
            if str(PEERS) not in sys.path:
                sys.path.append(str(PEERS))
            from peers import start  # type: ignore[import-not-found] # a script outside of the project

            peer = stack.enter_context(start("kafka", settings=settings))
            found.append(Rival("kafka", peer.bootstrap, peer.pids))
        yield found


class Load(NamedTuple):
    """What a load came to: requests a second, the broker's CPU seconds for a thousand."""

    rate: float
    cpu_thousand: float


def flood(rival: Rival, frames: Sequence[bytes], depth: int, seconds: float) -> Load:
    """Keep `depth` requests in flight on a connection for each frame, sent again and again; count the answers."""
    wires = [rival.connect() for _ in frames]
    states = {wire.fileno(): (wire.socket, frame, bytearray()) for wire, frame in zip(wires, frames, strict=True)}
    poll = select.epoll()
    for descriptor, (connection, frame, _) in states.items():
        poll.register(descriptor, select.EPOLLIN)
        connection.sendall(frame * depth)
    count, before, begin = 0, rival.cpu_seconds(), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for descriptor, _ in poll.poll(1):
            connection, frame, rest = states[descriptor]
            data = connection.recv(1 << 16)
            assert data, "the broker closed the connection"
            answered = _take_frames(rest, data)
            count += answered
            if answered:
                connection.sendall(frame * answered)
    elapsed, used = time.perf_counter() - begin, rival.cpu_seconds() - before
    poll.close()
    for wire in wires:
        wire.socket.close()
    return Load(count / elapsed, used / count * 1000)


def _take_frames(rest: bytearray, data: bytes) -> int:
    """Add bytes and take out whole frames; return how many there were."""
    rest += data
    count = position = 0
    while len(rest) - position >= 4:
        end = position + 4 + int.from_bytes(rest[position : position + 4], "big")
        if end > len(rest):
            break
        position, count = end, count + 1
    del rest[:position]
    return count


class Named(Protocol):
    """Who is measured: a broker, or several."""

    @property
    def name(self) -> str:
        """Whose."""
        ...


Measured = TypeVar("Measured", bound=Named)


def alternate(
    found: Sequence[Measured], rounds: int, measure: Callable[[Measured, int], tuple[float, ...]]
) -> dict[str, list[tuple[float, ...]]]:
    """Measure the brokers in turns, after a round that warms them (a JVM compiles what is hot)."""
    samples: dict[str, list[tuple[float, ...]]] = {rival.name: [] for rival in found}
    for number in range(rounds + 1):
        for rival in found:
            sample = measure(rival, number)
            if number:
                samples[rival.name].append(sample)
    return samples


def row(case: str, samples: Mapping[str, Sequence[tuple[float, ...]]], columns: Sequence[str]) -> None:
    """Print a case: a line a broker with the medians of each column, and ours over Kafka's in the same round."""
    for name, rounds in samples.items():
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        shown = "   ".join(text.format(value) for text, value in zip(columns, medians, strict=True))
        ratios = ""
        if name == "odradek" and "kafka" in samples:
            pairs = zip(rounds, samples["kafka"], strict=True)
            by_column = zip(*([a / b if b else 0.0 for a, b in zip(*pair, strict=True)] for pair in pairs), strict=True)
            ratios = "   of Kafka's: " + ", ".join(f"{statistics.median(column):.2f}" for column in by_column)
        print(f"{case:<26} {name:<8} {shown}{ratios}", flush=True)
