"""Shell: the demo of Spark: what it tells, chapter by chapter."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from . import log_chapters, spark_chapters
from .broker_process import BrokerProcess
from .spark_process import check_installed
from .spark_scene import SparkScene
from .story import tell, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stage import Stage

CHAPTERS: Final[tuple[Callable[[SparkScene], None], ...]] = (
    log_chapters.load,
    log_chapters.start,
    log_chapters.produce,
    spark_chapters.stream,
    spark_chapters.go_on,
    spark_chapters.prove,
)
"""In the order in which they are told; each finds in the scene what those before it left."""
OPENING: Final = (
    "Topics as sources and sinks of Spark, batch and streaming, without a jar. In the next half minute a real data set "
    "is streamed through a windowed aggregation into another topic; the whole job is killed in the middle of a "
    "micro-batch, goes on from its checkpoint, and a batch query proves that every count was written exactly once."
)
WHAT_NOW: Final = (
    "  spark.read.format('odradek')         change one word in a job of yours\n"
    "  examples/spark/tour.py               batch, streaming, projection, exactly-once\n"
    "  docs/how-to/spark.md                 every option; what differs from the connector"
)
BROKER_SETTINGS: Final = {
    # A killed job's transaction is ended by the next run, or when its time is over: the broker looks often.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


def run_spark_story(stage: Stage, *, keeps_files: bool, now_s: int) -> None:
    """Run the demo of Spark in a temporary folder.

    Args:
        stage: Where it is shown.
        keeps_files: Whether the folder stays.
        now_s: Seconds since the Unix epoch: changes of clocks after this are left out.

    Raises:
        ConfigError: PySpark, PyArrow or Java is not there.
    """
    check_installed()
    with temporary_folder(stage, keeps_files=keeps_files) as folder:
        broker = BrokerProcess(folder / "data", folder / "broker.log", BROKER_SETTINGS)
        scene = SparkScene(stage, broker, folder / "data", now_s, folder=folder)
        chapters = [partial(chapter, scene) for chapter in CHAPTERS]
        tell(stage, broker, chapters, opening=OPENING, what_now=WHAT_NOW)
