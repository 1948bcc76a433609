"""The cores of a stream together, over logs that grow, lose their beginnings and get partitions: each offset once.

No broker is asked and nothing is read: a log is two offsets, and a batch reads the ranges that were planned for it.
"""

from __future__ import annotations

import json

import attrs
from hypothesis import given
from hypothesis import strategies as st

from odradek.spark_plugin.offsets import from_json_object, json_object, text
from odradek.spark_plugin.options.positions import Everywhere, LogEnds, resolve
from odradek.spark_plugin.ranges import EARLIEST, LATEST, TopicPartition
from odradek.spark_plugin.reading.data_loss import settle, stream_outcome
from odradek.spark_plugin.reading.planner import Topics, assign
from odradek.spark_plugin.reading.rate_limit import TriggerLimits, TriggerPlanner
from odradek.spark_plugin.reading.splitting import split

TOPIC = "t"
ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 3), st.integers(1, 40)),
    st.tuples(st.just("remove"), st.integers(0, 3), st.integers(1, 30)),
    st.tuples(st.just("partition"), st.just(0), st.just(0)),
    st.tuples(st.just("batch"), st.just(0), st.integers(0, 2_000)),
    st.tuples(st.just("restart"), st.just(0), st.just(0)),
)


@attrs.define
class Logs:
    """The logs of one topic: for each partition where it begins and ends."""

    ends: list[list[int]]

    def listed(self) -> LogEnds:
        partitions = assign(Topics((TOPIC,)), {TOPIC: range(len(self.ends))})
        return LogEnds(
            {one: self.ends[one.partition][0] for one in partitions},
            {one: self.ends[one.partition][1] for one in partitions},
        )

    def do(self, action: str, number: int, count: int) -> None:
        log = self.ends[number % len(self.ends)]
        if action == "append":
            log[1] += count
        elif action == "remove":
            log[0] = min(log[0] + count, log[1])
        elif action == "partition":
            self.ends.append([0, 0])


@attrs.define
class Query:
    """A streaming query: what it has read, and the offsets in its checkpoint."""

    limits: TriggerLimits
    min_partitions: int
    planner: TriggerPlanner
    position: str
    read: dict[TopicPartition, list[int]] = attrs.field(factory=dict)
    warnings: list[str] = attrs.field(factory=list)

    def batch(self, logs: Logs, now_ms: int) -> bool:
        """Read a micro-batch; say whether there was one."""
        start, ends = from_json_object(json.loads(self.position)), logs.listed()
        new = {one: offset for one, offset in ends.earliest.items() if one not in start}
        end = self.planner.end(start, ends.latest, earliest=new, now_ms=now_ms)
        if text(end) == self.position:
            return False
        outcome = stream_outcome(start, end, ends)
        self.warnings += settle(outcome, fails=False)
        for one in split(outcome.ranges, min_partitions=self.min_partitions):
            self.read.setdefault(one.topic_partition, []).extend(range(one.start, one.end))
        self.position = json.dumps(json_object(end))
        return True


@given(
    st.lists(ACTIONS, max_size=40),
    st.none() | st.integers(1, 50),
    st.none() | st.integers(1, 50),
    st.integers(1, 8),
    st.sampled_from([EARLIEST, LATEST]),
)
def test_a_stream_reads_every_offset_once_but_those_that_were_removed_before(
    actions: list[tuple[str, int, int]], max_offsets: int | None, least: int | None, min_partitions: int, begin: int
) -> None:
    if max_offsets is not None and least is not None:
        max_offsets, least = max(max_offsets, least), min(max_offsets, least)
    limits = TriggerLimits(max_offsets=max_offsets, min_offsets=least, max_delay_ms=1_000)
    logs = Logs([[0, 10], [0, 5]])
    first = resolve(Everywhere(begin), logs.listed(), {}, "startingOffsets")
    query = Query(limits, min_partitions, TriggerPlanner(limits), text(first))
    removed: dict[TopicPartition, set[int]] = {}
    now_ms = 0
    for action, number, count in actions:
        before = [log[0] for log in logs.ends]
        logs.do(action, number, count)
        for place, low in enumerate(before):
            removed.setdefault(TopicPartition(TOPIC, place), set()).update(range(low, logs.ends[place][0]))
        if action == "batch":
            now_ms += count
            query.batch(logs, now_ms)
        if action == "restart":
            query.planner = TriggerPlanner(limits)
    for _ in range(10_000):
        now_ms += 1_000
        if not query.batch(logs, now_ms):
            break

    for one, end in logs.listed().latest.items():
        read = query.read.get(one, [])
        wanted = range(first.get(one, 0), end)
        assert read == sorted(set(read))
        assert set(wanted) - set(read) <= removed.get(one, set())
        assert set(read) <= set(wanted)
    lost = {one for one, gone in removed.items() if gone - set(query.read.get(one, [])) - set(range(first.get(one, 0)))}
    assert bool(query.warnings) == bool(lost)


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=4), st.integers(1, 60), st.lists(st.integers(0, 9), max_size=9)
)
def test_available_now_reads_what_there_was_in_bounded_batches(sizes: list[int], limit: int, more: list[int]) -> None:
    limits = TriggerLimits(max_offsets=limit)
    logs = Logs([[0, size] for size in sizes])
    query = Query(limits, 1, TriggerPlanner(limits), text(resolve(Everywhere(EARLIEST), logs.listed(), {}, "x")))
    query.planner.prepare_available_now(logs.listed().latest)
    batches = 0
    while query.batch(logs, 0):
        batches += 1
        for place, count in enumerate(more[: len(sizes)]):
            logs.do("append", place, count)

    assert {one: len(read) for one, read in query.read.items()} == {
        TopicPartition(TOPIC, number): size for number, size in enumerate(sizes) if size
    }
    assert batches <= sum(sizes)
