"""What fetch sessions cost a request, without the reading; run by hand: `python benchmarks/fetch_session.py`.

Prints the best of five rounds, in microseconds for each request.
"""

from __future__ import annotations

import random
import time
import uuid
from typing import TYPE_CHECKING

from odradek.kernel.dispatch.fetch_session import FetchSessionCache
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 2_000
ROUNDS = 5
TOPIC_ID = uuid.UUID(int=77)


def _request(session_id: int, epoch: int, count: int) -> FetchRequest:
    partitions = [FetchPartition(partition=number, fetch_offset=1) for number in range(count)]
    topics = [FetchTopic(topic_id=TOPIC_ID, partitions=partitions)] if count else []
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics)


def sessionless() -> tuple[Callable[[], None], int]:
    """One partition, no session."""
    cache = FetchSessionCache(slots=1000, random_source=random.Random(0))
    request = _request(0, -1, 1)
    answers = [PartitionData(records=b"x", high_watermark=2)]

    def turn() -> None:
        for _ in range(COUNT):
            cache.open(request, 13, 0, is_privileged=False).build(answers)

    return turn, COUNT


def incremental(partitions_count: int, *, with_skips: bool) -> tuple[Callable[[], None], int]:
    """One partition of so many has news; the others are answered as before, or left out by the handler."""
    cache = FetchSessionCache(slots=1000, random_source=random.Random(0))
    all_answers = [PartitionData(records=b"", high_watermark=2) for _ in range(partitions_count)]
    session_id = cache.open(_request(0, 0, partitions_count), 13, 0, is_privileged=False).build(all_answers).session_id
    news = PartitionData(records=b"x", high_watermark=2)
    answers: list[PartitionData | None] = [news]
    answers += [None] * (partitions_count - 1) if with_skips else all_answers[1:]
    epoch = 0
    rounds = max(10, COUNT // partitions_count)

    def turn() -> None:
        nonlocal epoch
        for _ in range(rounds):
            epoch += 1
            cache.open(_request(session_id, epoch, 1), 13, 0, is_privileged=False).build(answers)

    return turn, rounds


def main() -> None:
    """Print the table."""
    cases = {
        "sessionless, 1 partition": sessionless(),
        "incremental, 1 of 1": incremental(1, with_skips=False),
        "incremental, 1 of 1,000, all read": incremental(1000, with_skips=False),
        "incremental, 1 of 1,000, others left out": incremental(1000, with_skips=True),
    }
    for name, (turn, count) in cases.items():
        best_ns = 1 << 62
        for _ in range(ROUNDS):
            start_ns = time.perf_counter_ns()
            turn()
            best_ns = min(best_ns, time.perf_counter_ns() - start_ns)
        print(f"{name:<45} {best_ns / count / 1000:8.2f} us")


if __name__ == "__main__":
    main()
