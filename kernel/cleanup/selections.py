"""Pure core: every selection and every due time for whole batches: those that are told of single records, wrapped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..classes import frozen
from ..contracts.cleanup import WeighingSelection
from ..records.header_due import HeaderDue
from ..records.key_table import KeyTable
from ..records.run import GOES, STAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contracts.cleanup import RecordDue, RecordSelection
    from ..records.run import RecordRun


class RunSelection(Protocol):
    """What a pass asks; see `KeyTable`, which is one."""

    @property
    def weighs(self) -> bool:
        """Whether records that stayed earlier must be weighed."""
        ...

    def note_run(self, run: RecordRun, start_offset: int) -> int | None:
        """Take note of records with keys from an offset on; return the first that there was no room for, or None."""
        ...

    def weigh_run(self, run: RecordRun, end_offset: int) -> None:
        """Take note of records with keys below an offset."""
        ...

    def keep_run(self, run: RecordRun, end_offset: int, *, keeps_tombstones: bool) -> bytes:
        """Return a flag for each record; what is not below `end_offset` stays."""
        ...


class RunDue(Protocol):
    """What a pass asks; see `HeaderDue`, which is one."""

    def of_run(self, run: RecordRun) -> Sequence[int]:
        """Return the times of all records of a batch."""
        ...


def selection_of_runs(selection: RecordSelection) -> RunSelection:
    """Return a selection for whole batches."""
    return selection if isinstance(selection, KeyTable) else _RecordByRecord(selection)


def due_of_runs(due_of: RecordDue) -> RunDue:
    """Return a due time for whole batches."""
    return due_of if isinstance(due_of, HeaderDue) else _DueOfEach(due_of)


class _RecordByRecord:
    """Tells a selection of single records."""

    def __init__(self, selection: RecordSelection) -> None:
        self._selection = selection
        self._weighing = selection if isinstance(selection, WeighingSelection) else None

    @property
    def weighs(self) -> bool:
        return self._weighing is not None

    def note_run(self, run: RecordRun, start_offset: int) -> int | None:
        note = self._selection.note
        for record in run.records():
            if record.key is not None and record.offset >= start_offset and not note(record.key, record):
                return record.offset
        return None

    def weigh_run(self, run: RecordRun, end_offset: int) -> None:
        assert self._weighing is not None, "it does not weigh"
        for record in run.records():
            if record.key is not None and record.offset < end_offset:
                self._weighing.weigh(record.key, record)

    def keep_run(self, run: RecordRun, end_offset: int, *, keeps_tombstones: bool) -> bytes:
        keeps = self._selection.keeps
        flags = bytearray()
        for record in run.records():
            if record.offset >= end_offset:
                flags.append(STAYS)
            elif record.key is None:
                flags.append(GOES)
            else:
                stays = keeps(record.key, record)
                flags.append(STAYS if stays and (keeps_tombstones or record.value is not None) else GOES)
        return bytes(flags)


@frozen
class _DueOfEach:
    """Asks of single records."""

    due_of: RecordDue

    def of_run(self, run: RecordRun) -> Sequence[int]:
        return [self.due_of(record) for record in run.records()]
