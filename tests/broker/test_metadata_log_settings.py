"""How large, and how old, the metadata log's segments get, and how often it is snapshotted: by the files it keeps."""

from __future__ import annotations

import itertools
from pathlib import Path

import trio
import trio.testing

from odradek.kernel.errors import ErrorCode
from odradek.kernel.testing.running_broker import running_broker
from odradek.kernel.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

from ..waiting import until
from .broker_beside import broker_with
from .broker_process import Client
from .test_live_config import SET, TOPIC
from .test_request_limits import create_topic

TOPICS_COUNT = 34


def files(data_dir: Path, kind: str) -> list[str]:
    """Return the names of the metadata log's files of a kind."""
    return sorted(path.name for path in (data_dir / "__cluster_metadata-0").glob(f"*.{kind}"))


def set_long_texts(client: Client, number: int) -> None:
    """Have a megabyte appended to the metadata log: 32 kB a topic, as the value of a key that acts on nothing here."""
    text = f"{number}:{1:032000}"
    config = AlterableConfig(name="leader.replication.throttled.replicas", config_operation=SET, value=text)
    resources = [
        AlterConfigsResource(resource_type=TOPIC, resource_name=f"t{each}", configs=[config])
        for each in range(TOPICS_COUNT)
    ]
    response = client.ask(IncrementalAlterConfigsRequest(resources=resources), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert {each.error_code for each in response.responses} == {ErrorCode.NONE}


def test_a_segment_of_the_metadata_log_ends_by_its_size(tmp_path: Path) -> None:
    settings = {"metadata.log.segment.bytes": 8 << 20}
    with running_broker(settings, data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        for number in range(TOPICS_COUNT):
            create_topic(client, f"t{number}")
        for number in range(8):
            assert len(files(tmp_path, "log")) == 1
            set_long_texts(client, number)

        assert len(files(tmp_path, "log")) == 2


def test_a_segment_of_the_metadata_log_ends_by_its_age(tmp_path: Path) -> None:
    numbers = itertools.count()
    with (
        running_broker({"metadata.log.segment.ms": 1}, data_dir=tmp_path) as broker,
        Client(broker.bootstrap) as client,
    ):

        def has_ended() -> bool:
            create_topic(client, f"t{next(numbers)}")
            return len(files(tmp_path, "log")) > 1

        until(has_ended, broker.check)


def test_the_metadata_is_snapshotted_when_so_much_of_it_changed(tmp_path: Path) -> None:
    settings = {"metadata.log.max.record.bytes.between.snapshots": 1000}
    with running_broker(settings, data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert files(tmp_path, "checkpoint") == []
        create_topic(client, "t", partitions=50)

        until(lambda: files(tmp_path, "checkpoint") != [], broker.check)


def test_the_metadata_is_snapshotted_after_so_much_time(tmp_path: Path) -> None:
    clock = trio.testing.MockClock()

    def look(client: Client) -> None:
        create_topic(client, "before")
        assert files(tmp_path, "checkpoint") == []
        clock.jump(2.0)
        create_topic(client, "after")
        until(lambda: files(tmp_path, "checkpoint") != [])

    async def main() -> None:
        broker = broker_with([f"log.dirs={tmp_path}", "metadata.log.max.snapshot.interval.ms=2000"])
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(broker.run)
            with Client(listener.advertised) as client:
                await trio.to_thread.run_sync(look, client)
            broker.stop()

    trio.run(main, clock=clock)
