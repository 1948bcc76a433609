"""A test's broker is stopped, killed, paused and started again: what is on the disk, and what clients meet."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.kernel.machine.files import OsFiles
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.testing import broker_thread
from odradek.testing.broker_thread import BrokerThread
from odradek.testing.faults import FaultyFiles
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.waiting import PATIENCE_S, is_readable

from ..broker.broker_process import Client, batch_of
from ..broker.test_process import create, fetch, produce

CLEAN_MARK = ".kafka_cleanshutdown"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with running_broker({"log.retention.ms": -1}, data_dir=tmp_path / "data") as running:
        with Client(running.bootstrap) as client:
            create(client, "kept")
            produce(client, "kept", batch_of(b"one", b"two"))
        yield running


def files_below(folder: Path) -> dict[str, str]:
    """Return what lies below a folder: names, and what is in the files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a directory"
        found[str(path.relative_to(folder))] = content
    return found


def values(broker: RunningBroker) -> list[bytes]:
    with Client(broker.bootstrap) as client:
        return fetch(client, "kept")[0]


def test_a_broker_that_was_stopped_starts_on_its_port_with_its_data(broker: RunningBroker) -> None:
    address = broker.bootstrap
    broker.stop()
    broker.stop()

    assert CLEAN_MARK in files_below(broker.data_dir)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((broker.host, broker.port))

    broker.start()
    broker.start()
    assert broker.bootstrap == address
    assert values(broker) == [b"one", b"two"]


def test_while_it_is_stopped_nobody_gets_its_port(broker: RunningBroker) -> None:
    broker.stop()

    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((broker.host, broker.port))


def test_a_kill_leaves_the_disk_as_it_was_and_what_was_acknowledged_is_recovered(broker: RunningBroker) -> None:
    broker.pause()
    before = files_below(broker.data_dir)
    broker.kill()

    assert files_below(broker.data_dir) == before
    assert CLEAN_MARK not in before

    broker.start()
    assert values(broker) == [b"one", b"two"]
    with Client(broker.bootstrap) as client:
        assert produce(client, "kept", batch_of(b"three")) == (0, 2)


def test_a_kill_answers_nobody(broker: RunningBroker) -> None:
    with Client(broker.bootstrap) as client:
        broker.pause()
        client.send(MetadataRequest(topics=[]), 9)
        broker.kill()

        assert is_readable(client.socket, 30)
        with pytest.raises((AssertionError, ConnectionError)):
            client.receive_frame()


def test_it_may_be_killed_while_it_serves_again_and_again(broker: RunningBroker) -> None:
    for number in range(3):
        with Client(broker.bootstrap) as client:
            produce(client, "kept", batch_of(b"%d" % number))
            broker.kill()
        broker.start()

    assert values(broker) == [b"one", b"two", b"0", b"1", b"2"]


def test_a_killed_broker_says_nothing_and_its_thread_ends(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(broker.bootstrap) as client:
        produce(client, "kept", batch_of(b"three"))
        broker.kill()

    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_a_paused_broker_takes_connections_and_answers_when_it_goes_on(broker: RunningBroker) -> None:
    broker.pause()
    broker.pause()
    with Client(broker.bootstrap) as client:
        client.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            create(client, "kept")
        broker.resume()
        client.socket.settimeout(30)

        assert client.receive_frame()


def test_a_paused_broker_can_be_stopped(broker: RunningBroker) -> None:
    broker.pause()
    broker.stop()

    assert CLEAN_MARK in files_below(broker.data_dir)


def test_the_end_of_a_test_ends_a_broker_that_it_left_paused_stopped_or_killed() -> None:
    for leave in (RunningBroker.pause, RunningBroker.stop, RunningBroker.kill):
        with running_broker() as broker:
            leave(broker)

        assert not broker.data_dir.exists()


def test_a_broker_whose_start_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()
    end = BrokerThread._give_up

    def give_up(thread: BrokerThread) -> None:
        given_up.set()
        end(thread)

    class Slow(OsFiles):
        def open(self, path: Path, flags: int) -> int:
            given_up.wait(PATIENCE_S)
            return super().open(path, flags)

    before = {*threading.enumerate()}  # fixtures of other tests may have brokers of theirs
    monkeypatch.setattr(broker_thread, "START_TIMEOUT_S", 0.2)
    monkeypatch.setattr(BrokerThread, "_give_up", give_up)
    with pytest.raises(TimeoutError, match="did not start within"), running_broker(data_dir=tmp_path, files=Slow()):
        pass
    assert not any(each.name == "odradek broker" for each in threading.enumerate() if each not in before)

    monkeypatch.undo()
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "kept")


def test_what_cannot_be_done_is_said(broker: RunningBroker, tmp_path: Path) -> None:
    broker.stop()
    for what in (broker.pause, broker.resume, broker.kill, broker.drop_connections):
        with pytest.raises(ValueError, match=f"{what.__name__}: the broker is stopped; start it first"):
            what()

    (tmp_path / "faulty").mkdir()
    files = FaultyFiles(tmp_path / "faulty")
    with running_broker(data_dir=tmp_path / "faulty", files=files) as other:
        with pytest.raises(ValueError, match="files of the test's own"):
            other.kill()
        other.stop()
        other.start()
        other.check()
