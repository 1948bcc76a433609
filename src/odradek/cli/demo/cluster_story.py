"""Shell: the demo of a cluster: what it tells, chapter by chapter."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from . import cluster_chapters
from .cluster_scene import BrokerProcesses, ClusterScene
from .story import tell, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stage import Stage

CHAPTERS: Final[tuple[Callable[[ClusterScene], None], ...]] = (
    cluster_chapters.start,
    cluster_chapters.produce,
    cluster_chapters.kill,
    cluster_chapters.bring_back,
    cluster_chapters.drain,
    cluster_chapters.look,
)
"""In the order in which they are told; each finds in the scene what those before it left."""
OPENING: Final = (
    "Three brokers keep every record three times. In the next few seconds a real data set goes into them; meanwhile "
    "one that leads is killed, comes back, another is drained, and in the end everything that was acknowledged is "
    "there, once, in order, in three copies."
)
WHAT_NOW: Final = (
    "  odradek serve --brokers 3   such a cluster by one command\n"
    "  odradek cluster describe    its brokers, and who keeps its metadata\n"
    "  odradek topics create orders --partitions 6 --replicas 3\n"
    "  odradek sim                 brokers on virtual time, seed by seed"
)


def run_cluster_story(stage: Stage, *, keeps_files: bool, now_s: int) -> None:
    """Run the demo of a cluster in a temporary folder.

    Args:
        stage: Where it is shown.
        keeps_files: Whether the folder stays.
        now_s: Seconds since the Unix epoch: changes of clocks after this are left out.
    """
    with temporary_folder(stage, keeps_files=keeps_files) as folder:
        brokers = BrokerProcesses(folder, {})
        scene = ClusterScene(stage, brokers, folder / "data", now_s)
        chapters = [partial(chapter, scene) for chapter in CHAPTERS]
        tell(stage, brokers, chapters, opening=OPENING, what_now=WHAT_NOW)
