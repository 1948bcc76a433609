"""Brokers of a test's own, which it may kill: ours, and Apache Kafka from the folder of peers.

Where `ODRADEK_INTEROP_ADDRESS` names another broker than ours, the mortal one is an Apache Kafka too: what somebody
else runs is not killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from ..broker.broker_process import BrokerProcess
from .clients import MissingClientError, peers_command, skip_or_fail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS: Final = (
    "auto.create.topics.enable=false",
    "log.retention.ms=-1",
    "group.initial.rebalance.delay.ms=0",
    "group.min.session.timeout.ms=1000",
    "group.consumer.min.heartbeat.interval.ms=500",
    "group.consumer.heartbeat.interval.ms=500",
)
"""For every broker of these tests: what is there stays, and groups wait for nothing but their members."""

UNLUCKY_ID: Final = "argument --cluster-id/-t: expected one argument"
"""What Kafka's formatter says of a random id that begins with `-`, as one in 64 does: the next is another."""
UNLUCKY_IDS_MAX: Final = 3

OTHER: Final = "ODRADEK_INTEROP_ADDRESS"


class KafkaProcess:
    """Apache Kafka as a child process of the peers' runner, with the face of `BrokerProcess`."""

    def __init__(self, folder: Path, *options: str, listen: str = "127.0.0.1:0") -> None:
        port = listen.rpartition(":")[2]
        words = ["run", "kafka", "--data-dir", str(folder / "kafka"), *(["--port", port] if int(port) else [])]
        words += [word for option in options for word in ("--set", option)]
        self._command = peers_command(*words)
        self._log = folder / "kafka.log"
        self._runner = self._start()
        self.pids: list[int] = []
        self.address = ""

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as log:
            return subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)

    def wait_ready(self) -> str:
        """Wait until it serves; return the address."""
        line = self._first_line()
        for _ in range(UNLUCKY_IDS_MAX):
            if line or UNLUCKY_ID not in self._log.read_text(errors="replace"):
                break
            self.end()
            self._runner = self._start()
            line = self._first_line()
        assert line, self._log.read_text(errors="replace")[-3000:]
        told = json.loads(line)
        self.pids, self.address = told["pids"], told["bootstrap"]
        return self.address

    def _first_line(self) -> bytes:
        assert self._runner.stdout is not None
        return self._runner.stdout.readline()

    def kill(self) -> None:
        """End Kafka without a chance to clean up."""
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        """End what still runs, cleanly."""
        self._runner.communicate()


@contextlib.contextmanager
def kafka_at(folder: Path, *options: str) -> Iterator[KafkaProcess]:
    """Run Apache Kafka with its data in `kafka/1` of a folder, or skip the test."""
    try:
        kafka = KafkaProcess(folder, *options)
    except MissingClientError as error:
        skip_or_fail(f"Apache Kafka is not on this machine; needs {error}")
        raise
    try:
        kafka.wait_ready()
        yield kafka
    finally:
        kafka.end()


class MortalBroker:
    """A broker that is killed and started again. Life: made (it serves), `kill` and `restart` in turns, `close`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._options = (*SETTINGS, *options)
        self._process = self._started("127.0.0.1:0")
        self.address: Final = self._process.address

    def _started(self, listen: str) -> BrokerProcess | KafkaProcess:
        process: BrokerProcess | KafkaProcess
        if OTHER in os.environ:
            process = KafkaProcess(self._folder, *self._options, listen=listen)
        else:
            process = BrokerProcess(self._folder / "data", *self._options, listen=listen)
        process.wait_ready()
        return process

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self.close()

    def restart(self) -> None:
        """Start it again, where it was."""
        self._process = self._started(self.address)

    def close(self) -> None:
        """End it, whatever has become of it."""
        if isinstance(self._process, KafkaProcess):
            self._process.end()
            return
        if self._process.process.poll() is None:
            _status, said = self._process.terminate()
            sys.stderr.write(said)  # pytest shows it where a test failed
        self._process.close()


@contextlib.contextmanager
def mortal_broker(folder: Path, *options: str) -> Iterator[MortalBroker]:
    """Run a broker that may be killed; it is ended whatever happens."""
    broker = MortalBroker(folder, *options)
    try:
        yield broker
    finally:
        broker.close()
