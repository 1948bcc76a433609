"""What changed is seen once by each look, in order, and by nobody before it changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.partitions.changed_replicas import ChangedReplicas, Look
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.partitions.replicas import Replicas
from odradek.kernel.partitions.upkeep import Upkeep

from .hosted import Hosted
from .test_upkeep import upkeep_of

PARTITIONS = 3


@pytest.fixture
def hosted(tmp_path: Path) -> Hosted:
    hosted = Hosted(tmp_path)
    hosted.open("t", PARTITIONS)
    return hosted


def looked_at(hosted: Hosted) -> ChangedReplicas:
    """Return what changed, after everybody has seen that the replicas were opened."""
    changed = hosted.replicas.changed
    for look in Look:
        changed.take(look)
    return changed


def test_each_look_sees_a_change_once(hosted: Hosted) -> None:
    first, second, third = hosted.replicas
    changed = looked_at(hosted)
    changed.note([second])
    changed.note([first, second])

    assert changed.take(Look.PRODUCERS) == [second, first]
    assert changed.take(Look.PRODUCERS) == []
    changed.note([third])
    assert changed.take(Look.HIGH_WATERMARK) == [second, first, third]
    assert changed.take(Look.PRODUCERS) == [third]


def test_what_a_look_wants_to_see_again_it_sees_again_and_no_other_does(hosted: Hosted) -> None:
    first, second, _ = hosted.replicas
    changed = looked_at(hosted)
    changed.note([first, second])
    for look in Look:
        changed.take(look)
    changed.again(Look.TIMED_FLUSH, second)

    assert {look: changed.take(look) for look in Look if look is not Look.TIMED_FLUSH} == {
        look: [] for look in Look if look is not Look.TIMED_FLUSH
    }
    assert changed.take(Look.TIMED_FLUSH) == [second]


def work_once(hosted: Hosted, upkeep: Upkeep) -> None:
    async def main() -> None:
        for work in (
            upkeep.checkpoint,
            upkeep.keep_producers,
            upkeep.keep_rolled,
            upkeep.give_up_segments,
            upkeep.flush_closed_segments,
            upkeep.flush_by_time,
        ):
            await work()

    trio.run(main)


def test_upkeep_looks_at_what_was_written_and_at_nothing_else(hosted: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep, _flushes = upkeep_of(hosted)
    seen: list[int] = []
    real = Replicas.is_served

    def is_served(self: Replicas, replica: Replica) -> bool:
        seen.append(replica.partition.partition)
        return real(self, replica)

    monkeypatch.setattr(Replicas, "is_served", is_served)
    work_once(hosted, upkeep)
    assert sorted(set(seen)) == list(range(PARTITIONS)), "all that was opened"
    seen.clear()
    work_once(hosted, upkeep)
    assert seen == []
    hosted.produce("t", 0, partition=1)
    work_once(hosted, upkeep)
    assert set(seen) == {1}


def test_a_high_watermark_that_is_behind_is_kept_when_it_has_risen(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    hosted.open("t", log_config=LogConfig(flush_messages=1))
    replica = hosted.produce("t", 0)
    assert replica.high_watermark == 0, "it waits for its flush"
    upkeep, _flushes = upkeep_of(hosted)
    trio.run(upkeep.checkpoint)
    replica.log.flush()
    hosted.writes.note_flushed(replica, replica.log, None)
    trio.run(upkeep.checkpoint)
    (engine,) = hosted.replicas.engines.values()

    assert engine.high_watermarks() == {replica.partition: 1}
