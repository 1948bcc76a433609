"""Shell: the demo's brokers, each in a process of its own, so that it can be killed like any other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from odradek.kernel.errors import OdradekError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

START_TIMEOUT_S: Final = 20
STOP_TIMEOUT_S: Final = 20
_LOG_TAIL: Final = 2000


class BrokerProcess:
    """`odradek serve` on a free port, unless the settings say where.

    Life: `start`, or `launch` and `wait_until_ready`, then `stop` or `kill`, then perhaps `start` again.
    """

    def __init__(self, data_dir: Path, log_file: Path, settings: Mapping[str, str]) -> None:
        self._data_dir = data_dir
        self._log_file = log_file
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self._is_told_to_end = False

    @property
    def process_id(self) -> int:
        """Of the running process; 0 when there is none."""
        return self._process.pid if self._process is not None else 0

    def start(self) -> str:
        """Start the broker and return its `HOST:PORT` once it serves.

        Raises:
            OdradekError: It ended, or was not ready in time; with what it said last.
        """
        self.launch()
        return self.wait_until_ready()

    def launch(self) -> None:
        """Start the broker, and do not wait for it."""
        assert self._process is None, "it runs already"
        command = [sys.executable, "-m", "odradek", "serve", "--data-dir", str(self._data_dir)]
        for key, value in {"listeners": "PLAINTEXT://127.0.0.1:0", **self._settings}.items():
            command += ["--set", f"{key}={value}"]
        # The user's own settings are for the user's own broker.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        self._is_told_to_end = False

    def wait_until_ready(self) -> str:
        """Return the `HOST:PORT` of a broker that was launched, once it serves.

        Raises:
            OdradekError: It ended, or was not ready in time; with what it said last.
        """
        said: list[str] = []
        reader = threading.Thread(target=self._read_line, args=(said,), daemon=True)
        reader.start()
        reader.join(START_TIMEOUT_S)
        word, _, address = (said[0] if said else "").strip().partition(" ")
        if word != "ready":
            self.kill()
            tail = self._log_file.read_text(errors="replace")[-_LOG_TAIL:].strip()
            raise OdradekError(f"the demo's broker did not start: {tail or 'it said nothing'}")
        return address

    def _read_line(self, said: list[str]) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        said.append(self._process.stdout.readline())

    def tell_to_end(self) -> None:
        """Ask the broker to end cleanly, and do not wait for it: `stop` does."""
        assert self._process is not None, "it runs"
        self._is_told_to_end = True
        self._process.terminate()

    def kill(self) -> None:
        """End the process as `kill -9` does: it can finish nothing."""
        self._end(is_clean=False)

    def stop(self) -> None:
        """Ask the broker to end cleanly, if it runs; killed if it takes too long."""
        self._end(is_clean=True)

    def _end(self, *, is_clean: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if is_clean:
            if not self._is_told_to_end:  # a second signal would not let it wait for its clients
                process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                is_clean = False
        if not is_clean:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()
