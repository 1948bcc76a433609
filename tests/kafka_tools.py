"""What Apache Kafka's own tools say of what we wrote; without them a test is skipped, and fails where CI is true."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from .interop.clients import MissingClientError, peers_command, skip_or_fail

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def kafka_command(*words: str) -> list[str]:
    """Return a command of the folder of peers; without it the test is skipped, or fails where CI is true."""
    try:
        return peers_command(*words)
    except MissingClientError as error:
        skip_or_fail(f"Apache Kafka's tools are not on this machine; need {error}")
        raise


def kafka_says(*words: str) -> str:
    """Run a command of the folder of peers; return what it printed, whatever its status."""
    done = subprocess.run(kafka_command(*words), capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)  # pytest shows it where a test failed
    return done.stdout


def damage_that_kafka_sees(*folders: Path, in_use: Sequence[Path] = ()) -> list[str]:
    """Have DumpLogSegments read every log, index and snapshot below the folders; return what it finds fault with.

    Records are iterated deeply, each entry of an index is held against the log, and indexes pass the check of a broker
    that starts.

    Args:
        folders: Of logs that were closed.
        in_use: Of logs that were not: their last index has room behind its entries, as Kafka's has, and is not checked
            as at a start.
    """
    report = kafka_says("verify-log", *map(str, [*folders, *in_use]))
    assert "files read" in report
    # Kafka 4.3.1's tool says of every segment that does not begin at 0, its own too, that its offsets have a gap.
    damage = [line for line in report.splitlines() if line.startswith("damaged") and "Non-consecutive" not in line]
    indexes = sorted(
        path
        for folder in folders
        for kind in ("index", "timeindex")
        for path in folder.rglob(f"*.{kind}")
        if not path.parent.name.endswith(("-delete", "-stray"))
    )
    if not indexes:
        return damage
    said = kafka_says("tool", "DumpLogSegments", "--index-sanity-check", "--files", ",".join(map(str, indexes)))
    lines = set(said.splitlines())
    # Where the tool says that there is no entry, there must be no byte.
    empty = [path for path in indexes if f"{path} is empty." in lines and not path.stat().st_size]
    passed = [path for path in indexes if f"{path} passed sanity check." in lines]
    stopped_at = [path for path in indexes if path not in empty and path not in passed][:1]
    return damage + [f"{path} fails the sanity check" for path in stopped_at]
