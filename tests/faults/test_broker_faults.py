"""A whole broker in this process on files that fail: what its clients are told, and what a loss of power leaves."""

from __future__ import annotations

import errno
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import BrokerError, ClientError, Consumer, Producer
from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.errors import ErrorCode, StorageError
from odradek.testing.faults import FaultyFiles, PowerLoss
from tests.machines import machine_with
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from odradek.kernel.machine.files import Files

EVERY_RECORD_IS_SYNCED = "log.flush.interval.messages=1"
COUNT = 8
CASES = 4
SENDING = {"acks": "all", "retries": 0, "linger.ms": 0}
READING = {"auto.offset.reset": "earliest", "enable.auto.commit": False}


@asynccontextmanager
async def serving(directory: Path, files: Files | None = None) -> AsyncIterator[str]:
    """Run a broker on these files for the time of an `async with`; give its address."""
    options = read_broker_options(
        config=None,
        environment={},
        options=[f"log.dirs={directory}", EVERY_RECORD_IS_SYNCED],
        listen=["127.0.0.1:0"],
    )
    broker = Broker(options, machine=None if files is None else machine_with(files=files))
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(broker.run)
        yield listener.advertised
        broker.stop()


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with trio.fail_after(PATIENCE_S):
            await main()

    trio.run(bounded)


def test_a_client_is_told_of_a_disk_that_fails_under_a_broker(tmp_path: Path) -> None:
    files = FaultyFiles(tmp_path)

    def fail() -> None:
        raise OSError(errno.EIO, "no such sector")

    async def main() -> None:
        async with serving(tmp_path, files) as bootstrap:
            async with Producer({"bootstrap.servers": bootstrap, **SENDING}) as producer:
                await producer.send("t", "before", partition=0)
                files.before_each = fail
                with pytest.raises(BrokerError) as caught:
                    await producer.send("t", "during", partition=0)
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR

    run(main)


async def live(directory: Path, files: FaultyFiles, acknowledged: list[bytes]) -> None:
    """Run a broker and send it records until the power goes, or all are sent; what is acknowledged is noted."""
    async with (
        serving(directory, files) as bootstrap,
        Producer({"bootstrap.servers": bootstrap, **SENDING}) as producer,
    ):
        for number in range(COUNT):
            await producer.send("t", str(number), partition=0)
            acknowledged.append(str(number).encode())


def live_through(directory: Path, files: FaultyFiles, acknowledged: list[bytes]) -> None:
    """As `live`, and that client and broker end by the loss is all right."""
    try:
        run(lambda: live(directory, files, acknowledged))
    except* (ClientError, StorageError):
        pass


def read_all(directory: Path, count: int) -> list[bytes | None]:
    """Start a broker on what is left, and read all that it has, if it should have any."""
    values: list[bytes | None] = []

    async def main() -> None:
        async with (
            serving(directory) as bootstrap,
            Consumer({"bootstrap.servers": bootstrap, **READING}) as consumer,
        ):
            consumer.assign([("t", 0)])
            ends = await consumer.end_offsets([("t", 0)]) if count else {}
            while len(values) < sum(ends.values()):
                values.extend(record.value for record in await consumer.poll(timeout_ms=1_000))

    run(main)
    return values


def operations_of_a_life(directory: Path) -> tuple[int, int]:
    """Return how many operations are asked for, about, until the first record is acknowledged, and until the last."""
    files = FaultyFiles(directory)
    counts: list[int] = []

    class Noted(list[bytes]):
        def append(self, value: bytes) -> None:
            counts.append(files.operations)

    run(lambda: live(directory, files, Noted()))
    return counts[0], counts[-1]


@pytest.mark.parametrize("style", PowerLoss)
def test_what_was_acknowledged_is_there_after_a_loss_of_power(tmp_path: Path, style: PowerLoss) -> None:
    (tmp_path / "whole").mkdir()
    first, last = operations_of_a_life(tmp_path / "whole")

    for case in range(CASES):
        directory, left = tmp_path / f"{case}", tmp_path / f"{case}-left"
        directory.mkdir()
        left.mkdir()
        power_lost_at = first + (last - first) * case // CASES
        files = FaultyFiles(directory, power_lost_at=power_lost_at)
        acknowledged: list[bytes] = []
        live_through(directory, files, acknowledged)
        assert files.is_power_lost
        files.crash()
        files.after_power_loss(left, style, random.Random(case))
        found = read_all(left, len(acknowledged))

        assert found[: len(acknowledged)] == acknowledged, f"power lost at operation {power_lost_at}"
