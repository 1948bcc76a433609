"""Shell: the demo of failed records: what it tells, chapter by chapter."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from . import retry_chapters
from .broker_process import BrokerProcess
from .retry_scene import RetryScene
from .story import tell, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stage import Stage

BROKER_SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0"}
"""A group of one waits for nobody else."""
CHAPTERS: Final[tuple[Callable[[RetryScene], None], ...]] = (
    retry_chapters.start,
    retry_chapters.fail,
    retry_chapters.die,
    retry_chapters.replay,
    retry_chapters.crash,
    retry_chapters.use_another_client,
)
"""In the order in which they are told; each finds in the scene what those before it left."""
OPENING: Final = (
    "Failed records: what a consumer, any consumer, cannot work on it gives back, goes on, and sees again later; what "
    "fails too often ends where somebody can look at it. No service that moves records about, no consumer that sleeps. "
    "In the next seconds a calendar does not answer, a record dies and is replayed, a worker dies in the middle of a "
    "transaction, and a broker is killed while records wait in it."
)
WHAT_NOW: Final = (
    "  odradek retry enable orders --group billing --levels 5s,1m,10m --attempts 5\n"
    "  odradek retry list\n"
    "  odradek dlq list orders --group billing     and show, replay, purge\n"
    "  odradek dlq --help"
)


def run_retry_story(stage: Stage, *, keeps_files: bool, now_s: int) -> None:
    """Run the demo of failed records in a temporary folder.

    Args:
        stage: Where it is shown.
        keeps_files: Whether the folder stays.
        now_s: Seconds since the Unix epoch: the changes of this moment's year are worked on.
    """
    with temporary_folder(stage, keeps_files=keeps_files) as folder:
        broker = BrokerProcess(folder / "data", folder / "broker.log", BROKER_SETTINGS)
        scene = RetryScene(stage, broker, folder / "data", now_s)
        chapters = [partial(chapter, scene) for chapter in CHAPTERS]
        tell(stage, broker, chapters, opening=OPENING, what_now=WHAT_NOW)
