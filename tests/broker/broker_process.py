"""A broker in a process of its own, and just enough of a client to ask it: frames over a blocking socket."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.registry import APIS
from tests.waiting import is_readable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

R = TypeVar("R", bound=Message)

START_TIMEOUT_S = 180.0

KEEPS_EVERYTHING = "log.retention.ms=-1"
"""The timestamps of these tests are fixed and in the past."""


class BrokerProcess:
    """`odradek serve` as a child process; without a data directory an option says `log.dirs`.

    Its coverage is measured on request alone: that makes it half as fast, and one that is killed has none to tell.
    """

    def __init__(
        self,
        data_dir: Path | None,
        *options: str,
        listen: str = "127.0.0.1:0",
        is_measured: bool = False,
        within: Sequence[str] = (),
        more: Sequence[str] = (),
    ) -> None:
        command = ["--listen", listen, "--set", KEEPS_EVERYTHING, *more]
        if data_dir is not None:
            command += ["--data-dir", str(data_dir)]
        self._start([*command, *(word for option in options for word in ("--set", option))], is_measured, within)

    @classmethod
    def from_config(cls, data_dir: Path, config: Path) -> BrokerProcess:
        """Start a broker with a configuration file."""
        broker = cls.__new__(cls)
        broker._start(["--config", str(config), "--listen", "127.0.0.1:0", "--data-dir", str(data_dir)])
        return broker

    def _start(self, arguments: list[str], is_measured: bool = False, within: Sequence[str] = ()) -> None:
        left_out = ("ODRADEK_",) if is_measured else ("ODRADEK_", "COVERAGE_PROCESS")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
        self.process = subprocess.Popen(
            [*within, sys.executable, "-m", "odradek", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.address = ""

    def wait_ready(self) -> str:
        """Wait for the line `ready HOST:PORT`; return the address."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + START_TIMEOUT_S  # noqa: TID251 - a limit for a test that hangs
        while not self.address:
            left = deadline - time.monotonic()  # noqa: TID251 - as above
            assert is_readable(self.process.stdout, left), "the broker did not get ready in time"
            line = self.process.stdout.readline()
            assert line, f"the broker ended: {self.process.stderr.read() if self.process.stderr else ''}"
            if line.startswith("ready "):
                self.address = line.split()[1]
        return self.address

    def kill(self) -> None:
        """End the process without a chance to clean up."""
        self.process.send_signal(signal.SIGKILL)
        self.finish()

    def terminate(self) -> tuple[int, str]:
        """End the process cleanly; return its exit status and what it said on standard error."""
        self.process.send_signal(signal.SIGTERM)
        return self.finish()

    def close(self) -> None:
        """Close what is left of its pipes."""
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def finish(self) -> tuple[int, str]:
        """Wait for the end; return the exit status and standard error."""
        _out, err = self.process.communicate(timeout=START_TIMEOUT_S)
        return self.process.returncode, err


@contextlib.contextmanager
def broker_process(
    data_dir: Path | None, *options: str, is_measured: bool = False, within: Sequence[str] = ()
) -> Iterator[BrokerProcess]:
    """Run a broker that serves; it is ended whatever happens. `within` is a command that becomes the one it is told."""
    with serving(BrokerProcess(data_dir, *options, is_measured=is_measured, within=within)) as broker:
        yield broker


@contextlib.contextmanager
def serving(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    """Wait until a broker serves, and end it whatever happens."""
    try:
        broker.wait_ready()
        yield broker
    finally:
        if broker.process.poll() is None:
            broker.terminate()
        broker.close()


class Client:
    """A blocking connection that exchanges whole messages."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 30)
        self._correlation_id = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, request: Message, version: int) -> None:
        """Send a request."""
        self._correlation_id += 1
        self.socket.sendall(encode_request(request, version, self._correlation_id, "test").join())

    def ask(self, request: Message, version: int) -> Message:
        """Send a request and return the decoded response."""
        self.send(request, version)
        frame = self.receive_frame()
        correlation_id, position = decode_response_header(frame, request.__api_key__, version)
        assert correlation_id == self._correlation_id
        return decode(APIS[request.__api_key__].response, memoryview(frame), version, position=position, exact=True)

    def receive_frame(self) -> bytes:
        """Receive one frame."""
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, size_bytes: int) -> bytes:
        received = b""
        while len(received) < size_bytes:
            chunk = self.socket.recv(size_bytes - len(received))
            assert chunk, "the broker closed the connection"
            received += chunk
        return received


def batch_of(*values: bytes, **options: int) -> bytes:
    """Return a record batch of these values."""
    builder = BatchBuilder(**options)  # type: ignore[arg-type] # tests pass what fits
    for value in values:
        builder.append(None, value, timestamp=1_700_000_000_000)
    return bytes(builder.build())
