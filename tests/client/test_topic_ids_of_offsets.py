"""Commits name topics by their ids where the broker knows ids, and fetch sessions end with their consumer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.client import Admin, Consumer, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.peers.connection import Connection
from odradek.kernel.wire.messages.api_08_offset_commit import OffsetCommitRequest
from odradek.kernel.wire.messages.api_09_offset_fetch import OffsetFetchRequest
from tests.waiting import PATIENCE_S

from .group_cluster import FAST, QUICK

WHERE = TopicPartition("t", 0)


@asynccontextmanager
async def serving(data_dir: Path) -> AsyncIterator[Broker]:
    """Run a broker with a topic in this process."""
    settings = [f"{key}={value}" for key, value in QUICK.items()]
    broker = Broker(
        read_broker_options(
            config=None, environment={}, options=settings, listen=["127.0.0.1:0"], data_dir=data_dir / "data"
        )
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        async with Admin(address(broker)) as admin:
            await admin.create_topic(NewTopic("t", 1))
        yield broker
        broker.stop()


def address(broker: Broker) -> dict[str, object]:
    return {"bootstrap.servers": f"127.0.0.1:{broker.listeners[0].port}"}


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        with trio.fail_after(PATIENCE_S):
            await test()

    trio.run(limited)


@pytest.mark.parametrize("newest", [10, 9])
def test_offsets_are_committed_by_id_where_the_broker_knows_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest: int
) -> None:
    """The newest version is what a broker of Kafka 4.1 or an older one offers."""
    spoken: set[tuple[type, int]] = set()
    version_of = Connection.version_of

    def watched(connection: Connection, kind: type[Any], version_max: int | None = None) -> int:
        version = version_of(connection, kind, version_max)
        if kind in (OffsetCommitRequest, OffsetFetchRequest):
            version = min(version, newest)
            spoken.add((kind, version))
        return version

    monkeypatch.setattr(Connection, "version_of", watched)

    async def test() -> None:
        async with serving(tmp_path) as broker:
            settings = {**address(broker), **FAST, "group.id": "g"}
            async with Consumer(settings) as consumer:
                consumer.subscribe(["t"])
                while not consumer.assignment:
                    await consumer.poll(timeout_ms=50)
                await consumer.commit({WHERE: OffsetAndMetadata(7, "seven")})
                found = (await consumer.committed([WHERE]))[WHERE]
                assert found is not None
                assert (found.offset, found.metadata) == (7, "seven")

    run(test)

    assert spoken == {(OffsetCommitRequest, newest), (OffsetFetchRequest, newest)}


def test_a_topic_that_was_made_anew_is_found_by_its_new_id(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            serving(tmp_path) as broker,
            Admin(address(broker)) as admin,
            Consumer({**address(broker), **FAST, "group.id": "g", "allow.auto.create.topics": "false"}) as consumer,
        ):
            consumer.assign([WHERE])
            await consumer.commit({WHERE: 3})
            await admin.delete_topic("t")
            await admin.create_topic(NewTopic("t", 1))
            assert (await consumer.committed([WHERE]))[WHERE] is None
            await consumer.commit({WHERE: 1})
            assert (await consumer.committed([WHERE]))[WHERE] == OffsetAndMetadata(1)

    run(test)


def test_a_consumer_that_is_closed_leaves_no_fetch_session(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as broker:
            sessions = broker.parts.requests.sessions
            async with Producer(address(broker)) as producer:
                await producer.enqueue("t", "value")
            async with Consumer({**address(broker), **FAST, "fetch.max.wait.ms": 60_000}) as consumer:
                consumer.assign([WHERE])
                assert len(await consumer.poll()) == 1
                assert await consumer.poll(timeout_ms=20) == []
                assert sessions.statistics().sessions_count == 1
                before_s = trio.current_time()  # and a fetch is under way, which would take a minute
            assert sessions.statistics().sessions_count == 0
            assert trio.current_time() < before_s + 5

    run(test)
