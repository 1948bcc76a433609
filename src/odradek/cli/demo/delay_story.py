"""Shell: the demo of delayed records: what it tells, chapter by chapter."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from . import delay_chapters
from .broker_process import BrokerProcess
from .delay_scene import DelayScene
from .story import tell, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stage import Stage

CHAPTERS: Final[tuple[Callable[[DelayScene], None], ...]] = (
    delay_chapters.start,
    delay_chapters.live_through_a_year,
    delay_chapters.withdraw,
    delay_chapters.abort,
    delay_chapters.kill,
)
"""In the order in which they are told; each finds in the scene what those before it left."""
OPENING: Final = (
    "Delayed records: a producer, any producer, says in a header when a record is to be seen, and consumers, any "
    "consumers, see it then: not before, and once. No second topic, no service that moves records about. In the next "
    "seconds a year of clock changes goes by, a reminder is withdrawn, a transaction aborts, and a broker is killed "
    "while hundreds of records wait in it."
)
WHAT_NOW: Final = (
    "  odradek topics create reminders --config odradek.delay.enable=true\n"
    "  odradek produce reminders -H odradek.deliver.after=5000\n"
    "  odradek delay list reminders     and show, describe, cancel, drain\n"
    "  odradek delay --help"
)


def run_delay_story(stage: Stage, *, keeps_files: bool, now_s: int) -> None:
    """Run the demo of delayed records in a temporary folder.

    Args:
        stage: Where it is shown.
        keeps_files: Whether the folder stays.
        now_s: Seconds since the Unix epoch: the year of this moment goes by.
    """
    with temporary_folder(stage, keeps_files=keeps_files) as folder:
        broker = BrokerProcess(folder / "data", folder / "broker.log", {})
        scene = DelayScene(stage, broker, folder / "data", now_s)
        chapters = [partial(chapter, scene) for chapter in CHAPTERS]
        tell(stage, broker, chapters, opening=OPENING, what_now=WHAT_NOW)
