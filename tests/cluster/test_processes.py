"""`odradek serve --brokers 3`: processes on sockets, with a real client and with our commands."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.waiting import is_readable, until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
PATIENCE_S = 120.0


class Served:
    """Three brokers of one command."""

    def __init__(self, data_dir: Path, *settings: str, within: Sequence[str] = ()) -> None:
        command = ["serve", "--brokers", "3", "--listen", "127.0.0.1:0", "--data-dir", str(data_dir)]
        for setting in settings:
            command += ["--set", setting]
        self.process = subprocess.Popen(
            [*within, sys.executable, "-m", "odradek", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # lines that come together are not hidden in a buffer from who waits for the second one
        )
        self.addresses = [self._ready() for _ in range(3)]

    def _ready(self) -> str:
        assert self.process.stdout is not None
        assert is_readable(self.process.stdout, PATIENCE_S), "a broker did not get ready in time"
        line = self.process.stdout.readline().decode()
        assert line.startswith("ready "), line
        return line.split()[1]

    def children(self) -> list[int]:
        return [int(pid) for pid in subprocess.check_output(["pgrep", "-P", str(self.process.pid)], text=True).split()]

    def describe(self) -> dict[str, Any]:
        command = ["cluster", "describe", "--json", "-b", ",".join(self.addresses)]
        done = subprocess.run(
            [sys.executable, "-m", "odradek", *command], capture_output=True, text=True, check=True, timeout=PATIENCE_S
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def terminate(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        _out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, err.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def create(address: str, topic: str, replication_factor: int) -> None:
    client = AdminClient({"bootstrap.servers": address})
    (future,) = client.create_topics([NewTopic(topic, 3, replication_factor)]).values()
    future.result(timeout=60)


def test_three_brokers_are_a_cluster_for_a_real_client(tmp_path: Path) -> None:
    with Served(tmp_path) as brokers:
        for number, address in enumerate(brokers.addresses, start=1):
            create(address, f"topic-{number}", 3)
        create(brokers.addresses[2], "alone", 1)
        metadata = AdminClient({"bootstrap.servers": brokers.addresses[1]}).list_topics(timeout=60)
        producer = Producer({"bootstrap.servers": brokers.addresses[0]})
        for number in range(30):
            producer.produce("alone", str(number), partition=number % 3)
        assert producer.flush(60) == 0
        consumer = Consumer({"bootstrap.servers": brokers.addresses[1], "group.id": "g", "enable.auto.commit": False})
        consumer.assign([TopicPartition("alone", number, 0) for number in range(3)])
        values: list[int] = []
        while len(values) < 30:
            values += [int(message.value() or b"") for message in consumer.consume(30, 60)]
        consumer.close()
        status, err = brokers.terminate()

    assert {broker.id for broker in metadata.brokers.values()} == {1, 2, 3}
    assert {f"topic-{number}" for number in (1, 2, 3)} <= metadata.topics.keys()
    assert sorted(values) == list(range(30))
    assert {leader.leader for leader in metadata.topics["alone"].partitions.values()} == {1, 2, 3}
    assert status == 0, err


def test_the_cluster_is_described_and_one_that_is_killed_is_fenced_and_started_again(tmp_path: Path) -> None:
    with Served(tmp_path) as brokers:
        whole = brokers.describe()
        third = max(brokers.children())
        os.kill(third, signal.SIGSTOP)  # so that nothing is started again before it was seen
        os.kill(third, signal.SIGKILL)
        until(lambda: len(brokers.children()) == 3 and third not in brokers.children())
        until(lambda: not any(broker["fenced"] for broker in brokers.describe()["brokers"]))
        status, err = brokers.terminate()

    assert whole["controller"] in {1, 2, 3}
    assert [broker["id"] for broker in whole["brokers"]] == [1, 2, 3]
    assert {f"{broker['host']}:{broker['port']}" for broker in whole["brokers"]} == {*brokers.addresses}
    assert "broker 3 ended by SIGKILL; it is started again" in err
    assert "broker 3 is dead, and fenced" in err
    assert status == 0, err


def test_brokers_end_when_the_process_that_started_them_is_gone(tmp_path: Path) -> None:
    with Served(tmp_path) as brokers:
        children = brokers.children()
        brokers.process.kill()
        until(lambda: not any(is_alive(pid) for pid in children))
        _out, err = brokers.process.communicate(timeout=PATIENCE_S)

    assert len(children) == 3
    assert err.decode().count("the process that started this broker is gone") == 3


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_broker_joins_by_the_address_of_another_and_keeps_its_id_over_a_restart(tmp_path: Path) -> None:
    with Served(tmp_path / "three") as brokers:
        found = [joined(brokers.addresses[1], tmp_path / "later", brokers) for _ in range(2)]
        status, err = brokers.terminate()

    assert found == [[1, 2, 3, 1001]] * 2
    assert status == 0, err


def joined(address: str, data_dir: Path, brokers: Served) -> list[int]:
    """Run a broker that joins, until it serves and the others know it; return who is there and not fenced."""
    command = ["serve", "--join", address, "--listen", "127.0.0.1:0", "--data-dir", str(data_dir)]
    process = subprocess.Popen([sys.executable, "-m", "odradek", *command], stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    with process:
        assert is_readable(process.stdout, PATIENCE_S), "it did not get ready in time"
        found = [broker["id"] for broker in brokers.describe()["brokers"] if not broker["fenced"]]
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    return found
