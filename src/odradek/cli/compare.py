"""Shell: `odradek compare`: one workload over every combination of settings; a table, JSON, a page with plots."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.errors import ConfigError

from . import note, say
from .options import document, natural, positive
from .output import plural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from odradek.kernel.broker import BrokerOptions
    from odradek.lab.compare.comparison import Comparison
    from odradek.lab.compare.faults import Cluster
    from odradek.lab.compare.report import Report
    from odradek.lab.compare.variations import Combination, Variations
    from odradek.lab.compare.workload import Workload

ROUNDS: Final = 3
SEED: Final = 1
WORKLOAD_SUFFIX: Final = ".toml"
STANDARD_OUTPUT: Final = "-"
_BESIDE_S: Final = 20
"""About how long a run of a cluster takes beside what is paced."""

_NOTES: Final = """
A key is a topic's or a broker's, of Kafka, of ours, or of any installed plugin
(`odradek config describe`). In a key that is a list, + joins entries of one
value: cleanup.policy=delete,compact,compact+delete are three values.

Each run has a broker of its own in a process of its own, on a free port, with
an empty folder; it is killed at its end (kill -9), started again, and read once
more. Rounds interleave the combinations. Figures that the system does not give are
shown as -. docs/how-to/compare.md says how to read them.

With --brokers, --replicas or --faults each run has a cluster: so many processes and a
controller's. The fault comes and ends at the same moments in every run: none,
leader-killed, follower-killed, leader-paused, slow-follower, two-of-three.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    document(
        parser,
        "Run the same seeded workload over every combination of settings, and show what each takes and gives: "
        "throughput, latencies, processor time, memory, bytes on disk and in the store, write and read amplification, "
        "and what became of every acknowledged record.",
        [
            ("compare --vary odradek.storage=segment,memory", "two storages, under updates of few keys"),
            (
                "compare --vary odradek.storage=segment,tiered,memory \\\n"
                "          --vary cleanup.policy=delete,compact --html compare.html",
                "six combinations, and a page with plots",
            ),
            ("compare --vary compression.type=producer,zstd --workload bulk --rounds 5", "narrower ranges"),
            (
                "compare --vary odradek.election=isr,quorum --brokers 3 --replicas 3 \\\n"
                "          --faults none,leader-killed,slow-follower",
                "two elections, and what clients have of three accidents",
            ),
            ("compare --workloads", "the workloads that have a name, as files to begin with"),
        ],
        notes=_NOTES,
        exit_status="0 all combinations ran and lost nothing while their broker lived, 1 one did not, 2 wrong usage or "
        "configuration, 130 interrupted (what was measured by then is shown)",
    )
    parser.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="KEY=VALUE,VALUE",
        help="a key and the values to compare; several make every combination of them",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="options", help="one setting for all"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="an odradek.toml for all: plugins and settings")
    parser.add_argument(
        "-w", "--workload", metavar="NAME|FILE", help="what is done: a name or a .toml file (default keyed-updates)"
    )
    parser.add_argument("--workloads", action="store_true", help="print the named workloads, and exit")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument(
        "-n", "--records", type=positive, metavar="N", help="how many, in place of the workload's own number"
    )
    amount.add_argument(
        "--seconds",
        type=positive,
        metavar="N",
        help="as many as the first combination takes in so many seconds, the same for all",
    )
    parser.add_argument("--brokers", type=positive, metavar="N", help="a cluster of so many brokers (default 3)")
    parser.add_argument("--replicas", type=positive, metavar="N", help="of the topic (default 3, or all brokers)")
    parser.add_argument(
        "--faults", metavar="NAME,NAME", help="what happens to the brokers of a cluster; each with every combination"
    )
    parser.add_argument("-r", "--rounds", type=positive, default=ROUNDS, metavar="N", help=f"default {ROUNDS}")
    parser.add_argument(
        "--seed", type=natural, default=SEED, metavar="N", help=f"for everything random (default {SEED})"
    )
    parser.add_argument(
        "--dir", type=Path, metavar="DIR", help="where brokers keep their data (default: temporary files)"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots; it needs nothing else")
    parser.add_argument("--json", metavar="FILE|-", help="write all figures; to standard output instead of the tables")


def run(arguments: argparse.Namespace) -> int:
    """Compare, and show what came of it; an interruption ends the comparing, not the showing.

    Raises:
        ConfigError: An option is wrong, or no combination can be run.
        KeyboardInterrupt: It was interrupted.
        OSError: A file cannot be written.
    """
    if arguments.workloads:
        _print_workloads()
        return 0
    from odradek.kernel.broker import read_broker_options
    from odradek.lab.compare.comparison import Comparison

    from .compare_text import Watcher
    from .running import run_interruptible

    _check_files(arguments)
    options = read_broker_options(config=arguments.config, environment={}, options=())
    cluster = _cluster(arguments)
    workload = _workload(arguments, cluster)
    variations, combinations = _combinations(arguments, options, workload, cluster)
    is_interrupted = False
    with Watcher() as watcher:
        comparison = Comparison(
            workload=workload,
            seed=arguments.seed,
            combinations=combinations,
            folder=arguments.dir,
            config=arguments.config,
            on_step=watcher.note,
            cluster=cluster,
        )
        if cluster is not None:
            watcher.foretell(_foretold(comparison, arguments.rounds))
        facts = _facts(arguments, options)
        try:
            run_interruptible(comparison.run, arguments.rounds, arguments.seconds)
        except KeyboardInterrupt:
            is_interrupted = True
    report = _report(arguments, variations, comparison, facts, cluster)
    if is_interrupted and not report.measured:
        raise KeyboardInterrupt
    _show(arguments, report)
    if is_interrupted:
        raise KeyboardInterrupt
    return 1 if report.failures or report.losses else 0


def _print_workloads() -> None:
    from odradek.lab.compare.builtin_workloads import BUILTIN

    print(
        "\n\n".join(f"# {name}{WORKLOAD_SUFFIX}\n{workload.as_toml()}".rstrip() for name, workload in BUILTIN.items())
    )


def _check_files(arguments: argparse.Namespace) -> None:
    """See now what would else end minutes of work with an error.

    Raises:
        ConfigError: A file cannot be where it shall be, or nothing is varied.
    """
    if not arguments.vary:
        raise ConfigError("nothing to compare", hint="--vary odradek.storage=segment,memory; odradek compare --help")
    written = [("--html", arguments.html)]
    if arguments.json not in (None, STANDARD_OUTPUT):
        written.append(("--json", Path(arguments.json)))
    for option, path in written:
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise ConfigError("no file can be written there", where=f"{option} {path}")
    if arguments.dir is not None and not arguments.dir.is_dir():
        raise ConfigError("there is no such folder", where=f"--dir {arguments.dir}")


def _cluster(arguments: argparse.Namespace) -> Cluster | None:
    """Return how many brokers each run has; None where it is one by itself.

    Raises:
        ConfigError: There are more replicas than brokers.
    """
    from odradek.lab.compare.faults import Cluster

    if (arguments.brokers, arguments.replicas, arguments.faults) == (None, None, None):
        return None
    brokers = arguments.brokers or max(Cluster().brokers, arguments.replicas or 0)
    replicas = arguments.replicas or min(Cluster().replicas, brokers)
    if replicas > brokers:
        raise ConfigError(f"there are {brokers} brokers for them", where=f"--replicas {replicas}")
    return Cluster(brokers, replicas)


def _foretold(comparison: Comparison, rounds: int) -> str:
    """Return how long a comparison of clusters takes."""
    from odradek.lab.compare.fault_run import paced_s, run_s_max

    runs = sum(not row.failed for row in comparison.rows) * rounds
    expected_s, at_most_s = paced_s(comparison.workload) + _BESIDE_S, run_s_max(comparison.workload)
    return (
        f"{plural(runs, 'run')} of some {expected_s:.0f} s each, about {runs * expected_s / 60:.0f} minutes in all; "
        f"none takes longer than {at_most_s:.0f} s"
    )


def _workload(arguments: argparse.Namespace, cluster: Cluster | None) -> Workload:
    """Return the workload that was asked for.

    Raises:
        ConfigError: There is none of this name, the file is wrong, or it is nothing for a cluster.
        OSError: The file cannot be read.
    """
    from odradek.lab.compare.builtin_workloads import DEFAULT_NAME, DEFAULT_OF_CLUSTERS, builtin_workload
    from odradek.lab.compare.workload import check_for_cluster, parse_workload

    name = arguments.workload or (DEFAULT_NAME if cluster is None else DEFAULT_OF_CLUSTERS)
    if name.endswith(WORKLOAD_SUFFIX) or "/" in name:
        workload = parse_workload(Path(name).read_text(encoding="utf-8"), name)
    else:
        workload = builtin_workload(name)
    if cluster is not None:
        check_for_cluster(workload, f"workload {workload.name}")
    return workload if arguments.records is None else attrs.evolve(workload, records=arguments.records)


def _combinations(
    arguments: argparse.Namespace, options: BrokerOptions, workload: Workload, cluster: Cluster | None
) -> tuple[Variations, list[tuple[Combination, str]]]:
    """Return all combinations, each with the reason why it is not run, or an empty text.

    Raises:
        ConfigError: A key, a value or a fault is unknown, or no combination can be run.
    """
    from odradek.client.producer_settings import ProducerSettings
    from odradek.lab.compare import preflight
    from odradek.lab.compare.faults import read_faults
    from odradek.lab.compare.variations import Variations, under_faults

    registry = options.config.registry
    for key, hint in preflight.unknown_keys(workload, registry).items():
        raise ConfigError(f"unknown key {key!r}", where=f"workload {workload.name}", hint=hint)
    ProducerSettings.read({"bootstrap.servers": "127.0.0.1:9092", **workload.producer})
    variations = Variations.read(arguments.vary, arguments.options, registry)
    faults = ("",) if cluster is None else read_faults(arguments.faults, cluster)
    plain = variations.combinations(
        {**preflight.TOPIC_SETTINGS, **workload.topic},
        {**preflight.BROKER_SETTINGS, **workload.broker},
        preflight.implied_choices(registry),
    )
    combinations = [
        (combination, preflight.reason_against(combination, workload, registry))
        for combination in under_faults(plain, faults)
    ]
    if all(reason for _combination, reason in combinations):
        raise ConfigError(f"no combination can be run: {combinations[0][1]}", where=combinations[0][0].label)
    return variations, combinations


def _facts(arguments: argparse.Namespace, options: BrokerOptions) -> dict[str, str]:
    import tempfile

    from odradek.lab.compare.machine_facts import machine_facts

    return machine_facts(arguments.dir or Path(tempfile.gettempdir()), options.plugins.loaded)


def _report(
    arguments: argparse.Namespace,
    variations: Variations,
    comparison: Comparison,
    facts: dict[str, str],
    cluster: Cluster | None,
) -> Report:
    from datetime import UTC, datetime

    from odradek.kernel.machine.clock import SystemClock
    from odradek.lab.compare.report import Report

    made_at = datetime.fromtimestamp(SystemClock().now_ms() // 1000, UTC)
    return Report(
        comparison.workload,
        arguments.seed,
        arguments.rounds,
        variations.fixed,
        comparison.rows,
        facts,
        _command(arguments, variations),
        made_at.isoformat(),
        cluster,
    )


def _command(arguments: argparse.Namespace, variations: Variations) -> str:
    """Return the command that compares the same again, without its secrets."""
    words = ["odradek", "compare"]
    for choices in variations.varied:
        words += ["--vary", f"{choices[0].key}={','.join(choice.shown.replace(',', '+') for choice in choices)}"]
    for choice in variations.fixed:
        words += ["--set", f"{choice.key}={choice.shown}"]
    given: list[tuple[str, Any]] = [
        ("--brokers", arguments.brokers),
        ("--replicas", arguments.replicas),
        ("--faults", arguments.faults),
        ("--config", arguments.config),
        ("--workload", arguments.workload),
        ("--records", arguments.records),
        ("--seconds", arguments.seconds),
        ("--rounds", arguments.rounds),
        ("--seed", arguments.seed),
    ]
    for option, value in given:
        words += [] if value is None else [option, str(value)]
    return shlex.join(words)


def _show(arguments: argparse.Namespace, report: Report) -> None:
    """Print the tables, and write the files."""
    from .output import print_json

    if arguments.json == STANDARD_OUTPUT:
        print_json(report.as_json())
    else:
        from .compare_text import print_report

        print_report(report)
    written: list[str] = []
    if arguments.json not in (None, STANDARD_OUTPUT):
        import json

        Path(arguments.json).write_text(json.dumps(report.as_json(), indent=2, ensure_ascii=False), encoding="utf-8")
        written.append(arguments.json)
    if arguments.html is not None:
        from odradek.lab.compare.page import page

        arguments.html.write_text(page(report), encoding="utf-8")
        written.append(str(arguments.html))
    _tell(written, [*report.failures, *report.losses])


def _tell(written: Sequence[str], complaints: Sequence[str]) -> None:
    for path in written:
        note(f"written: {path}")
    for line in complaints:
        say(line)
