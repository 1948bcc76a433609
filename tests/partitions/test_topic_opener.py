"""Large topics are opened in pieces, small ones at once."""

from __future__ import annotations

import itertools
import uuid

import trio
import trio.testing

from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.topic_opener import AT_ONCE_MAX, PIECE_SIZE, TopicOpener

TOPIC = uuid.UUID(int=1)


def test_a_small_topic_is_open_at_once() -> None:
    opened: list[int] = []
    told: list[int] = []
    opener = TopicOpener(lambda topic_id, indexes: opened.extend(indexes), lambda: told.append(len(opened)))

    run_at_once(opener.open_in_steps(TOPIC, {2, 0, 7}))

    assert opened == [0, 2, 7]
    assert told == [3]


def test_the_rest_of_a_large_topic_is_opened_in_pieces_with_turns_between() -> None:
    pieces: list[list[int]] = []
    told: list[int] = []
    opener = TopicOpener(lambda topic_id, indexes: pieces.append(indexes), lambda: told.append(len(pieces)))
    count = AT_ONCE_MAX + 2 * PIECE_SIZE + 1

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(opener.run)
            run_at_once(opener.open_in_steps(TOPIC, range(count)))
            assert list(itertools.chain(*pieces)) == list(range(AT_ONCE_MAX))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(scenario)

    assert [len(piece) for piece in pieces] == [PIECE_SIZE] * (count // PIECE_SIZE) + [1]
    assert sorted(index for piece in pieces for index in piece) == list(range(count))
    assert told == [len(pieces)], "once, when the last of them is open"
