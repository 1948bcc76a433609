"""Shell: `odradek tiered verify` and `odradek tiered restore`: what is in a bucket, and topics out of it."""

from __future__ import annotations

import argparse
import functools
import json
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ConfigError, ProgressLine, id_text

from .store_settings import STORE_KEY, StoreSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.kernel.api import ObjectStore, TopicRestorer

    from .restore import FoundTopic
    from .verify import BucketReport

_STORE_HELP: Final = "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder"
_SET_HELP: Final = f"a setting, such as {STORE_KEY}.endpoint=https://..., may be given several times"
_EPILOG: Final = """\
examples:
  odradek tiered verify --store s3://logs/production
  odradek tiered restore --store s3://logs/production --data-dir ./data

exit status: 0 done, 1 it went wrong, 2 wrong usage or configuration,
  130 interrupted"""
_VERIFY_TEXT: Final = """\
Look through the bucket of a cluster's tiered topics, and say what is wrong:
manifests that cannot be read, gaps between segments, objects that are missing
or have another size or checksum than their manifest says, and objects that no
manifest names (which a broker removes after a while). Nothing is changed, and
brokers may go on meanwhile. Credentials and endpoints come from the
provider's environment variables (AWS_ACCESS_KEY_ID, AWS_ENDPOINT, ...) or
from --set."""
_VERIFY_EPILOG: Final = """\
examples:
  odradek tiered verify --store s3://logs/production
      read everything and compare checksums
  odradek tiered verify --store file:///backup/tiers --sizes-only --json
      compare names and sizes, which is quick; write JSON

exit status: 0 nothing is lost, 1 something is wrong or the store fails,
  2 wrong usage or configuration, 130 interrupted"""
_RESTORE_TEXT: Final = """\
Build the topics of a bucket in an empty data directory, from the bucket
alone. Names, ids, configs and offsets stay; segments stay in the bucket and
are read from there. What was never uploaded is not there: each partition ends
where the bucket's part of it ends. Offsets of consumer groups are not in the
bucket. The brokers that wrote it must be gone."""
_RESTORE_EPILOG: Final = """\
examples:
  odradek tiered restore --store s3://logs/production --data-dir ./data
      restore every topic
  odradek tiered restore --store s3://logs/production --data-dir ./data \\
      --topic orders --topic payments
      restore two topics; the others stay in the bucket, for later

exit status: 0 done, 1 it went wrong, 2 wrong usage or configuration,
  130 interrupted"""


