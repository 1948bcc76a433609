"""Shell: who may wait for news of the metadata log, and how long: never so many that others are short of anything.

Whoever waits has no place among the requests that run (`RequestContext.wait_aside`), but is a task all the same. So
each broker that is registered has one wait, the newest: the connection of the one before is given up, or soon found to
be. Who is not registered yet shares a few.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_MS_MAX: Final = 2000
"""However long somebody is ready to wait: then it hears that there is nothing, and asks again."""
STRANGERS_MAX: Final = 16
"""How many wait that are no brokers yet; the others are answered at once."""


class NewsWaits:
    """The waits of one listener. Owned by the reactor's task."""

    def __init__(self) -> None:
        """Begin without any."""
        self._brokers: dict[int, trio.CancelScope] = {}
        self._strangers_count = 0

    def __repr__(self) -> str:
        return f"NewsWaits({sorted(self._brokers)}, {self._strangers_count} strangers)"

    @contextmanager
    def wait(self, broker_id: int | None, max_wait_ms: int) -> Iterator[None]:
        """Cancel what waits in the block when its time is over, or its place goes to another.

        Args:
            broker_id: Who waits; None who is not registered.
            max_wait_ms: How long it would.
        """
        with trio.move_on_after(min(max(max_wait_ms, 0), WAIT_MS_MAX) / 1000) as scope:
            if broker_id is None:
                with self._stranger(scope):
                    yield
            else:
                with self._broker(broker_id, scope):
                    yield

    @contextmanager
    def _stranger(self, scope: trio.CancelScope) -> Iterator[None]:
        if self._strangers_count >= STRANGERS_MAX:
            scope.cancel()
        self._strangers_count += 1
        try:
            yield
        finally:
            self._strangers_count -= 1

    @contextmanager
    def _broker(self, broker_id: int, scope: trio.CancelScope) -> Iterator[None]:
        before = self._brokers.get(broker_id)
        if before is not None:
            before.cancel()
        self._brokers[broker_id] = scope
        try:
            yield
        finally:
            if self._brokers.get(broker_id) is scope:  # one that took its place may be over, too
                del self._brokers[broker_id]
