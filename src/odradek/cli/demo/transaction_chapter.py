"""Shell: the demo's chapter about transactions: one aborts, one commits, and two kinds of readers look on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..running import run_interruptible
from .log_chapters import SAMPLE_ZONE
from .scene import TOPIC
from .transaction_work import GROUP, RESULTS, run_transactions

if TYPE_CHECKING:
    from .scene import Scene
    from .transaction_work import Moment


def transact(scene: Scene) -> None:
    """Have a worker count the changes of each zone exactly once, though it fails in the middle of its work."""
    stage = scene.stage
    stage.step("Exactly once")
    stage.say(
        f"A worker of the group {GROUP} reads {TOPIC}, counts the changes of every zone, and writes the counts to "
        f"{RESULTS}. Counts and its own offsets are one [bold]transaction[/]. The first worker fails when it has "
        "counted half, its counts already written: that transaction aborts. The next one begins where the last commit "
        "is, which is at the beginning, and comes to its end."
    )
    with stage.progress("counting", len(scene.records)) as on_progress:
        moments = run_interruptible(run_transactions, scene.bootstrap, TOPIC, len(scene.records), on_progress)
    is_open, aborted, committed = moments
    scene.last_moment = committed
    stage.say("How many counts readers see by read_uncommitted and by read_committed, and the offsets of the group:")
    stage.table(
        ("transaction", "log end", "last stable", "uncommitted", "committed", "offsets"),
        [
            (
                moment.name,
                moment.log_end_offset,
                moment.last_stable_offset,
                len(moment.uncommitted),
                len(moment.committed),
                f"{sum(moment.offsets.values()):,}" if moment.offsets else "none",
            )
            for moment in moments
        ],
    )
    seen = [
        [count for zone, count in found if zone == SAMPLE_ZONE]
        for found in (committed.uncommitted, committed.committed)
    ]
    stage.say(
        f"Of {SAMPLE_ZONE.decode()}, a read_uncommitted reader is told {' and '.join(map(str, seen[0]))} changes, a "
        f"read_committed one {' and '.join(map(str, seen[1]))}. Each end of a transaction is a marker in the log: it "
        "takes an offset, and no reader sees it."
    )
    check(scene, is_open, aborted, committed)


def check(scene: Scene, is_open: Moment, aborted: Moment, committed: Moment) -> None:
    """Check that what aborted has left no trace that a reader would follow, and that what committed is whole."""
    stage = scene.stage
    stage.check(
        "what is open or aborted is invisible to read_committed, and no offset was committed with it",
        holds=not (is_open.committed or aborted.committed or is_open.offsets or aborted.offsets)
        and is_open.last_stable_offset == 0
        and aborted.last_stable_offset == aborted.log_end_offset,
        detail=f"{is_open} and {aborted}",
    )
    counts = Counter(record.key for record in scene.records)
    stage.check(
        f"what committed is seen whole: {len(counts)} zones, each with as many changes as the data set has",
        holds=committed.committed == tuple(sorted(counts.items())),
        detail=f"{committed.committed}",
    )
    stage.check(
        "a read_uncommitted reader sees both transactions, one after the other",
        holds=bool(aborted.uncommitted) and committed.uncommitted == aborted.uncommitted + committed.committed,
        detail=f"{committed.uncommitted}",
    )
    stage.check(
        "the offsets were committed with the counts: nothing would be counted twice",
        holds=committed.offsets == {number: len(records) for number, records in scene.by_partition.items()},
        detail=f"{committed.offsets}",
    )
