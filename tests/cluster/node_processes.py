"""Brokers of a cluster, each a process that a test starts by itself."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath

import attrs

from tests.packaging.building import plain_environment
from tests.waiting import is_readable

from .test_processes import PATIENCE_S


@attrs.frozen
class Build:
    """What a broker is started from.

    Attributes:
        python: The interpreter that has it.
        settings: What it is held to.
    """

    python: Path
    settings: Mapping[str, str] = attrs.field(factory=dict)


THIS = Build(Path(sys.executable))
"""The one that is tested."""


class Node:
    """One broker, of one build or another. Life: `start`, then `stop` or `kill`, as often as you like."""

    def __init__(self, options: Sequence[str], data_dir: PurePath, *, where: Sequence[str] = ()) -> None:
        """Make one that is not started.

        Args:
            options: As `--set` has them.
            data_dir: Its own; `log.dirs` among the options says more.
            where: The command that starts it somewhere else, as in a namespace of the network.
        """
        self._options = options
        self._data_dir = data_dir
        self._where = where
        self._log = Path(f"{data_dir}.log")
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def launch(self, build: Build) -> subprocess.Popen[bytes]:
        command = [*self._where, str(build.python), "-m", "odradek", "serve"]
        if not any(option.startswith("log.dirs=") for option in self._options):
            command += ["--data-dir", str(self._data_dir)]
        for option in (*self._options, *(f"{key}={value}" for key, value in build.settings.items())):
            command += ["--set", option]
        with self._log.open("ab") as log:  # a pipe that nobody reads would hold it up
            self._process = subprocess.Popen(
                command,
                cwd=self._data_dir.parent,
                env=plain_environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
            )
        return self._process

    @property
    def said(self) -> str:
        """All that it has logged, in all its lives."""
        return self._log.read_text()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait_ready(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        assert is_readable(self._process.stdout, PATIENCE_S), "a broker did not get ready in time"
        line = self._process.stdout.readline().decode()
        assert line.startswith("ready "), self.said
        self.address = line.split()[1]

    def start(self, build: Build) -> None:
        self.launch(build)
        self.wait_ready()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, self.said

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def alive(nodes: Mapping[int, Node], builds: Mapping[int, Build]) -> Iterator[None]:
    """Start brokers, by their numbers, beside each other, and kill what is left of them in the end.

    What fails within says what they have said.
    """
    try:
        for number, node in nodes.items():
            node.launch(builds[number])
        for node in nodes.values():
            node.wait_ready()
        yield
    except BaseException as error:
        for number, node in nodes.items():
            error.add_note(f"broker {number} {'runs' if node.is_running else 'has ended'}; it said:\n{node.said}")
        raise
    finally:
        for node in nodes.values():
            node.kill()
