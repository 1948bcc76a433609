"""Shell: children of this process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import IO, Final

LAST_WORDS_S: Final = 5.0
LAST_WORDS_BYTES: Final = 4096


class SystemProcess:
    """A child of this process."""

    def __init__(self, module: str) -> None:
        # A file, not a pipe: whatever is said there, nobody has to read it for the work to go on.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - `kill` closes it
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    @property
    def process_id(self) -> int:
        """The system's number of it."""
        return self._process.pid

    @property
    def stdin(self) -> IO[bytes]:
        """See `Process.stdin`."""
        assert self._process.stdin is not None, "it was started with a pipe"
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """See `Process.stdout`."""
        assert self._process.stdout is not None, "it was started with a pipe"
        return self._process.stdout

    def last_words(self) -> tuple[int, str]:
        """See `Process.last_words`."""
        try:
            status = self._process.wait(LAST_WORDS_S)
        except subprocess.TimeoutExpired:  # it lives, and what it answers is none
            self._process.kill()
            status = self._process.wait()
        self._said.seek(max(self._said.seek(0, os.SEEK_END) - LAST_WORDS_BYTES, 0))
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return status, lines[-1] if lines else ""

    def kill(self) -> None:
        """See `Process.kill`."""
        self._process.kill()
        self._process.wait()
        self._said.close()
        for pipe in (self.stdin, self.stdout):
            try:
                pipe.close()
            except OSError:  # the rest of what nobody reads any more
                continue


class SystemProcesses:
    """Children of this process."""

    def start(self, module: str) -> SystemProcess:
        """See `Processes.start`."""
        return SystemProcess(module)
