"""Shell: work with files where there are none: everything happens when it is finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable


@attrs.frozen(eq=False)
class NoWork:
    """A `DiskWork` without a disk."""

    apply: Callable[[], None]

    def run(self) -> None:
        """See `DiskWork.run`: nothing."""

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if error is not None:
            raise StorageError(str(error)) from error
        self.apply()
