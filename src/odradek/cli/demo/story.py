"""Shell: what the demo tells, chapter by chapter; each does something, shows it, and checks it."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from odradek import __version__
from odradek.kernel.machine.system.compiled_parts import missing_parts, told

from . import crash_chapter, group_chapter, group_work, log_chapters, transaction_chapter
from .broker_process import BrokerProcess
from .scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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


OPENING: Final = (
    "An event-streaming broker that speaks Kafka's protocol, in Python. In the next few seconds it starts, takes "
    "a real data set over TCP, gives it back, shares it out among the members of a group, counts it exactly once "
    "in a transaction, is killed, and gives everything back again."
)
WHAT_NOW: Final = (
    "  odradek serve             a broker for any Kafka client\n"
    "  odradek topics --help     and produce, consume, groups, transactions\n"
    "  odradek demo --cluster    three brokers, one of which is killed\n"
    "  odradek demo --tiered     old segments in an object store\n"
    "  odradek demo --spark      streams of PySpark, exactly once\n"
    "  odradek demo --delay      records that are seen when they are due\n"
    "  odradek demo --retry      failed records that come back, and dead letters\n"
    "  odradek assign simulate   who of a group would read what\n"
    "  odradek config describe   every setting, explained"
)


class Stoppable(Protocol):
    """A broker, or several."""

    def stop(self) -> None:
        """Have it end cleanly, if it runs."""
        ...


def tell(
    stage: Stage, broker: Stoppable, chapters: Sequence[Callable[[], None]], *, opening: str, what_now: str
) -> None:
    """Tell a whole story; the stage knows afterwards which checks failed, and the broker has ended."""
    started = time.perf_counter()
    stage.open(f"Odradek {__version__}", opening)
    if slow := told(missing_parts()):
        stage.say(slow)
    try:
        for chapter in chapters:
            chapter()
    finally:
        broker.stop()
    took_s = time.perf_counter() - started
    failed = stage.failed_checks
    if failed:
        stage.close(f"[bold]{len(failed)} of {stage.checks_count} checks failed[/] after {took_s:.1f} s.")
    else:
        stage.close(f"[bold]All {stage.checks_count} checks hold[/], after {took_s:.1f} s. What now?\n\n{what_now}")


@contextmanager
def temporary_folder(stage: Stage, *, keeps_files: bool) -> Iterator[Path]:
    """Make a folder, and remove it at the end, or say where it is."""
    folder = Path(tempfile.mkdtemp(prefix="odradek-demo-"))
    try:
        yield folder
    finally:
        if keeps_files:
            stage.say(f"The files stay in {folder}.")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def run_story(stage: Stage, *, keeps_files: bool, now_s: int) -> None:
    """Run the demo in a temporary folder.

    Args:
        stage: Where it is shown.
        keeps_files: Whether the folder stays.
        now_s: Seconds since the Unix epoch: changes of clocks after this are left out.
    """
    with temporary_folder(stage, keeps_files=keeps_files) as folder:
        broker = BrokerProcess(folder / "data", folder / "broker.log", group_work.BROKER_SETTINGS)
        scene = Scene(stage, broker, folder / "data", now_s)
        chapters = [partial(chapter, scene) for chapter in CHAPTERS]
        tell(stage, broker, chapters, opening=OPENING, what_now=WHAT_NOW)
