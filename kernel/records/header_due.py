"""Pure core: when records are to go that say so in a header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classes import frozen
from .key_table import digits_of, last_header, numbers_in
from .record_view import NEVER_DUE
from .run import HAS_COMPILED_RUNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .record_view import RecordView
    from .run import RecordRun


@frozen
class HeaderDue:
    """A `RecordDue`: epoch milliseconds in up to 19 decimal digits, in the last header of a name.

    Records without one, or with anything else in it, never go.

    Attributes:
        header: The header's name.
        is_compiled: Whether the compiled functions do the work.
    """

    header: str
    is_compiled: bool = HAS_COMPILED_RUNS

    def __call__(self, record: RecordView) -> int:
        """See `RecordDue`."""
        number = digits_of(last_header(record.headers, self.header))
        return NEVER_DUE if number is None else number

    def of_run(self, run: RecordRun) -> Sequence[int]:
        """Return the times of all records of a batch.

        Raises:
            CorruptRecordsError: One is malformed.
        """
        return numbers_in(run, self.header, takes_binary=False, missing=NEVER_DUE, is_compiled=self.is_compiled)
