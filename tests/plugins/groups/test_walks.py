"""What looks at all groups does so in slices: counted in steps, not in time."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from odradek.kernel.api import MetadataChange
from odradek.kernel.wire.messages.api_08_offset_commit import OffsetCommitRequestPartition
from odradek.plugins.groups.offsets import DELETION_WALK, EXPIRY_TIMER, EXPIRY_WALK, Committer, TopicCommit
from odradek.plugins.groups.walks import SLICE_STEPS

from .consumer.driven_consumers import DrivenConsumers
from .driven import DrivenGroups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.api import TimerKey
    from odradek.plugins.groups.shard import GroupShard

HOUR_MS = 3_600_000
GROUPS = 4 * SLICE_STEPS
PER_GROUP = 3
VERY_MANY = 100_000
NAMESAKE = uuid.UUID(int=77)


def filled(topic: str = "t", *, groups: int = GROUPS, per_group: int = PER_GROUP) -> DrivenGroups:
    """Many groups of no members, each with some offsets."""
    driven = DrivenGroups({"offsets.retention.minutes": 60, "offsets.retention.check.interval.ms": HOUR_MS})
    for number in range(groups):
        driven.commit({topic: dict.fromkeys(range(per_group), 5)}, group=f"g{number}")
    return driven


def tombstones_by_operation(driven: DrivenGroups) -> list[int]:
    """Watch how many records each operation of the shard makes from now on."""
    counts: list[int] = []
    append = driven.harness._append  # whatever writes comes by here

    def counting(result: object, producer: object) -> object:
        counts.append(len(result.records))  # type: ignore[attr-defined] # a result
        return append(result, producer)  # type: ignore[arg-type] # handed on

    driven.harness._append = counting  # type: ignore[method-assign,assignment] # as above
    return counts


class Watched(dict[str, Any]):
    """A table of groups that counts who goes through it."""

    looks = 0

    def __iter__(self) -> Iterator[str]:
        self.looks += 1
        return super().__iter__()

    def values(self) -> Any:
        self.looks += 1
        return super().values()

    def items(self) -> Any:
        self.looks += 1
        return super().items()


def late_commit(driven: DrivenGroups) -> tuple[Committer, list[TopicCommit]]:
    """A commit of the last group, of a consumer that is no member."""
    view = driven.broker.cluster.topic("t")
    assert view is not None
    committer = Committer(f"g{GROUPS - 1}", "", None, -1, 8)
    item = OffsetCommitRequestPartition(partition_index=0, committed_offset=77, committed_metadata="")
    return committer, [TopicCommit("t", view.topic_id, [item])]


def changed(change: MetadataChange, shard: GroupShard, now_ms: int) -> Any:
    return shard.metadata_changed(change, now_ms)


def test_offsets_expire_slice_by_slice() -> None:
    driven = filled()
    counts = tombstones_by_operation(driven)
    driven.harness.advance(HOUR_MS)

    assert max(counts) <= SLICE_STEPS + PER_GROUP
    assert sum(counts) == GROUPS * (PER_GROUP + 1)
    assert len(counts) >= GROUPS * (1 + PER_GROUP) // (SLICE_STEPS + PER_GROUP + 1)
    assert driven.shard.context.groups == {}
    assert driven.harness.armed == {EXPIRY_TIMER: HOUR_MS}  # and the next round is due


def test_a_hundred_thousand_groups_come_and_go_no_more_at_once_than_a_few() -> None:
    driven = filled(groups=VERY_MANY, per_group=1)
    counts = tombstones_by_operation(driven)
    driven.harness.advance(HOUR_MS)

    assert max(counts) <= SLICE_STEPS + 1
    assert sum(counts) == 2 * VERY_MANY
    assert driven.shard.context.groups == {}
    assert driven.shard.offsets.count == 0


def test_a_group_that_commits_between_two_slices_stays() -> None:
    driven = filled()
    seen: list[int] = []
    schedule = driven.harness.schedule

    def committing(key: TimerKey, delay_ms: int, operation: Any) -> None:
        schedule(key, delay_ms, operation)
        if key == EXPIRY_WALK and not seen:
            seen.append(1)
            schedule(("a commit",), 0, lambda now_ms: driven.shard.offsets.commit(*late_commit(driven), now_ms))

    driven.harness.schedule = committing  # type: ignore[method-assign] # so that something happens between two slices
    driven.harness.advance(HOUR_MS)

    assert seen
    assert list(driven.shard.context.groups) == [f"g{GROUPS - 1}"]
    assert driven.fetch(group=f"g{GROUPS - 1}") == {"t": {0: 77}}


def test_offsets_of_a_deleted_topic_go_slice_by_slice() -> None:
    driven = filled()
    counts = tombstones_by_operation(driven)
    change = MetadataChange(deleted_topics=(driven.broker.cluster.delete("t"),))
    driven.harness.run(lambda shard, now_ms: shard.metadata_changed(change, now_ms))
    first = counts[:]
    driven.harness.advance(0)

    assert 0 < first[0] <= SLICE_STEPS + PER_GROUP
    assert max(counts) <= SLICE_STEPS + PER_GROUP
    assert driven.shard.offsets.count == 0


def test_topics_deleted_meanwhile_have_a_walk_of_their_own() -> None:
    driven = filled()
    driven.commit({"u": {0: 1}}, group="g0")  # the first group, which the walk has passed
    for topic in ("t", "u"):
        change = MetadataChange(deleted_topics=(driven.broker.cluster.delete(topic),))
        driven.harness.run(partial(changed, change))
    driven.harness.advance(0)

    assert driven.shard.offsets.count == 0
    assert DELETION_WALK not in driven.harness.armed


def test_what_is_committed_in_a_topic_that_came_again_stays() -> None:
    driven = filled()
    change = MetadataChange(deleted_topics=(driven.broker.cluster.delete("t"),))
    driven.harness.run(lambda shard, now_ms: shard.metadata_changed(change, now_ms))
    last = f"g{GROUPS - 1}"
    driven.broker.cluster.create("t", 4, NAMESAKE)
    driven.commit({"t": {0: 1}}, group=last)
    driven.harness.advance(0)

    assert driven.fetch(group=last) == {"t": {0: 1}}
    assert driven.shard.offsets.count == 1


def test_a_change_of_topics_looks_at_no_group() -> None:
    """The groups that read them look themselves, each when its next member is heard."""
    driven = DrivenConsumers(topics={"t": 1})
    driven.member_ids["a"] = "a"
    epoch = driven.enter("a", "t").response.member_epoch
    watched = Watched(driven.shard.context.groups)
    driven.shard.context.groups = watched
    driven.create_topic("t", 2)
    driven.create_topic("other", 2)

    assert watched.looks == 0
    assert driven.names(driven.beat("a", epoch).response.assignment.topic_partitions) == {"t": [0, 1]}
