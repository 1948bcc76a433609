"""How often a broker does its upkeep: on a clock that stands still unless the test moves it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio
import trio.testing

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)

from ..waiting import until
from .broker_beside import broker_with
from .broker_process import Client, batch_of
from .test_process import create, produce

if TYPE_CHECKING:
    from collections.abc import Callable

INTERVALS = {
    "replica.high.watermark.checkpoint.interval.ms": 1_000,
    "log.flush.offset.checkpoint.interval.ms": 2_000,
    "producer.id.expiration.check.interval.ms": 3_000,
}


def test_a_broker_keeps_and_forgets_as_often_as_it_was_told(tmp_path: Path) -> None:
    settings = [f"{key}={value}" for key, value in INTERVALS.items()]
    clock = trio.testing.MockClock()

    def has_high_watermark() -> bool:
        path = tmp_path / "replication-offset-checkpoint"
        return path.exists() and "t 0 1" in path.read_text().splitlines()

    def has_snapshot() -> bool:
        return any((tmp_path / "t-0").glob("*.snapshot"))

    def is_forgotten(client: Client) -> bool:
        asked = TopicRequest(name="t", partition_indexes=[0])
        response = client.ask(DescribeProducersRequest(topics=[asked]), 0)
        assert isinstance(response, DescribeProducersResponse)
        return not response.topics[0].partitions[0].active_producers

    def work(client: Client) -> None:
        create(client, "t")
        batch = batch_of(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
        assert produce(client, "t", batch)[0] == ErrorCode.NONE

    def look(client: Client, expected: int) -> None:
        """Wait until so many of the three are done; see that no other is."""
        looks: list[Callable[[], bool]] = [has_high_watermark, has_snapshot, partial(is_forgotten, client)]
        if expected:
            until(looks[expected - 1])
        assert [each() for each in looks] == [True] * expected + [False] * (3 - expected)

    async def main() -> None:
        broker = broker_with([*settings, f"log.dirs={tmp_path}", "producer.id.expiration.ms=1"])
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(broker.run)
            with Client(listener.advertised) as client:
                await trio.to_thread.run_sync(work, client)
                for done in range(4):
                    await trio.to_thread.run_sync(look, client, done)
                    clock.jump(1.0)
            broker.stop()

    trio.run(main, clock=clock)
