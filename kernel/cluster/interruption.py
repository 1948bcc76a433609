"""Pure core: what keeps a node from following the metadata log, as its operator is told of it.

That controllers are started, or elect another leader, is nothing wrong, but for a while: it is told once, and as a
warning when it lasts. Whatever else is wrong is told at once, and again when it is something else.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import Final

from ..errors import ErrorCode, KafkaError
from ..peers.errors import ClientError

PATIENCE_MS: Final = 5000
"""How long controllers may take to elect a leader before somebody is to look."""
OF_ELECTIONS: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH}
)
"""What controllers answer while they, or who asks, do not know yet who leads."""


class Interruption:
    """Life: made; `note` what fails, `end` when nothing does any more. Owned by who follows."""

    def __init__(self) -> None:
        """Begin with nothing wrong."""
        self._since_ms: int | None = None
        self._told = ""

    def end(self) -> None:
        """Take note that all is well."""
        self._since_ms, self._told = None, ""

    def note(self, problem: Exception, now_ms: int) -> int | None:
        """Return at which level of `logging` this is to be told; None for not at all.

        Args:
            problem: What has failed.
            now_ms: The monotonic clock.
        """
        is_first = self._since_ms is None
        self._since_ms = now_ms if self._since_ms is None else self._since_ms
        if isinstance(problem, ClientError) or (isinstance(problem, KafkaError) and problem.code in OF_ELECTIONS):
            if is_first:
                return logging.INFO
            has_lasted = now_ms - self._since_ms >= PATIENCE_MS
            told, self._told = self._told, "it lasts" if has_lasted else self._told
            return logging.WARNING if has_lasted and not told else None
        told, self._told = self._told, str(problem)
        return logging.WARNING if told != self._told else None
