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


def kafka_says(*words: str, may_fail: bool = False) -> str:
    """Run a command of the folder of peers, which must succeed or `may_fail`; return what it printed."""
    done = subprocess.run(kafka_command(*words), capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)  # pytest shows it where a test failed
    assert may_fail or done.returncode == 0, f"{words[:2]} ended with status {done.returncode}"
    return done.stdout


def damage_that_kafka_sees(*folders: Path, in_use: Sequence[Path] = (), may_have_gaps: bool = True) -> list[str]:
    """Have DumpLogSegments read every log, index and snapshot below the folders; return what it finds fault with.

    Records are iterated deeply, each entry of an index is held against the log, and indexes pass the check of a broker
    that starts.

    Args:
        folders: Of logs that were closed.
        in_use: Of logs that were not: their last index has room behind its entries, as Kafka's has, and is not checked
            as at a start.
        may_have_gaps: Whether offsets may be missing, or segments begin elsewhere than at 0: of each of these, its own
            too, Kafka 4.3.1's tool says that its offsets have a gap.
    """
    report = kafka_says("verify-log", *map(str, [*folders, *in_use]), may_fail=True)
    assert "files read" in report
    damage = [line for line in report.splitlines() if line.startswith("damaged")]
    if may_have_gaps:
        damage = [line for line in damage if "Non-consecutive" not in line]
    indexes = sorted(
        path
        for folder in folders
        for kind in ("index", "timeindex")
        for path in folder.rglob(f"*.{kind}")
        if not path.parent.name.endswith(("-delete", "-stray"))
    )
    if not indexes:
        return damage
    words = ("tool", "DumpLogSegments", "--index-sanity-check", "--files", ",".join(map(str, indexes)))
    lines = set(kafka_says(*words, may_fail=True).splitlines())
    # Where the tool says that there is no entry, there must be no byte.
    empty = [path for path in indexes if f"{path} is empty." in lines and not path.stat().st_size]
    passed = [path for path in indexes if f"{path} passed sanity check." in lines]
    stopped_at = [path for path in indexes if path not in empty and path not in passed][:1]
    return damage + [f"{path} fails the sanity check" for path in stopped_at]
