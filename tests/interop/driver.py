"""A client in a process of its own, asked by JSON lines: see `drivers/json_lines.py` for the words."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.waiting import is_readable

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parents[2]
LIMIT_S: Final = 60.0


def client_environment() -> dict[str, str]:
    """Return the environment of a client: ours, without what has coverage measure it too."""
    return {key: value for key, value in os.environ.items() if not key.startswith("COVERAGE_")}


class ClientError(Exception):
    """The client reported an error; `code` is Kafka's, or -1 where the client gave none."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Driver:
    """One client's program; it lives until `close`, and does one operation at a time."""

    def __init__(self, name: str, command: Sequence[str], log_path: Path) -> None:
        self.name = name
        self._log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=client_environment(), cwd=ROOT
            )
        self._buffer = b""

    def do(self, operation: str, **arguments: object) -> Any:
        """Carry out an operation.

        Raises:
            ClientError: the client failed with an error of its own.
            AssertionError: the program ended, or took longer than `LIMIT_S`.
        """
        self.begin(operation, **arguments)
        return self.finish()

    def begin(self, operation: str, **arguments: object) -> None:
        """Start an operation, without waiting for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": operation, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def finish(self) -> Any:
        """Wait for the answer of what was begun; raises like `do`."""
        answer = self._next_line()
        if "error" in answer:
            raise ClientError(answer["error"]["code"], answer["error"]["text"])
        return answer["result"]

    def wait_positioned(self) -> None:
        """Wait until the consumer that was begun stands where it shall read."""
        answer = self._next_line()

        assert answer == {"event": "positioned"}

    def kill(self) -> None:
        """End the program without a chance to clean up."""
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """Stop the program where it is, until `thaw`."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the program go on."""
        self._process.send_signal(signal.SIGCONT)

    def said(self) -> str:
        """Return the end of what the program said on standard error."""
        return self._log_path.read_text(errors="replace")[-3000:]

    def close(self) -> None:
        """End the program."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _next_line(self) -> Any:
        assert self._process.stdout is not None
        deadline = time.monotonic() + LIMIT_S  # noqa: TID251 - a limit for a client that hangs
        chunks = [self._buffer]
        while b"\n" not in chunks[-1]:
            left = deadline - time.monotonic()  # noqa: TID251 - as above
            assert is_readable(self._process.stdout, left), f"{self.name} took too long; it said: {self.said()}"
            chunk = self._process.stdout.read1(1 << 20)  # type: ignore[attr-defined] # a BufferedReader
            assert chunk, f"{self.name} ended; it said: {self.said()}"
            chunks.append(chunk)
        line, _, self._buffer = b"".join(chunks).partition(b"\n")
        return json.loads(line)
