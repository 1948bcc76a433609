"""Shell: the demo's chapter about groups: three members share a topic, one leaves, lag goes to zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..output import plural
from ..running import run_interruptible
from .group_work import GROUP, NAMES, run_group
from .scene import TOPIC

if TYPE_CHECKING:
    from .group_work import Act
    from .scene import Scene


def share(scene: Scene) -> None:
    """Have a group read the topic, and check that it read all of it once."""
    stage = scene.stage
    stage.step("A group shares the work")
    stage.say(
        f"Three consumers, {', '.join(NAMES[:-1])} and {NAMES[-1]}, join the group {GROUP}, and the broker's "
        "coordinator hands the partitions out (KIP-848). They commit what they have read; about half-way they are held "
        "for a look."
    )
    with stage.progress("reading as a group", len(scene.records)) as on_progress:
        scene.group_run = run = run_interruptible(run_group, scene.bootstrap, TOPIC, on_progress)
    stage.say(f"After {run.half_way.took_s:.2f} s, in group epoch {run.half_way.group_epoch}, everybody had some:")
    _show_shares(scene, run.half_way)
    leaver = run.half_way.shares[-1]
    stage.say(
        f"Now {leaver.name} leaves. The others need {run.taken_over.took_s:.2f} s to take over her "
        f"{plural(len(leaver.partitions), 'partition')}, in group epoch {run.taken_over.group_epoch}, go on where she "
        "had committed, and read to the end:"
    )
    _show_shares(scene, run.end)
    stage.say(
        "[bold]Lag[/] is what is left to read: the log's end minus the committed offset. `odradek groups describe` "
        "shows it. At half-way, and at the end:"
    )
    stage.table(
        ("partition", "log end", "committed", "lag", "then committed", "then lag"),
        [
            (before.partition.partition, before.end, before.committed, before.lag, after.committed, after.lag)
            for before, after in zip(run.half_way.progress, run.end.progress, strict=True)
        ],
    )
    check(scene)


def _show_shares(scene: Scene, act: Act) -> None:
    scene.stage.table(
        ("member", "partitions", "records read"),
        [
            (share.name, ", ".join(map(str, share.partitions)) or "has left", share.records_count)
            for share in act.shares
        ],
    )


def check(scene: Scene) -> None:
    """Check that every record was read once, by the reader that broker and members agree on, and none is left."""
    run, stage = scene.group_run, scene.stage
    assert run is not None
    acts = (run.half_way, run.taken_over, run.end)
    stage.check(
        "each time every partition had one reader, the same by the members and by the broker",
        holds=all(_is_shared_out(act, set(scene.by_partition)) for act in acts),
        detail=f"{[act.shares for act in acts]}",
    )
    expected = {number: list(range(len(records))) for number, records in scene.by_partition.items()}
    stage.check(
        f"the group read {sum(map(len, run.offsets.values())):,} records: each once, and in order",
        holds=dict(run.offsets) == expected,
        detail=f"{ {number: len(read) for number, read in run.offsets.items()} }",
    )
    before, after = (sum(row.lag or 0 for row in act.progress) for act in (run.half_way, run.end))
    stage.check(
        f"lag went from {before:,} to {after:,}",
        holds=before > 0 and all(row.lag == 0 for row in run.end.progress),
        detail=f"{run.end.progress}",
    )


def _is_shared_out(act: Act, partitions: set[int]) -> bool:
    """Whether members and broker agree on who reads what, and nobody reads what another does."""
    by_members = sorted((number, share.name) for share in act.shares for number in share.partitions)
    by_broker = [(row.partition.partition, row.member.client_id) for row in act.progress if row.member is not None]
    return by_members == sorted(by_broker) and sorted(partitions) == [number for number, _name in by_members]
