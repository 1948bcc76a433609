"""Shell: `odradek log dump PATH...`: log directories, partitions' directories and single files, as lines or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ConfigError, ProgressLine, fills_a_file, part_text

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
    """Print the files and return the exit status: 0, or 1 when something is damaged.

    Raises:
        ExceptionGroup: Paths are not there: a ConfigError for each.
    """
    missing = [ConfigError(f"{path} is not there") for path in arguments.paths if not path.exists()]
    if missing:
        raise ExceptionGroup("paths are not there", missing)
    files = list(files_below(arguments.paths))
    progress = _Progress(files)
    try:
        problems = sum(_dump(path, arguments, progress) for path in files)
    finally:
        progress.end()
    return 1 if problems else 0


def _dump(path: Path, arguments: argparse.Namespace, progress: _Progress) -> int:
    """Print one file; return how many problems it has."""
    problems = 0
    if not arguments.json:
        sys.stdout.write(f"{path}\n")
    data = path.read_bytes()
    for row in dump_file(path.name, data, with_records=arguments.records):
        problems += row.kind == "problem"
        if arguments.json:
            line = json.dumps({"file": str(path), "kind": row.kind, **row.fields}, default=_text)
        else:
            line = f"  {row}"
        sys.stdout.write(f"{line}\n")
        if row.kind == "batch":
            progress.note(path, row.fields["position"])
    progress.note_end(len(data))
    return problems


class _Progress:
    """How far a dump has come, for a person who sends it into a file."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._line = ProgressLine()
        self._is_watched = self._line.is_watched and fills_a_file()
        self._total_bytes = sum(file.stat().st_size for file in files) if self._is_watched else 0
        self._done_bytes = 0

    def note(self, file: Path, position: object) -> None:
        """Show that a file is read up to a position, in bytes."""
        if self._is_watched:
            assert isinstance(position, int), "a batch stands somewhere"
            self._line.show(lambda: f"{part_text(self._done_bytes + position, self._total_bytes)}{file}")

    def note_end(self, size_bytes: int) -> None:
        """Take note that a file of this size is done."""
        self._done_bytes += size_bytes

    def end(self) -> None:
        """Take the line away."""
        self._line.clear()


def files_below(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files given, and those of directories that a dump knows, in order of their names."""
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if file.is_file() and is_dumpable(file.name))
        else:
            yield path


def _text(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
