"""What a fetcher looks at between two requests: what has moved, and not all that it follows."""

from __future__ import annotations

from pathlib import Path

import trio

from odradek.kernel.replication.fetch_planning import PLANNED_MS_MAX, Followed, wanted_now
from tests.profiled import counting_calls

from .small_cluster import running
from .test_replication import run

PARTITIONS = 30
RECORDS = 10


def test_only_where_records_came_is_looked_at_again(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, partitions=PARTITIONS) as cluster:
            leader = cluster.nodes[1]
            ends = [leader.produce(b"first", partition=number) for number in range(PARTITIONS)]
            await trio.sleep(1)
            with counting_calls() as calls:
                for _ in range(RECORDS):
                    await cluster.acknowledged(leader.produce(b"v"))
                await trio.sleep(0.1)

            assert ends == [1] * PARTITIONS
            assert calls[wanted_now.__code__] == 0
            # Two followers: once for the records, once for what is committed by then.
            assert 2 * RECORDS <= calls[Followed.wish.__code__] <= 4 * RECORDS

    run(body)


def test_where_logs_begin_is_found_out_in_time_though_others_are_busy(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, partitions=2) as cluster:
            leader, follower = cluster.nodes[1], cluster.nodes[2]
            leader.produce(b"a", b"b", partition=1)
            await trio.sleep(1)
            follower.replica(1).log.advance_log_start(1)
            end_s = trio.current_time() + PLANNED_MS_MAX / 1000 + 1
            while trio.current_time() < end_s:
                await cluster.acknowledged(leader.produce(b"v"))
                await trio.sleep(0.1)
            (fetcher,) = follower.fetchers._fetchers.values()
            asked = fetcher._plan._wanted[follower.replica(1).topic_partition]

            assert asked.partition.log_start_offset == 1

    run(body)
