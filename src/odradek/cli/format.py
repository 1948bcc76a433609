"""Shell: `odradek format`: make a node's log directories those of a cluster by hand, as `kafka-storage format` does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.kernel.errors import ConfigError

from .options import document

if TYPE_CHECKING:
    import argparse

    from odradek.kernel.quorum.formatting import Formatted

LONGEST_ID = 64
"""Of a cluster: Kafka's own have 22 characters."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    document(
        parser,
        "Make the log directories of one node those of a cluster. Nobody has to: controllers that are configured to be "
        "several found their cluster by themselves when all of them are there with empty directories. Kafka starts on "
        "what this command made, and Odradek on what `kafka-storage format` made.",
        [
            ("format -t ID -c server.properties --standalone", "the first controller of a cluster"),
            ("format -t ID -c server.properties --no-initial-controllers", "one that is added to it later"),
            ("format -t ID -c server.properties --standalone -g", "a broker that was alone, as the first of several"),
            ("format -t ID -c server.properties -I 1@a:9093:DIR1,2@b:9093:DIR2,3@c:9093:DIR3", "one of three"),
        ],
    )
    parser.add_argument(
        "-c", "--config", type=Path, required=True, metavar="FILE", help="odradek.toml or server.properties"
    )
    parser.add_argument(
        "-t", "--cluster-id", required=True, metavar="ID", help="the cluster's: the same on all its nodes"
    )
    parser.add_argument(
        "-g", "--ignore-formatted", action="store_true", help="leave directories as they are that are formatted already"
    )
    voters = parser.add_mutually_exclusive_group()
    voters.add_argument("-s", "--standalone", action="store_true", help="this controller is the only voter at first")
    voters.add_argument(
        "-I",
        "--initial-controllers",
        default="",
        metavar="ID@HOST:PORT:DIRECTORY-ID,...",
        help="the voters at first, with the ids that their directories get; the same on all of them",
    )
    voters.add_argument(
        "-N", "--no-initial-controllers", action="store_true", help="who votes is said by other nodes of the cluster"
    )


def run(arguments: argparse.Namespace) -> int:
    """Format, and say what was formatted.

    Raises:
        ConfigError: The options contradict each other or the configuration.
        StorageError: A directory is formatted already, or is another's; or a disk fails.
    """
    from odradek.kernel.broker import read_broker_options
    from odradek.kernel.machine.system.machine import real_machine
    from odradek.kernel.quorum.formatting import Formatting, check_formatting, parse_voters, standalone

    cluster_id: str = arguments.cluster_id
    if not cluster_id.isprintable() or " " in cluster_id or not 0 < len(cluster_id) <= LONGEST_ID:
        raise ConfigError(f"{cluster_id!r} is no id of a cluster", where="--cluster-id", hint="odradek cluster-id")
    config = read_broker_options(config=arguments.config, environment=os.environ, options=[]).config
    names_voters = bool(arguments.standalone or arguments.initial_controllers)
    check_formatting(config, names_voters=names_voters, leaves_voters_open=arguments.no_initial_controllers)
    machine, voters = real_machine(), None
    if arguments.standalone:
        voters = standalone(config, machine)
    elif arguments.initial_controllers:
        voters = parse_voters(arguments.initial_controllers)
    formatting = Formatting(
        config, machine, cluster_id=cluster_id, voters=voters, ignores_formatted=arguments.ignore_formatted
    )
    _tell(formatting.run())
    return 0


def _tell(formatted: Formatted) -> None:
    for what, paths in (
        ("dynamic metadata voter directory", formatted.voters),
        ("metadata directory", formatted.metadata),
        ("data directory", formatted.data),
    ):
        for path in paths:
            print(f"formatted {what} {path}")
    if not (formatted.voters or formatted.metadata or formatted.data):
        print("all of the log directories are formatted already")
