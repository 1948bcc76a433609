"""A Fetch of very many partitions is read in slices by a task, and is answered what any other would be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from odradek.kernel.dispatch import wide_fetch
from odradek.kernel.dispatch.handlers import api_01_fetch
from odradek.kernel.dispatch.router import TASKS_MAX
from odradek.kernel.dispatch.wide_fetch import HUGE_MAX, TARGETS_PER_SLICE
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

from .house import House, batch, produce_request, values
from .memory_client import MemoryClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

COUNT = 2 * TARGETS_PER_SLICE + 1
"""Of partitions: three slices."""


class Scene:
    """A router that runs, over a topic with many partitions; reads are counted by slice."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.client = MemoryClient(house.router)
        self.slices: list[int] = []

    def fetch(self, offsets: Sequence[int] = (0,) * COUNT, **more: Any) -> None:
        parts = [
            FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)
            for number, offset in enumerate(offsets)
        ]
        topics = [FetchTopic(topic="t", partitions=parts)] if parts else []
        options = {"max_wait_ms": 60_000, "min_bytes": 1, "max_bytes": 1 << 24, **more}
        self.client.send(FetchRequest(topics=topics, **options), 11)

    def produce(self, *partitions: int) -> None:
        MemoryClient(self.house.router).ask(produce_request(*((number, batch(b"a")) for number in partitions)), 9)

    def answer(self) -> FetchResponse:
        (answer,) = self.client.received()
        assert isinstance(answer, FetchResponse)
        return answer

    def records(self) -> dict[int, list[bytes]]:
        return {part.partition_index: values(part) for part in parts_of(self.answer()) if part.records}


def parts_of(answer: FetchResponse) -> list[PartitionData]:
    return [part for topic in answer.responses for part in topic.partitions]


def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: Callable[[Scene], Awaitable[None]]) -> None:
    house = House(tmp_path)
    house.hosted.open("t", COUNT)
    monkeypatch.setattr(api_01_fetch, "AT_ONCE_MAX", TARGETS_PER_SLICE)
    monkeypatch.setattr(api_01_fetch, "AT_ONCE_IN_SESSION_MAX", TARGETS_PER_SLICE)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(house.router.run)
            await scenario(Scene(house))
            nursery.cancel_scope.cancel()

    trio.run(main)
    house.hosted.lifecycle.close()


settle = trio.testing.wait_all_tasks_blocked


def test_what_is_there_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        scene.produce(3, COUNT - 1)
        scene.fetch()
        assert not scene.client.frames(), "nothing of it is read in the turn in which it came"
        await settle()
        answer = scene.answer()

        assert [part.partition_index for part in parts_of(answer)] == list(range(COUNT))
        assert [part.partition_index for part in parts_of(answer) if part.records] == [3, COUNT - 1]

    play(tmp_path, monkeypatch, scenario)


def test_the_limit_of_bytes_counts_over_all_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        scene.produce(3, COUNT - 1)
        scene.fetch(max_bytes=len(batch(b"a")))
        await settle()

        assert scene.records() == {3: [b"a"]}

    play(tmp_path, monkeypatch, scenario)


@pytest.mark.parametrize("partition", [0, COUNT - 1])
def test_an_append_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition: int) -> None:
    async def scenario(scene: Scene) -> None:
        scene.fetch()
        await settle()
        assert not scene.client.frames()
        scene.produce(partition)
        await settle()

        assert scene.records() == {partition: [b"a"]}

    play(tmp_path, monkeypatch, scenario)


def test_what_is_appended_between_two_slices_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        reads = 0
        read_targets = vars(wide_fetch)["read_targets"]

        def note(*args: Any, **options: Any) -> Any:
            nonlocal reads
            reads += 1
            if reads == 2:
                scene.produce(0)
            return read_targets(*args, **options)

        monkeypatch.setitem(vars(wide_fetch), "read_targets", note)
        scene.fetch()
        await settle()

        assert scene.records() == {0: [b"a"]}

    play(tmp_path, monkeypatch, scenario)


def test_a_wait_that_ends_in_time_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        scene.fetch(max_wait_ms=500)
        await settle()
        scene.house.pass_time(501)
        await settle()

        assert len(parts_of(scene.answer())) == COUNT

    play(tmp_path, monkeypatch, scenario)


def test_a_session_of_many_is_told_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        scene.fetch(session_epoch=0, max_wait_ms=0)
        await settle()
        session_id = scene.answer().session_id
        for epoch in (1, 2, 3):  # the later ones are recognised as repeated
            scene.fetch((), session_id=session_id, session_epoch=epoch, max_wait_ms=0)
            await settle()
            assert parts_of(scene.answer()) == []
        scene.produce(7)
        scene.fetch((), session_id=session_id, session_epoch=4)
        await settle()

        assert scene.records() == {7: [b"a"]}

    play(tmp_path, monkeypatch, scenario)


def test_a_client_that_leaves_while_it_waits_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        scene.fetch()
        await settle()
        assert scene.house.fetches.delayed_count == 1
        scene.client.leave()
        await settle()

        assert scene.house.fetches.delayed_count == 0

    play(tmp_path, monkeypatch, scenario)


@pytest.mark.parametrize("is_huge", [False, True])
def test_fetches_that_wait_keep_no_other_request_from_being_worked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_huge: bool
) -> None:
    if is_huge:
        monkeypatch.setattr(api_01_fetch, "HUGE_FROM", COUNT)

    async def scenario(scene: Scene) -> None:
        waiting = [Scene(scene.house) for _ in range(TASKS_MAX + 1)]
        for each in waiting:
            each.fetch()
            await settle()
        scene.fetch(max_wait_ms=0)
        await settle()
        assert len(parts_of(scene.answer())) == COUNT
        assert not any(each.client.frames() for each in waiting)
        scene.produce(0)
        await settle()

        assert all(each.records() == {0: [b"a"]} for each in waiting)

    play(tmp_path, monkeypatch, scenario)


def test_more_partitions_than_a_broker_has_may_be_named_in_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(scene: Scene) -> None:
        scene.fetch((0,) * 20_001, max_wait_ms=0, session_epoch=0)
        await settle()
        answer = scene.answer()
        codes = Counter(part.error_code for part in parts_of(answer))

        assert codes == {ErrorCode.NONE: COUNT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 20_001 - COUNT}
        assert len(answer.responses) == 1
        assert answer.session_id > 0

    play(tmp_path, monkeypatch, scenario)


def test_few_are_read_at_once_that_hold_very_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_01_fetch, "HUGE_FROM", COUNT)
    read_in_slices = vars(api_01_fetch)["read_in_slices"]
    now = most = 0

    async def counted(*args: Any, **options: Any) -> Any:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await read_in_slices(*args, **options)
        finally:
            now -= 1

    monkeypatch.setitem(vars(api_01_fetch), "read_in_slices", counted)

    async def scenario(scene: Scene) -> None:
        asking = [Scene(scene.house) for _ in range(3 * HUGE_MAX)]
        for each in asking:
            each.fetch(max_wait_ms=0)
        await settle()

        assert all(len(parts_of(each.answer())) == COUNT for each in asking)

    play(tmp_path, monkeypatch, scenario)

    assert most == HUGE_MAX
