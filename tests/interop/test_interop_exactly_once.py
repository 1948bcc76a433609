"""Consume, transform, produce, exactly once: every client that has transactions, whoever is killed.

All clients work against one broker at the same time, each from a topic of its own into another. Each is killed in the
middle of its work, goes on in a new process, through two deaths of the broker, and is killed again. What they made is
counted in the end: each record once, in order, and nothing behind them.

| client | how it takes part |
| --- | --- |
| librdkafka, Java 4.3, Java 3.4 | asks where its group stands, reads by itself; offsets go with the group's metadata |
| kafka-python, franz-go | a static member of its group; offsets go with generation, and are asked for stable |
| aiokafka | a static member of its group, its offsets go with the group's name alone |
| kafkajs | a member of its group, which waits out the session of the one that was killed |
| kcat | not at all: its producer has no group, and so no offsets for its transactions; the last test shows it |

franz-go and Java 4.3 speak version 2 of transactions (KIP-890), the others version 1.
"""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

from ..broker.broker_process import Client as Connection
from .brokers import MortalBroker, mortal_broker
from .clients import CLIENTS
from .driver import LIMIT_S, Driver
from .drivers.json_lines import to_text
from .records import PRODUCE, create_topic, end_offset, record
from .transactor import TRANSACTORS, read, reader_at, transactor_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

pytestmark = pytest.mark.interop

VALUES = [str(number) for number in range(500)]


class Job:
    """One client's work, by one process after the other."""

    def __init__(self, client: str, address: str, folder: Path) -> None:
        self.client = client
        self.target = f"target-{client}"
        self.source = f"source-{client}"
        self._command = [*transactor_command(client), address, f"id-{client}"]
        self._log = folder / f"job-{client}.log"
        self.driver: Driver | None = None

    def start(self) -> None:
        """Begin, or go on, in a new process."""
        self.driver = Driver(self.client, self._command, self._log)
        self.driver.begin(
            "transform", group=f"group-{self.client}", source=self.source, target=self.target, end=len(VALUES)
        )

    def close(self) -> None:
        """End the process, if there is one."""
        if self.driver is not None:
            self.driver.kill()
            self.driver.close()
            self.driver = None


def when_at(address: str, jobs: Iterable[Job], offset: int, then: Callable[[Job], None]) -> None:
    """Do something to each job as soon as it has written up to an offset, committed or not."""
    waiting = {job.target: job for job in jobs}
    ends = dict.fromkeys(waiting, 0)
    deadline_s = time.monotonic() + LIMIT_S  # noqa: TID251 - a limit for a client that hangs
    with Connection(address) as connection:
        while waiting:
            ends.update(ends_after(connection, {topic: ends[topic] for topic in waiting}))
            for topic in [topic for topic in waiting if ends[topic] >= offset]:
                then(waiting.pop(topic))
            if time.monotonic() > deadline_s:  # noqa: TID251 - as above
                pytest.fail(
                    f"not at {offset}: {[(job.client, ends[job.target], said(job)) for job in waiting.values()]}"
                )


def ends_after(connection: Connection, known: dict[str, int]) -> dict[str, int]:
    """Return topics' ends once one of them is behind the known one, or after 100 ms."""
    topics = [
        FetchTopic(topic=topic, partitions=[FetchPartition(partition=0, fetch_offset=end, partition_max_bytes=1)])
        for topic, end in known.items()
    ]
    response = connection.ask(FetchRequest(max_wait_ms=100, min_bytes=1, topics=topics), 12)
    assert isinstance(response, FetchResponse)
    return {each.topic: each.partitions[0].high_watermark for each in response.responses}


def said(job: Job) -> str:
    """Return what a job said."""
    return "" if job.driver is None else job.driver.said()


def running(job: Job) -> Driver:
    """Return a job's running process."""
    assert job.driver is not None
    return job.driver


def thaw_and_kill_broker(broker: MortalBroker, jobs: list[Job]) -> None:
    """Let all go on together, and have the broker die as soon as one of them has written more."""
    with Connection(broker.address) as connection:
        ends = {job.target: end_offset(connection, job.target) for job in jobs}
        for job in jobs:
            running(job).thaw()
        ends_after(connection, ends)
    broker.kill()
    broker.restart()


def work(broker: MortalBroker, jobs: list[Job]) -> None:
    """Have all jobs done, by three processes each, while the broker dies twice."""
    for job in jobs:
        job.start()
    when_at(broker.address, jobs, 75, Job.close)
    for job in jobs:
        job.start()
    for offset in (150, 250):
        # Whoever is quicker waits for the others, in the middle of what it does.
        when_at(broker.address, jobs, offset, lambda job: running(job).freeze())
        thaw_and_kill_broker(broker, jobs)
    when_at(broker.address, jobs, 350, Job.close)
    for job in jobs:
        job.start()
    for job in jobs:
        running(job).finish()


def test_no_client_is_left_out() -> None:
    assert {*TRANSACTORS, "kcat"} == set(CLIENTS)


def test_every_client_transforms_records_exactly_once_whoever_is_killed(tmp_path: Path) -> None:
    with mortal_broker(tmp_path) as broker, reader_at("librdkafka", broker.address, tmp_path) as plain:
        jobs = [Job(client, broker.address, tmp_path) for client in TRANSACTORS]
        for job in jobs:
            create_topic(broker.address, job.target)
            create_topic(broker.address, job.source)
            records = [{**record(0, None), "value": to_text(value.encode())} for value in VALUES]
            plain.do("produce", topic=job.source, records=records, **PRODUCE)
        try:
            work(broker, jobs)
        finally:
            for job in jobs:
                job.close()
        with Connection(broker.address) as connection:
            ends = [end_offset(connection, job.target) for job in jobs]
        for job in jobs:
            plain.do("produce", topic=job.target, records=[record(0, b"behind")], **PRODUCE)
        found = {job.client: read(plain, job.target, len(VALUES) + 1) for job in jobs}

    assert found == {client: [*(f"{value}!" for value in VALUES), "behind"] for client in TRANSACTORS}
    assert sum(ends) > len(jobs) * (len(VALUES) + len(VALUES) // 25)  # the markers, and what was aborted


def test_kcat_writes_transactions_but_has_no_offsets_for_them(
    address: str, topic: str, driver_of: Callable[[str], Driver]
) -> None:
    driver_of("kcat")  # skips where there is none
    reader = driver_of("librdkafka")
    create_topic(address, topic)
    command = ["kcat", "-b", address, "-P", "-t", topic, "-p", "0", "-X", f"transactional.id={topic}"]
    subprocess.run(command, input=b"kept\n", check=True)
    with subprocess.Popen(command, stdin=subprocess.PIPE) as killed:
        assert killed.stdin is not None
        killed.stdin.write(b"lost\n" * 50_000)  # it sends nothing before it has read much
        killed.stdin.flush()
        with Connection(address) as connection:
            while ends_after(connection, {topic: 2})[topic] == 2:  # a record and its marker
                assert killed.poll() is None
        killed.kill()
    asked = subprocess.run(
        [command[0], "-G", "group", *command[1:]], input=b"last\n", stderr=subprocess.PIPE, check=True
    )

    assert read(reader, topic, 2) == ["kept", "last"]
    assert read(reader, topic, 3, "read_uncommitted") == ["kept", "lost", "lost"]
    assert b"group.id is a consumer property and will be ignored by this producer" in asked.stderr
