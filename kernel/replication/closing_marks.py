"""Shell: in which boot of the machine the voters of a log directory ended in good order, last: said once, beside them.

    the end      `leave_mark`    what they had acknowledged is on the disk, and they kept their votes in this boot
    a start      `take_mark`     read and removed, before any log of a voter is opened

A voter that was voting in another boot may have lost the end of its log with the machine's power. That a log was closed
in good order is no answer: it may have been so by a process that had found it shortened, and could not write down that
it did, as on a full disk, or before it came to that. So it is believed only of the boot in which the voter kept its
votes last, and to take the mark away needs no room. Where it is missing the voter is in doubt.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ..machine.files import disk_error, read_file, replace_file

if TYPE_CHECKING:
    from ..machine.files import Files

MARK_NAME: Final = "partition-votes-closed"


def take_mark(files: Files, log_dir: str) -> UUID | None:
    """Return the boot in which the voters of a log directory ended; the mark of it is gone, durably. Blocks.

    Returns:
        None where they did not end in good order, or had been opened since.

    Raises:
        StorageError: The disk is failing.
    """
    path = Path(log_dir) / MARK_NAME
    try:
        data = read_file(files, path)
        files.unlink(path)
        files.fsync_directory(path.parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk_error(error, "remove", path) from error
    return UUID(bytes=data) if len(data) == len(UUID(int=0).bytes) else None


def leave_mark(files: Files, log_dir: str, boot_id: UUID) -> None:
    """Note that the voters of a log directory end in a boot; durable on return. Blocks.

    Raises:
        StorageError: The disk is full or failing.
    """
    path = Path(log_dir) / MARK_NAME
    try:
        replace_file(files, path, boot_id.bytes, is_durable=True)
    except OSError as error:
        raise disk_error(error, "write", path) from error
