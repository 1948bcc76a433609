"""Shell: what the demo tells, chapter by chapter; each does something, shows it, and checks it."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek import __version__

from . import crash_chapter, group_chapter, group_work, log_chapters, transaction_chapter
from .broker_process import BrokerProcess
from .scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stage import Stage

CHAPTERS: Final[tuple[Callable[[Scene], None], ...]] = (
    log_chapters.load,
    log_chapters.start,
    log_chapters.produce,
    log_chapters.consume,
    log_chapters.look_at_disk,
    log_chapters.ask_by_time,
    group_chapter.share,
    transaction_chapter.transact,
    crash_chapter.kill,
)
"""In the order in which they are told; each finds in the scene what those before it left."""


def _tell(scene: Scene) -> None:
    """Tell the whole story; the stage knows afterwards which checks failed."""
    started = time.perf_counter()
    scene.stage.open(
        f"Odradek {__version__}",
        "An event-streaming broker that speaks Kafka's protocol, in Python. In the next few seconds it starts, takes "
        "a real data set over TCP, gives it back, shares it out among the members of a group, counts it exactly once "
        "in a transaction, is killed, and gives everything back again.",
    )
    try:
        for chapter in CHAPTERS:
            chapter(scene)
    finally:
        scene.broker.stop()
    _end(scene.stage, time.perf_counter() - started)


def _end(stage: Stage, took_s: float) -> None:
    failed = stage.failed_checks
    if failed:
        stage.close(f"[bold]{len(failed)} of {stage.checks_count} checks failed[/] after {took_s:.1f} s.")
        return
    stage.close(
        f"[bold]All {stage.checks_count} checks hold[/], after {took_s:.1f} s. What now?\n\n"
        "  odradek serve             a broker for any Kafka client\n"
        "  odradek topics --help     and produce, consume, groups, transactions\n"
        "  odradek assign simulate   who of a group would read what\n"
        "  odradek config describe   every setting, explained"
    )


def run_story(stage: Stage, *, keeps_files: bool, now_s: int) -> None:
    """Run the demo in a temporary folder.

    Args:
        stage: Where it is shown.
        keeps_files: Whether the folder stays.
        now_s: Seconds since the Unix epoch: changes of clocks after this are left out.
    """
    folder = Path(tempfile.mkdtemp(prefix="odradek-demo-"))
    broker = BrokerProcess(folder / "data", folder / "broker.log", group_work.BROKER_SETTINGS)
    try:
        _tell(Scene(stage, broker, folder / "data", now_s))
    finally:
        if keeps_files:
            stage.say(f"The files stay in {folder}.")
        else:
            shutil.rmtree(folder, ignore_errors=True)
