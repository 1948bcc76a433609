"""Pure core: when records are to go that say so in a header."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import attrs

from ..contracts.cleanup import NEVER_DUE
from .key_table import last_header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contracts.cleanup import RecordView
    from .run import RecordRun

_DECIMAL: Final = re.compile(rb"[0-9]{1,19}")


def due_in(value: bytes | None) -> int:
    """Return the time that a header's value stands for: up to 19 decimal digits; `NEVER_DUE` for anything else."""
    return min(int(value), NEVER_DUE) if value is not None and _DECIMAL.fullmatch(value) else NEVER_DUE


@attrs.frozen
class HeaderDue:
    """A `RecordDue`: epoch milliseconds in decimal, in the last header of a name. Records without one never go.

    Attributes:
        header: The header's name.
    """

    header: str

    def __call__(self, record: RecordView) -> int:
        """See `RecordDue`."""
        return due_in(last_header(record.headers, self.header))

    def of_run(self, run: RecordRun) -> Sequence[int]:
        """Return the times of all records of a batch.

        Raises:
            CorruptRecordsError: One is malformed.
        """
        return [self(record) for record in run.records()]
