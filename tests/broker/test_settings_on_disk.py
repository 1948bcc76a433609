"""Settings that say what lies on the disk, seen there: while a broker writes, and after its end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.builder import BatchBuilder

from .broker_beside import address_of, create_topic, work_beside
from .broker_process import KEEPS_EVERYTHING, Client, batch_of
from .simulated_broker import NOW_MS, SimulatedBroker, work_in_world
from .test_process import produce

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.broker.parts import BrokerParts

KIB = 1 << 10
MIB = 1 << 20


def stamped(timestamp: int) -> bytes:
    builder = BatchBuilder()
    builder.append(None, b"v", timestamp=timestamp)
    return bytes(builder.build())


async def put(parts: BrokerParts, batches: Iterable[tuple[str, bytes]]) -> None:
    def put_all() -> list[int]:
        with Client(address_of(parts)) as client:
            return [produce(client, topic, batch)[0] for topic, batch in batches]

    assert set(await trio.to_thread.run_sync(put_all)) == {ErrorCode.NONE}


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def space(path: Path) -> int:
    """Return how many bytes the disk has given to a file, as far as the system tells."""
    found = path.stat()
    return found.st_blocks * 512 if hasattr(os, "posix_fallocate") else found.st_size


@pytest.mark.parametrize("is_preallocated", [True, False])
def test_a_segments_space_is_laid_out_when_it_begins_and_trimmed_when_it_ends(
    tmp_path: Path, is_preallocated: bool
) -> None:
    batch = batch_of(os.urandom(MIB // 2))
    topics = ("follows", "decides")

    async def work(parts: BrokerParts) -> None:
        setting = str(is_preallocated).lower()
        await create_topic(parts, "follows")
        # What the broker says of others is the contrary.
        await create_topic(parts, "decides", preallocate=setting, segment_bytes=str(MIB + 1))
        for topic in topics:
            await put(parts, [(topic, batch)])
            (active,) = segments(tmp_path / f"{topic}-0")
            assert (space(active) >= MIB) == is_preallocated
            assert active.stat().st_size == (MIB + (topic == "decides") if is_preallocated else len(batch))
            await put(parts, [(topic, batch)])
            closed, active = segments(tmp_path / f"{topic}-0")
            assert closed.stat().st_size == len(batch)
            assert (space(active) >= MIB) == is_preallocated

    settings = [KEEPS_EVERYTHING, f"log.dirs={tmp_path}", f"log.segment.bytes={MIB}"]
    work_beside([*settings, f"log.preallocate={str(is_preallocated).lower()}"], work)

    sizes = {path.stat().st_size for topic in topics for path in segments(tmp_path / f"{topic}-0")}
    assert sizes == {len(batch)}


def test_a_topic_says_itself_whether_space_is_laid_out(tmp_path: Path) -> None:
    async def work(parts: BrokerParts) -> None:
        await create_topic(parts, "small", preallocate="false")
        await create_topic(parts, "large")
        await put(parts, [(topic, batch_of(b"v")) for topic in ("small", "large")])
        small, large = (segments(tmp_path / f"{name}-0")[0].stat().st_size for name in ("small", "large"))
        assert (small < KIB, large) == (True, MIB)

    work_beside([f"log.dirs={tmp_path}", f"log.segment.bytes={MIB}", "log.preallocate=true"], work)


def test_a_full_index_ends_its_segment(tmp_path: Path) -> None:
    async def work(parts: BrokerParts) -> None:
        await create_topic(parts, "follows", index_interval_bytes="0")
        await create_topic(parts, "decides", index_interval_bytes="0", segment_index_bytes="60")
        await put(parts, [(topic, batch_of(b"v")) for topic in ("follows", "decides") for _ in range(9)])
        # 24 bytes hold two entries of the time index, one of which is kept for the segment's end; 60 bytes hold seven
        # entries of the offset index. The first batch of a segment gets none.
        assert [int(path.stem) for path in segments(tmp_path / "follows-0")] == [0, 2, 4, 6, 8]
        closed, active = segments(tmp_path / "decides-0")
        assert int(active.stem) == 8
        assert [path.with_suffix(".index").stat().st_size for path in (closed, active)] == [56, 56]

    work_beside([KEEPS_EVERYTHING, f"log.dirs={tmp_path}", "log.index.size.max.bytes=24"], work)


def test_jitter_ends_a_segment_before_its_age_does() -> None:
    """It is drawn anew for each log. All but one of a billion draws end the segments of this test."""

    async def work(broker: SimulatedBroker) -> None:
        age_ms = 1_000_000_000
        await create_topic(broker.parts, "follows", segment_ms=str(age_ms))
        await create_topic(broker.parts, "decides", segment_ms=str(age_ms), segment_jitter_ms="0")
        for topic in ("follows", "decides"):
            for timestamp in (NOW_MS - 2 * age_ms, NOW_MS - age_ms):
                await broker.put(topic, stamped(timestamp))
        assert len(broker.names("follows-0", "*.log")) == 2
        assert len(broker.names("decides-0", "*.log")) == 1

    work_in_world({"log.retention.ms": "-1", "log.roll.jitter.ms": "999999999"}, work)


def test_what_sets_nothing_here_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = ("num.recovery.threads.per.data.dir=4", "log.flush.start.offset.checkpoint.interval.ms=5")
    read_broker_options(config=None, environment={}, options=options, data_dir=tmp_path)

    assert [record.getMessage().split(": ", 1)[1].split(";")[0] for record in caplog.records] == [
        "num.recovery.threads.per.data.dir sizes thread pools of the JVM",
        "log.flush.start.offset.checkpoint.interval.ms is not needed: log start offsets are kept as often as "
        "replica.high.watermark.checkpoint.interval.ms says",
    ]


def test_the_directory_of_the_environment_is_used_though_the_file_has_several(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}\n")
    environment = {"ODRADEK_LOG_DIR": str(tmp_path / "c")}
    broker = Broker(read_broker_options(config=file, environment=environment, options=(), listen=["127.0.0.1:0"]))

    async def serve_and_stop() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(broker.run)
            broker.stop()

    trio.run(serve_and_stop)

    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["c"]
