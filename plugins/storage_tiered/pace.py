"""Shell: keeps what is sent to the store from being faster than a rate, which may change while somebody waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_S: Final = 0.5
"""How often one that waits looks at the rate."""
_PAUSE_S_MIN: Final = 1e-6
"""What is owed for less is paid off by who sends next: a clock may not be able to tell so short a time."""


class Pace:
    """How fast all logs of a broker together may be sent. Owned by the reactor's task.

    Who has sent something owes its bytes; they are paid off at the rate, and nobody who sent goes on before.
    """

    def __init__(self, bytes_per_second: Callable[[], int]) -> None:
        """Make it.

        Args:
            bytes_per_second: Returns the rate as it is now, > 0.
        """
        self._bytes_per_second = bytes_per_second
        self._owed_bytes = 0.0
        self._looked_at_s = 0.0

    async def note(self, size_bytes: int) -> None:
        """Take note of bytes that were sent, and wait until all that was sent is paid off.

        If it is cancelled, they are owed all the same.
        """
        self._pay()
        self._owed_bytes += size_bytes
        while (pause_s := self._owed_bytes / self._bytes_per_second()) >= _PAUSE_S_MIN:
            await trio.sleep(min(pause_s, _LOOK_S))
            self._pay()

    def _pay(self) -> None:
        now_s = trio.current_time()
        paid_bytes = self._bytes_per_second() * (now_s - self._looked_at_s)
        self._owed_bytes = max(0.0, self._owed_bytes - paid_bytes)
        self._looked_at_s = now_s
