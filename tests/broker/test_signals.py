"""What signals do to `odradek serve`: while it serves, while it starts, and when one comes again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from tests.cli.outputs import full_disk
from tests.waiting import until

from .broker_process import BrokerProcess, Client, batch_of, broker_process
from .test_process import create, fetch, produce

if TYPE_CHECKING:
    from pathlib import Path

CLEAN = ".kafka_cleanshutdown"
AS_FROM_A_TERMINAL = ("env", "--default-signal=INT,TERM,HUP")
"""What was started by `nohup`, or behind `&`, ignores some signals, and so does what it starts."""

SLOW_START = """
import sys
import trio
from odradek.kernel.api import Service, hookimpl

async def run(*, task_status):
    print("never-ready: begun", file=sys.stderr, flush=True)
    await trio.sleep_forever()

@hookimpl
def odradek_services(broker):
    return [Service("never-ready", run)]
"""
"""A plugin with a service that does not get ready: the start goes on until somebody ends it."""


def said_until(broker: BrokerProcess, wanted: str) -> None:
    """Read what a broker says until a line of it holds this."""
    assert broker.process.stderr is not None
    for line in broker.process.stderr:
        if wanted in line:
            return
    pytest.fail(f"it ended and never said {wanted!r}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_a_broker_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with (
        broker_process(tmp_path, is_measured=True, within=AS_FROM_A_TERMINAL) as broker,
        Client(broker.address) as client,
    ):
        create(client, "orders")
        assert produce(client, "orders", batch_of(b"one"))[0] == ErrorCode.NONE

        broker.process.send_signal(number)
        status, said = broker.finish()

    assert status == 0
    assert said.splitlines()[-1] == f"odradek: stopping ({number.name}); again: without waiting for clients"
    assert (tmp_path / CLEAN).exists()


def acknowledged_until_the_end(address: str, partition: int, counts: dict[int, int]) -> None:
    """Produce one record after the other until the broker is gone; count those that were acknowledged."""
    with Client(address) as client:
        try:
            while produce(client, "orders", batch_of(b"one"), partition=partition)[0] == ErrorCode.NONE:
                counts[partition] += 1
        except (OSError, EOFError, AssertionError):
            return


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_under_load_ends_a_broker_cleanly_and_what_it_acknowledged_is_there(
    tmp_path: Path, number: signal.Signals
) -> None:
    partitions = range(4)
    counts = dict.fromkeys(partitions, 0)
    with (
        broker_process(tmp_path, "num.partitions=4", is_measured=True, within=AS_FROM_A_TERMINAL) as broker,
        Client(broker.address) as client,
    ):
        create(client, "orders")
        producers = [
            threading.Thread(target=acknowledged_until_the_end, args=(broker.address, each, counts))
            for each in partitions
        ]
        for producer in producers:
            producer.start()
        until(lambda: min(counts.values()) >= 20)
        broker.process.send_signal(number)
        status, _ = broker.finish()
        for producer in producers:
            producer.join()

    assert status == 0
    assert (tmp_path / CLEAN).exists()
    with broker_process(tmp_path) as broker, Client(broker.address) as client:
        ends = {each: fetch(client, "orders", partition=each)[1] for each in partitions}
    assert all(ends[each] >= counts[each] for each in partitions)


def test_who_cannot_tell_that_it_ends_ends_cleanly_all_the_same(tmp_path: Path) -> None:
    """As by Ctrl-C of `odradek serve 2>&1 | tee log`: tee is gone at once."""
    with broker_process(tmp_path, within=AS_FROM_A_TERMINAL) as broker, Client(broker.address) as client:
        create(client, "orders")
        assert broker.process.stderr is not None
        broker.process.stderr.close()
        broker.process.stderr = None
        wanted = FetchPartition(partition=0, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic="orders", partitions=[wanted])]
        client.send(FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics), 11)
        with Client(broker.address) as other:
            create(other, "orders")  # a round trip: the Fetch has come

        broker.process.send_signal(signal.SIGINT)
        assert client.receive_frame(), "what waits is answered"
        status, _ = broker.finish()

    assert status == 0
    assert (tmp_path / CLEAN).exists()


def test_a_broker_that_cannot_say_that_it_is_ready_serves_all_the_same(tmp_path: Path) -> None:
    """As where its output is a file on a disk that is full."""
    command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with (
        full_disk() as full,
        subprocess.Popen(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment) as process,
    ):
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if " listeners=" in line)
            with Client(line.partition("PLAINTEXT://")[2].split()[0]) as client:
                create(client, "orders")
                process.terminate()
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()

    assert said.splitlines()[-1] == "odradek: stopping (SIGTERM); again: without waiting for clients"
    assert process.returncode == 0


def test_a_hangup_is_ignored_under_nohup(tmp_path: Path) -> None:
    with broker_process(tmp_path, within=["nohup"]) as broker, Client(broker.address) as client:
        broker.process.send_signal(signal.SIGHUP)
        create(client, "orders")
        assert produce(client, "orders", batch_of(b"one"))[0] == ErrorCode.NONE
        status, said = broker.terminate()

    assert status == 0
    assert "SIGHUP" not in said


def test_a_second_signal_ends_it_without_waiting_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    value = bytes(1_000_000)
    with (
        broker_process(tmp_path, "odradek.shutdown.timeout.ms=90000", is_measured=True) as broker,
        Client(broker.address) as client,
    ):
        create(client, "orders")
        for _ in range(20):  # more than what lies between the two sockets
            assert produce(client, "orders", batch_of(value))[0] == ErrorCode.NONE
        wanted = FetchPartition(partition=0, partition_max_bytes=1 << 30)
        client.send(FetchRequest(max_bytes=1 << 30, topics=[FetchTopic(topic="orders", partitions=[wanted])]), 11)
        assert client.socket.recv(1)  # the answer is on its way, and the rest of it is never read
        broker.process.send_signal(signal.SIGINT)
        said_until(broker, "stopping (SIGINT)")
        assert broker.process.poll() is None

        broker.process.send_signal(signal.SIGINT)
        status, said = broker.finish()

    assert status == 0
    assert said == "odradek: stopping at once (SIGINT)\n"
    assert (tmp_path / CLEAN).exists()
    with broker_process(tmp_path) as broker, Client(broker.address) as client:
        assert fetch(client, "orders")[1] == 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_during_the_start_ends_it_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    (tmp_path / "slow_start.py").write_text(SLOW_START)
    config = tmp_path / "odradek.toml"
    config.write_text('[plugins]\nenable = ["*", "slow_start"]\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    broker = BrokerProcess.from_config(tmp_path / "data", config)
    try:
        said_until(broker, "never-ready: begun")
        broker.process.send_signal(number)
        out, said = broker.process.communicate(timeout=60)
    finally:
        broker.process.kill()
        broker.process.wait()
        broker.close()

    assert broker.process.returncode == 0
    assert out == ""
    assert said == f"odradek: stopping at once ({number.name})\n"
    assert (tmp_path / "data" / CLEAN).exists()
