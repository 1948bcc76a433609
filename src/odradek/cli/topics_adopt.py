"""Shell: `odradek topics adopt DIR`: what another broker wrote becomes topics of this one."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.kernel.machine.progress import ProgressLine

from .options import add_json_option, directory, document
from .output import plural, print_json, print_table

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the action's options."""
    document(
        parser,
        "Register the partition directories of Apache Kafka, or of another broker, as topics of this one. Topic and "
        "partition come from the directories' names, the topic's id from its partition.metadata, if there is one.\n\n"
        "DIR holds the directories: it is what log.dirs was there. The files are copied into this broker's own data "
        "and checked; the originals stay as they are. When DIR is this broker's own data directory, nothing is copied. "
        "All topics are taken, or none: one that is here already with the same partitions is left alone. Stop the "
        "broker first, and the one that wrote DIR.",
        [
            ("topics adopt /var/lib/kafka/data", "take everything but the metadata log"),
            ("topics adopt backup --topic orders --data-dir ./data", "take one topic into the data of --data-dir"),
        ],
    )
    parser.add_argument("directory", type=directory, metavar="DIR", help="where the partitions' directories lie")
    parser.add_argument(
        "--topic", action="append", default=[], dest="only", help="take only this one; may be given several times"
    )
    group = parser.add_argument_group("the broker, as for `odradek serve`")
    group.add_argument("--config", type=Path, metavar="FILE", help="odradek.toml or server.properties")
    group.add_argument("--data-dir", type=directory, metavar="DIR", help="where its records are kept")
    group.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="options", help="a setting")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Adopt, and show which topics came; a broker's parts are loaded only for that."""
    from odradek.cli.logs.lines import configure_logging
    from odradek.kernel.adoption.adopting import adopt
    from odradek.kernel.broker import read_broker_options
    from odradek.kernel.types import id_text

    from .running import run_interruptible

    configure_logging(0)
    options = read_broker_options(
        config=arguments.config,
        environment=os.environ,
        options=arguments.options,
        listen=["127.0.0.1:0"],
        data_dir=arguments.data_dir,
    )
    line = ProgressLine()
    try:
        adoption = run_interruptible(
            functools.partial(
                adopt, options, arguments.directory, only=arguments.only, on_begun=functools.partial(_show, line)
            )
        )
    finally:
        line.clear()
    if arguments.json:
        print_json(
            [
                {
                    "topic": topic.topic,
                    "topic_id": id_text(topic.topic_id),
                    "partitions": topic.partitions_count,
                    "was_known": topic.was_known,
                }
                for topic in adoption.topics
            ]
        )
        return 0
    print_table(
        ("topic", "partitions", "topic id", ""),
        [
            (
                topic.topic,
                topic.partitions_count,
                id_text(topic.topic_id),
                "was known" if topic.was_known else "adopted",
            )
            for topic in adoption.topics
        ],
    )
    print(f"{plural(adoption.copied_count, 'partition')} copied")
    return 0


def _show(line: ProgressLine, partition: str, number: int, total: int) -> None:
    line.show_now(f"adopting {partition}, {number} of {total}")
