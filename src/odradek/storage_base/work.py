"""Pure core: a work in two halves made of functions.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import frozen
from odradek.kernel.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable


def _nothing() -> None:
    """Do nothing."""


def _ignore(error: Exception) -> None:
    """Leave it to `finish`, which raises."""
    del error


@frozen(eq=False)
class Work:
    """A `DiskWork` made of functions.

    Attributes:
        apply: What `finish` does when `run` went well.
        on_thread: What `run` does; must not touch what the reactor's task owns.
        on_error: Told of a failure before `finish` raises it.
    """

    apply: Callable[[], None] = _nothing
    on_thread: Callable[[], None] = _nothing
    on_error: Callable[[Exception], None] = _ignore

    def run(self) -> None:
        """See `DiskWork.run`."""
        self.on_thread()

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if error is not None:
            self.on_error(error)
            raise StorageError(str(error)) from error
        self.apply()
