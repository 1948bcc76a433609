"""Shell: `odradek log dump PATH...`: log directories, partitions' directories and single files, as lines or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .dump import dump_file, is_dumpable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_EPILOG: Final = """\
examples:
  odradek log dump ./data/orders-0
      a partition: segments, indexes, checkpoints
  odradek log dump --records ./data/orders-0/00000000000000000000.log
      one segment, with every record of its batches
  odradek log dump ./data --json | grep '"problem"'
      what is damaged

exit status: 0 done, 1 something is damaged, 2 wrong usage or a path that is
  not there"""


def add_log_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `log` with its one sub-command `dump`."""
    log = commands.add_parser("log", help="look into log directories", description="Look into log directories.")
    dump = log.add_subparsers(title="commands", metavar="COMMAND", required=True).add_parser(
        "dump",
        help="print segments, indexes, snapshots and checkpoints",
        description="Print what is in Kafka's files on disk.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    dump.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="a file, a partition's or a log directory")
    dump.add_argument("--records", action="store_true", help="print records too, and not only batches")
    dump.add_argument("--json", action="store_true", help="one JSON object a line")
    dump.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the files and return the exit status: 0, 1 when something is damaged, 2 when a path is not there."""
    missing = [path for path in arguments.paths if not path.exists()]
    for path in missing:
        sys.stderr.write(f"odradek: {path} is not there\n")
    if missing:
        return 2
    problems = 0
    for path in files_below(arguments.paths):
        if not arguments.json:
            sys.stdout.write(f"{path}\n")
        for row in dump_file(path.name, path.read_bytes(), with_records=arguments.records):
            problems += row.kind == "problem"
            if arguments.json:
                line = json.dumps({"file": str(path), "kind": row.kind, **row.fields}, default=_text)
            else:
                line = f"  {row}"
            sys.stdout.write(f"{line}\n")
    return 1 if problems else 0


def files_below(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files given, and those of directories that a dump knows, in order of their names."""
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if file.is_file() and is_dumpable(file.name))
        else:
            yield path


def _text(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
