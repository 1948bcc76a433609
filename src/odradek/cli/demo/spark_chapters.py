"""Shell: the chapters about Spark: a query streams, is killed, goes on, and a batch query proves what it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..running import run_interruptible
from . import client_work
from .spark_job import CHANGES, WEEKS
from .spark_process import SparkJob
from .spark_scene import BATCHES, weeks_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .spark_scene import SparkScene

DONE_BEFORE: Final = 5
"""How many micro-batches are done before the one in which the job is killed."""
COLUMNS: Final = ("batch", "records read", "until", "weeks written", "ms")
BUSIEST: Final = 5


def stream(scene: SparkScene) -> None:
    """Start the job, and kill it in the middle of a micro-batch."""
    stage = scene.stage
    stage.step("A streaming query, and kill -9")
    stage.say(
        f"PySpark, and not one jar: [bold]readStream.format('odradek')[/] follows {CHANGES}, "
        "[bold]groupBy(window('at', '7 days'))[/] counts the changes of each week since 1970, and "
        f"[bold]writeStream.format('odradek')[/] with [bold]exactlyOnce=true[/] sends a week to {WEEKS} when the "
        f"watermark, four years behind, has passed it. Spark's checkpoint keeps counts and offsets. {BATCHES} "
        f"micro-batches would do; after {DONE_BEFORE}, in the middle of the next, driver, JVM and workers are killed:"
    )
    run_interruptible(client_work.create_topic, scene.bootstrap, WEEKS, 2, {"retention.ms": "-1"})
    job = SparkJob(scene.job_arguments, scene.folder)
    watcher = job.kill_when(lambda: is_in_the_middle(scene))
    _watch(scene, job)
    watcher.join()
    _show(scene, scene.batches)
    planned, done = scene.planned_and_done()
    stage.check(
        f"the job (pid {job.process_id}) died where it stood: {planned} micro-batches planned, {done} done",
        holds=planned == done + 1,
        detail="it was over before it could be killed" if planned == done else "",
    )


def is_in_the_middle(scene: SparkScene) -> bool:
    """Say whether a micro-batch has been planned and is not done, while all before it are done and have been told."""
    planned, done = scene.planned_and_done()
    return planned == done + 1 and len(scene.batches) == done >= DONE_BEFORE


def go_on(scene: SparkScene) -> None:
    """Start the same job again."""
    stage = scene.stage
    stage.step("The same job again")
    stage.say(
        "The same program with the same checkpoint. It begins with the batch that was cut off: with its very offsets, "
        "and what that batch may have written before is aborted, not repeated."
    )
    before = {batch["id"] for batch in scene.batches}
    _watch(scene, SparkJob([*scene.job_arguments, "--prove"], scene.folder))
    again = [batch for batch in scene.batches if batch["id"] not in before]
    _show(scene, again)
    ids = [batch["id"] for batch in scene.batches]
    stage.check(
        "no micro-batch was done twice, none was left out",
        holds=sorted(set(ids)) == list(range(len(ids))) and scene.planned_and_done() == (len(ids), len(ids)),
        detail=f"done: {ids}, planned and done by the checkpoint: {scene.planned_and_done()}",
    )


def prove(scene: SparkScene) -> None:
    """Compare what a batch query found with the data set."""
    stage = scene.stage
    stage.step("A batch query proves it")
    stage.say(
        f"[bold]spark.read.format('odradek')[/] counts {CHANGES}, by a schema of one column so that no other is "
        f"decoded, and reads {WEEKS} (read_committed). The busiest weeks of the world's clocks:"
    )
    written: list[tuple[str, int]] = [(week, count) for week, count in scene.proof["weeks"]]
    found = dict(written)
    stage.table(
        ("week from Monday", "changes of clocks"),
        sorted(found.items(), key=lambda item: (-item[1], item[0]))[:BUSIEST],
    )
    stage.check(
        f"Spark read all {len(scene.records):,} records",
        holds=scene.proof["changes"] == len(scene.records),
        detail=f"{scene.proof['changes']:,}",
    )
    expected = weeks_until(scene.records, max(found, default=""))
    wrong = {week for week in expected.keys() | found.keys() if expected.get(week) != found.get(week)}
    stage.check(
        f"each of {len(expected):,} weeks, to {max(found, default='none')}, has the count that the data set has",
        holds=bool(found) and not wrong,
        detail=", ".join(sorted(wrong)[:BUSIEST]),
    )
    counted = sum(batch["weeks"] for batch in scene.batches)
    stage.check(
        "and stands in the topic exactly once",
        holds=len(written) == len(found) == counted,
        detail=f"{len(written):,} records of {len(found):,} weeks, {counted:,} by Spark's count",
    )


def _watch(scene: SparkScene, job: SparkJob) -> None:
    """Take what a run of the job tells, until it ends."""
    before = sum(batch["records"] for batch in scene.batches)
    try:
        with scene.stage.progress("Spark starts, and counts", len(scene.records)) as on_progress:
            on_progress(before)
            for line in job.lines():
                if line["kind"] == "batch":
                    scene.batches.append(line)
                    on_progress(sum(batch["records"] for batch in scene.batches))
                else:
                    scene.proof = line
    finally:
        job.close()


def _show(scene: SparkScene, batches: Sequence[dict[str, Any]]) -> None:
    """Show micro-batches as a table."""
    rows = [
        (batch["id"], batch["records"], batch["until"], batch["weeks"], batch["took_ms"])
        for batch in sorted(batches, key=lambda batch: int(batch["id"]))
    ]
    scene.stage.table(COLUMNS, rows)
