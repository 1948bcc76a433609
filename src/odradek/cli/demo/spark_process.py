"""Shell: the demo's Spark job as a child process that can be killed, its JVM and its Python workers with it."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ConfigError, OdradekError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULE: Final = f"{__package__}.spark_job"
_LOG_TAIL: Final = 2000
_STOP_TIMEOUT_S: Final = 30


def check_installed() -> None:
    """Look for what the job needs.

    Raises:
        ConfigError: Something is missing; the hint says what to install.
    """
    missing = [name for name in ("pyspark", "pyarrow") if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"--spark needs {' and '.join(missing)}", hint="pip install 'pyspark>=4.2' 'pyarrow>=17' numpy"
        )
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin/java").exists()) and shutil.which("java") is None:
        raise ConfigError(
            "--spark needs Java 17 or later, as Spark does", hint="apt-get install openjdk-17-jre-headless"
        )


def quick_python(path: Path) -> Path:
    """Make a program that is this Python, and imports the pyspark that is installed.

    Spark puts its archive of pyspark before it, which has source alone: each of some twenty processes would compile it
    for a second.
    """
    search_path = shlex.quote(os.environ.get("PYTHONPATH", ""))
    path.write_text(f'#!/bin/sh\nPYTHONPATH={search_path} exec {shlex.quote(sys.executable)} "$@"\n')
    path.chmod(0o755)
    return path


class SparkJob:
    """One run of the job. Life: made (it runs), `lines` until they end or `kill`, `close` whatever happens.

    Args:
        arguments: The job's.
        folder: Where it works; its checkpoint lies there too.
    """

    def __init__(self, arguments: list[str], folder: Path) -> None:
        self._log_file = folder / "spark.log"
        python = quick_python(folder / "python")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}
        environment |= {
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env=environment,
                start_new_session=True,  # so that the JVM can be killed with it, and Ctrl-C reaches the demo alone
            )
        self.process_id: Final = self._process.pid
        self._was_killed = False

    def lines(self) -> Iterator[dict[str, Any]]:
        """Iterate over what the job tells, until it ends or was killed.

        Raises:
            OdradekError: It failed; with what it said last.
        """
        assert self._process.stdout is not None
        failure = ""
        for line in self._process.stdout:
            if line.startswith("{"):
                told = json.loads(line)
                if told["kind"] == "failed":
                    failure = told["error"]
                else:
                    yield told
        status = self._process.wait()
        if status and not self._was_killed:
            failure = failure or self._log_file.read_text(errors="replace")[-_LOG_TAIL:].strip()
            raise OdradekError(f"the Spark job ended with status {status}: {failure}")

    def kill_when(self, condition: Callable[[], bool]) -> threading.Thread:
        """Kill the job as soon as something holds; `lines` ends then. Returns the thread that watches."""
        watcher = threading.Thread(target=self._watch, args=(condition,), daemon=True)
        watcher.start()
        return watcher

    def _watch(self, condition: Callable[[], bool]) -> None:
        pause = threading.Event()
        while self._process.poll() is None:
            if condition():
                self.kill()
                return
            pause.wait(0.005)

    def kill(self) -> None:
        """End the job, its JVM and its workers as `kill -9` does."""
        self._was_killed = True
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """End what still runs."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
                self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _signal(self, number: int) -> None:
        """Send a signal to the job's process group, as long as the group is surely the job's."""
        if self._process.poll() is None:
            os.killpg(self.process_id, number)
