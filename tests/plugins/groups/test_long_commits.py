"""An OffsetCommit for very many partitions: appended piece by piece, and waited for together."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
import trio.testing

from odradek.kernel.api import ErrorCode
from odradek.kernel.dispatch.long_requests import answer_in_pieces
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.waiting_aside import wait_here

from .handled import Connection, HandledGroups

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import KafkaError

MANY = 1_000


class Uncommitted:
    """A waiter whose operation has been appended, and is not committed before the test says so."""

    def __init__(self, waiter: Any, appended: list[Callable[[], None]]) -> None:
        self._waiter = waiter
        self._appended = appended

    def answer(self, response: Any) -> None:
        self._appended.append(partial(self._waiter.answer, response))

    def fail(self, error: KafkaError) -> None:
        self._appended.append(partial(self._waiter.fail, error))


def test_all_pieces_are_appended_before_the_first_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = HandledGroups()
    submit = groups.runtime.submit
    appended: list[Callable[[], None]] = []
    answers: list[Any] = []
    monkeypatch.setattr(
        groups.runtime,
        "submit",
        lambda partition, operation, waiter: submit(partition, operation, Uncommitted(waiter, appended)),
    )
    numbers = [number % 4 for number in range(MANY)]  # as many as the topic has
    partitions = [OffsetCommitRequestPartition(partition_index=number, committed_offset=5) for number in numbers]
    body = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])
    handler: Any = groups.handlers[8]
    request = SimpleNamespace(
        route=SimpleNamespace(handler=handler, is_async=False),
        api_key=8,
        api_version=8,
        client_id="client",
        connection=Connection(),
        correlation_id=1,
        wait_aside=wait_here,
    )

    async def ask() -> None:
        answers.append(await answer_in_pieces(handler.pieces, cast("Any", request), body))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert len(appended) == MANY // handler.pieces.items_max > 1
            for commit in appended:
                commit()

    trio.run(main)
    ((topic,),) = [answer.topics for answer in answers]
    assert [part.partition_index for part in topic.partitions] == numbers
    assert {part.error_code for part in topic.partitions} == {ErrorCode.NONE}
