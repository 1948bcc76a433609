"""Shell: the demo of tiered storage: what it tells, chapter by chapter."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from . import tiered_chapters
from .broker_process import BrokerProcess
from .story import tell, temporary_folder
from .tiered_scene import TieredScene

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stage import Stage

CHAPTERS: Final[tuple[Callable[[TieredScene], None], ...]] = (
    tiered_chapters.start,
    tiered_chapters.produce,
    tiered_chapters.move,
    tiered_chapters.read_all,
    tiered_chapters.compact,
    tiered_chapters.delete,
)
"""In the order in which they are told; each finds in the scene what those before it left."""
OPENING: Final = (
    "Tiered storage (KIP-405): a log's old segments move to an object store, only the newest stay on this disk, and "
    "no client notices. In the next few seconds a topic of real data moves out while it is served, is read from its "
    "first record on, and another one shrinks in the store to the newest record of each key, which Kafka cannot do."
)
WHAT_NOW: Final = (
    "  odradek serve --set remote.log.storage.system.enable=true\n"
    "                --set odradek.tiered.store=s3://bucket/prefix\n"
    "  odradek topics create old-and-new --config odradek.storage=tiered\n"
    "  odradek tiered verify --store s3://bucket/prefix\n"
    "  odradek tiered restore --help"
)
BROKER_SETTINGS: Final = {
    "remote.log.storage.system.enable": "true",
    # A broker takes seconds, or half a minute, between two looks; the demo has not so much time.
    "remote.log.manager.task.interval.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.cleaner.backoff.ms": "100",
}


def run_tiered_story(stage: Stage, *, keeps_files: bool, now_s: int, store_url: str) -> None:
    """Run the demo of tiered storage in a temporary folder.

    Args:
        stage: Where it is shown.
        keeps_files: Whether the folder stays, and what is in the store.
        now_s: Seconds since the Unix epoch: changes of clocks after this are left out.
        store_url: The object store, empty for a folder; what the demo puts there lies below a name of its own.
    """
    with temporary_folder(stage, keeps_files=keeps_files) as folder:
        url = f"{store_url.rstrip('/')}/{folder.name}" if store_url else (folder / "store").as_uri()
        settings = {**BROKER_SETTINGS, "odradek.tiered.store": url}
        broker = BrokerProcess(folder / "data", folder / "broker.log", settings)
        scene = TieredScene(stage, broker, folder / "data", now_s, store_url=url)
        chapters = [partial(chapter, scene) for chapter in CHAPTERS]
        if keeps_files:
            chapters.pop()  # the last one empties the store
        tell(stage, broker, chapters, opening=OPENING, what_now=WHAT_NOW)
