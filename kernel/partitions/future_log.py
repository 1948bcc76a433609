"""Shell: a copy of a replica's log on its way to another log directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classes import define

if TYPE_CHECKING:
    from ..contracts.disk_work import LogMove
    from ..machine.throttle import Throttle


@define(eq=False)
class FutureLog:
    """A copy of a replica's log on its way to another log directory.

    Attributes:
        log_dir: Where it goes.
        move: How far it is.
        throttle: How fast it may be.
        is_under_way: Whether its turn has come, and its segments are to stay what they are.
    """

    log_dir: str
    move: LogMove
    throttle: Throttle
    is_under_way: bool = False

    def copy(self) -> None:
        """Run the move's first part, no faster than it may be. Blocks; raises what `LogMove.run` raises."""
        self.move.run(self.throttle.note)

    def stop(self) -> None:
        """Have the copy stop soon, also while it waits for its turn."""
        self.move.stop()
        self.throttle.stop()
