"""Shell: `odradek demo`: shows that it works, on a real data set, in a few seconds, and checks itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.errors import ConfigError

from .. import say
from ..options import document

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    document(
        parser,
        "See it work. A broker is started on a free port, with its data in a temporary folder; every change of the "
        "world's clocks since the 19th century (the IANA time zone database) is produced to it over TCP, read back, "
        "looked up by time, shown on disk, shared out among the members of a group, counted in a transaction that "
        "aborts and one that commits, and read again after the broker was killed. Every step checks itself. "
        "Other brokers on this machine are not touched, and nothing stays behind.",
        [
            ("demo", "a few seconds"),
            ("demo --keep", "keep the folder, to look around with `odradek log dump`"),
            ("demo --cluster", "another story: three brokers, the controller is killed under load, one is drained"),
            ("demo --tiered", "a third: old segments move to an object store, here a folder"),
            ("demo --tiered --store s3://bucket/prefix", "a real one; AWS_ACCESS_KEY_ID, AWS_ENDPOINT, ... say how"),
            ("demo --spark", "a fourth: PySpark streams from topic to topic, is killed, and goes on"),
            ("demo --delay", "a fifth: records that are seen when they are due, and not before"),
            ("demo --retry", "a sixth: what fails comes back later, and ends as a dead letter"),
        ],
        exit_status="0 every check holds, 1 one does not, 130 interrupted",
    )
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder and say where it is")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--cluster", action="store_true", help="show a cluster of three brokers instead")
    other.add_argument("--tiered", action="store_true", help="show tiered storage instead")
    other.add_argument("--spark", action="store_true", help="show Spark instead; needs pyspark, pyarrow and Java")
    other.add_argument("--delay", action="store_true", help="show delayed records instead")
    other.add_argument("--retry", action="store_true", help="show failed records and dead letters instead")
    parser.add_argument("--store", metavar="URL", default="", help="with --tiered: where, such as s3://bucket/prefix")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; return 1 when a check fails."""
    from odradek.kernel.machine.clock import SystemClock

    from .cluster_story import run_cluster_story
    from .delay_story import run_delay_story
    from .retry_story import run_retry_story
    from .spark_story import run_spark_story
    from .stage import Stage
    from .story import run_story
    from .tiered_story import run_tiered_story

    if arguments.store and not arguments.tiered:
        raise ConfigError("--store is for the demo of tiered storage", hint="odradek demo --tiered --store URL")
    if arguments.store.startswith("memory:"):
        raise ConfigError("a store in memory is the broker's alone", hint="leave --store out for a folder")
    stage = Stage()
    now_s = SystemClock().now_ms() // 1000
    if arguments.cluster:
        run_cluster_story(stage, keeps_files=arguments.keep, now_s=now_s)
    elif arguments.tiered:
        run_tiered_story(stage, keeps_files=arguments.keep, now_s=now_s, store_url=arguments.store)
    elif arguments.spark:
        run_spark_story(stage, keeps_files=arguments.keep, now_s=now_s)
    elif arguments.delay:
        run_delay_story(stage, keeps_files=arguments.keep, now_s=now_s)
    elif arguments.retry:
        run_retry_story(stage, keeps_files=arguments.keep, now_s=now_s)
    else:
        run_story(stage, keeps_files=arguments.keep, now_s=now_s)
    for failed in stage.failed_checks:
        say(f"the demo found: {failed}")
    return 1 if stage.failed_checks else 0
