"""Shell: a broker that has kept its metadata alone becomes the first of several controllers, and keeps what it has.

Its metadata log names no voters, as there was nobody to name. That it is the only one is said by who runs it
(`odradek format --standalone --ignore-formatted`): two nodes that both believed it of themselves would be two clusters.
Then the founding beside its log names it, and the log goes on under an election among voters, of which it is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..controller.founding_checkpoint import FILE_NAME as FOUNDING
from ..controller.quorum_state import FILE_NAME as QUORUM_STATE
from ..controller.small_files import telling_disk_errors
from ..controller.snapshots import SnapshotStore
from ..machine.files import read_file
from ..records.batch import CorruptRecordsError, iterate_batches
from ..records.control import KRaftVoters, LeaderChange, read_control_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..machine.files import Files
    from ..records.control import ControlRecord

_SEGMENT = ".log"


def was_kept_alone(directory: Path, files: Files, node_id: int) -> bool:
    """Return whether a metadata log was kept by one node alone, and nothing beside it or in it says who votes.

    Args:
        directory: The log's; the broker is stopped. Blocks for reading it.
        files: Where it is.
        node_id: The node's.

    Raises:
        CorruptionError: It is damaged.
        StorageError: It cannot be read.
    """
    with telling_disk_errors("list", directory):
        try:
            names = {entry.name for entry in files.listdir(directory)}
        except FileNotFoundError:
            return False
    segments = sorted(name for name in names if name.endswith(_SEGMENT))
    if FOUNDING in names or not segments:
        return False
    newest, _problem = SnapshotStore(directory=directory, files=files).load_newest()
    if newest is not None and newest.quorum is not None:
        return False
    # Where an election that votes has led it, the log says whom it led.
    has_led = False
    for name in segments:
        for record in _said_of_the_quorum(directory / name, files):
            is_of_others = isinstance(record, LeaderChange) and any(each.voter_id != node_id for each in record.voters)
            if isinstance(record, KRaftVoters) or is_of_others:
                return False
            has_led = has_led or isinstance(record, LeaderChange)
    return has_led or QUORUM_STATE not in names


def _said_of_the_quorum(segment: Path, files: Files) -> Iterator[ControlRecord]:
    with telling_disk_errors("read", segment):
        data = read_file(files, segment)
    try:
        for position, header in iterate_batches(memoryview(data)):
            if header.is_control:
                yield from read_control_records(data, header, position)
    except CorruptRecordsError as error:
        if data[max(error.position, 0) :].strip(b"\0"):  # a crash may leave room that was never written
            raise