def add_tiered_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], restore_topics: TopicRestorer
) -> None:
    """Add `tiered` with its sub-commands."""
    tiered = commands.add_parser(
        "tiered",
        help="check the bucket of tiered topics, and restore topics from it",
        description="Check the bucket of tiered topics, and restore topics from it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = tiered.add_subparsers(title="commands", metavar="COMMAND", required=True)
    verify = _add_action(
        actions, "verify", "look through a bucket, and say what is wrong", _VERIFY_TEXT, _VERIFY_EPILOG
    )
    verify.add_argument(
        "--topic", action="append", default=[], dest="topics", help="only this one; may be given several times"
    )
    verify.add_argument("--sizes-only", action="store_true", help="compare sizes, and read no objects for checksums")
    verify.set_defaults(run=run_verify)
    restore = _add_action(
        actions, "restore", "build topics in an empty data directory from a bucket", _RESTORE_TEXT, _RESTORE_EPILOG
    )
    restore.add_argument("--data-dir", required=True, type=Path, metavar="DIR", help="empty, or not there")
    restore.add_argument(
        "--topic",
        action="append",
        default=[],
        dest="topics",
        metavar="NAME",
        help="only this one; may be given several times",
    )
    restore.add_argument("--config", type=Path, metavar="FILE", help="the broker's configuration")
    restore.set_defaults(run=functools.partial(run_restore, restore_topics))


def _add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, text: str, epilog: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(
        name,
        help=summary,
        description=text,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--store", required=True, metavar="URL", help=_STORE_HELP)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="options", help=_SET_HELP)
    parser.add_argument("--json", action="store_true", help="write JSON, for scripts")
    return parser


def open_from(arguments: argparse.Namespace) -> ObjectStore:
    """Open the store that the command line names.

    Raises:
        ConfigError: An option is wrong.
    """
    from .stores import open_store

    options = {}
    numbers = {"timeout_ms": 30_000, "connect_timeout_ms": 5_000}
    for text in arguments.options:
        name, separator, value = text.partition("=")
        if not separator:
            raise ConfigError("expected key=value", where=f"--set {text}")
        if not name.startswith(f"{STORE_KEY}."):
            continue  # the broker's
        option = name.removeprefix(f"{STORE_KEY}.").replace(".", "_")
        if option in numbers:
            if not value.isdecimal() or not int(value):
                raise ConfigError("expected milliseconds above 0", where=f"--set {text}")
            numbers[option] = int(value)
        else:
            options[option] = value
    return open_store(arguments.store, StoreSettings(**numbers, options=options))


# -- verify ----------------------------------------------------------------------------------------------------------


def run_verify(arguments: argparse.Namespace) -> int:
    """Look through a bucket, print what is there and what is wrong, and return the exit status."""
    from .verify import report_as_json, verify_bucket

    with _progress("verifying") as on_progress:
        report = verify_bucket(
            open_from(arguments),
            topics=arguments.topics,
            reads_objects=not arguments.sizes_only,
            on_progress=on_progress,
        )
    if arguments.json:
        _print(json.dumps(report_as_json(report), indent=2))
    else:
        _print_report(report)
    return 0 if report.is_sound else 1


def _print_report(report: BucketReport) -> None:
    _print(f"{report.url}, cluster {report.cluster_id or 'unknown'}")
    rows: list[Sequence[object]] = []
    for each in report.partitions:
        manifest = each.manifest
        wrong = sum(finding.is_error for finding in each.findings)
        state = f"{wrong} wrong" if wrong else "sound"
        if manifest is None:
            rows.append((each.partition.topic, each.partition.partition, "-", "-", "-", "-", state))
            continue
        rows.append(
            (
                each.partition.topic,
                each.partition.partition,
                manifest.log_start_offset,
                manifest.end_offset,
                len(manifest.segments),
                manifest.size_bytes,
                state,
            )
        )
    _print_table(("topic", "partition", "start", "end", "segments", "bytes", ""), rows)
    findings = report.all_findings
    for finding in findings:
        _print(f"{'ERROR' if finding.is_error else 'note'} {finding.kind}: {finding.place}: {finding.text}")
    errors = sum(finding.is_error for finding in findings)
    compared = f"{report.bytes_read:,} bytes were read and compared" if report.bytes_read else "sizes were compared"
    _print(f"errors: {errors}, notes: {len(findings) - errors}; {compared}")


# -- restore ---------------------------------------------------------------------------------------------------------


def run_restore(restore_topics: TopicRestorer, arguments: argparse.Namespace) -> int:
    """Read a bucket, write its topics into a data directory, print them, and return the exit status."""
    from .restore import read_topics

    store = open_from(arguments)
    with _progress("reading") as on_progress:
        cluster_id, topics = read_topics(store, only=arguments.topics, on_progress=on_progress)
    needed = [f"{STORE_KEY}={arguments.store}", "remote.log.storage.system.enable=true"]
    restore_topics(
        [each.topic for each in topics],
        data_dir=arguments.data_dir,
        cluster_id=cluster_id,
        config=arguments.config,
        settings=[*needed, *arguments.options],
    )
    if arguments.json:
        _print(json.dumps({"cluster_id": cluster_id, "topics": [_topic_as_json(each) for each in topics]}, indent=2))
        return 0
    rows = [
        (
            each.topic.topic,
            len(each.topic.partitions),
            each.records_end,
            sum(len(manifest.segments) for manifest in each.manifests if manifest is not None),
            sum(manifest.size_bytes for manifest in each.manifests if manifest is not None),
            id_text(each.topic.topic_id),
        )
        for each in topics
    ]
    _print_table(("topic", "partitions", "offsets", "segments", "bytes", "topic id"), rows)
    _print(f"restored into {arguments.data_dir}, cluster {cluster_id}; start it with\n")
    words = ["odradek", "serve", "--data-dir", str(arguments.data_dir)]
    words += ["--config", str(arguments.config)] if arguments.config is not None else []
    _print(f"  {shlex.join([*words, *(word for each in needed for word in ('--set', each))])}")
    return 0


def _topic_as_json(found: FoundTopic) -> dict[str, object]:
    return {
        "topic": found.topic.topic,
        "topic_id": id_text(found.topic.topic_id),
        "configs": dict(found.topic.configs),
        "partitions": [
            {
                "partition": number,
                "log_start_offset": manifest.log_start_offset if manifest is not None else 0,
                "end_offset": partition.next_offset,
                "segments": len(manifest.segments) if manifest is not None else 0,
                "size_bytes": manifest.size_bytes if manifest is not None else 0,
            }
            for number, (partition, manifest) in enumerate(zip(found.topic.partitions, found.manifests, strict=True))
        ],
    }


# -- printing --------------------------------------------------------------------------------------------------------


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their columns; numbers stand to the right."""
    shown = [[str(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    to_right = [all(isinstance(row[number], int) for row in rows) for number in range(len(columns))]
    for row in shown:
        cells = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, to_right, strict=True)
        ]
        _print("  ".join(cells).rstrip())


@contextmanager
def _progress(verb: str) -> Iterator[Callable[[int, int, str], None]]:
    line = ProgressLine()
    try:
        yield lambda done, total, partition: line.show(lambda: f"{verb}: {done} of {total} partitions {partition}")
    finally:
        line.clear()
