"""Pure core: waiters that a shard answers later, and those that it believes to be waiting still.

One that was told something else meanwhile (its records were refused, the broker stops) is gone, but its shard cannot
know: what it answers such a waiter is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..contracts.coordinator import PARKED
from .answers import Settlement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..contracts.coordinator import Waiter
    from ..errors import KafkaError


class WaitingRoom:
    """The waiters of one shard. Owned by the reactor's task."""

    __slots__ = ("_gone", "_parked")

    def __init__(self) -> None:
        """Make it; nobody waits."""
        self._parked: dict[int, Waiter] = {}
        self._gone: dict[int, Waiter] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, waiter: Waiter) -> None:
        """Let one wait."""
        self._parked[id(waiter)] = waiter

    def note_gone(self, waiter: Waiter) -> None:
        """Take note that one was told something, though its shard holds it for parked."""
        self._gone[id(waiter)] = waiter

    def is_gone(self, waiter: Waiter) -> bool:
        """Return whether one was told something, though its shard holds it for parked."""
        return id(waiter) in self._gone

    def take(self, waiter: Waiter) -> bool:
        """Take out one that is answered; return False when its answer is to be dropped."""
        self._parked.pop(id(waiter), None)
        return self._gone.pop(id(waiter), None) is None

    def taken(self, answers: Iterable[tuple[Waiter, Any]]) -> list[tuple[Waiter, Any]]:
        """Take out all that are answered; return the answers that are not to be dropped."""
        return [(waiter, response) for waiter, response in answers if self.take(waiter)]

    def concluded(
        self,
        response: Any,
        waiter: Waiter | None,
        answers: Sequence[tuple[Waiter, Any]],
        error: KafkaError | None,
        *,
        may_park: bool,
    ) -> list[Settlement]:
        """Return what is told to whom an operation answers; its own waiter is parked if that is what it decided.

        Args:
            response: For its own waiter, or `PARKED`.
            waiter: Who asked, if anybody did.
            answers: Of others, who are taken out already.
            error: Why its records were refused, if they were.
            may_park: Whether whoever is to wait can be answered later; otherwise it is told the error, and gone.
        """
        settlements: list[Settlement] = []
        if waiter is not None and not (answers and any(waiter is each for each, _ in answers)):
            if response is PARKED and may_park:
                self.park(waiter)
            elif response is PARKED:
                settlements.append(Settlement(waiter, None, error))
                self.note_gone(waiter)
            else:
                settlements.append(Settlement(waiter, response, error))
        if answers:
            settlements += [Settlement(each, told, error) for each, told in answers]
        return settlements

    def send_away(self) -> list[Waiter]:
        """Return all that wait, who are gone now."""
        parked, self._parked = self._parked, {}
        self._gone.update(parked)
        return list(parked.values())

    def close(self) -> list[Waiter]:
        """Forget everybody; return all that wait."""
        parked, self._parked = self._parked, {}
        self._gone.clear()
        return list(parked.values())
