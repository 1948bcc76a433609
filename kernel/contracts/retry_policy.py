"""Pure core: the retry policy contract: when a record that a consumer failed is given back, and when it is dead.

The kernel counts how often a record was failed, lets it wait, and gives it back (`kernel/retry`).

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class RetryPolicy(Protocol):
    """The policy of one retry topic. Asked for each failed record, by any thread: keeps nothing, must not block."""

    def delay_ms(self, attempt: int, drawn: float) -> int | None:
        """Return how long a record waits until it is given back; None when it is not any more: it is dead.

        Args:
            attempt: Which attempt that would be, >= 1: 1 is the first time that it is given back.
            drawn: By chance, 0 <= drawn < 1, for policies that scatter.

        Returns:
            Milliseconds, >= 0. From some attempt on None, whatever is drawn: no record goes round for ever.
        """
        ...


class RetryPolicyFactory(Protocol):
    """What a plugin offers under a name in `odradek_retry_policies`."""

    def __call__(self, settings: Mapping[str, object]) -> RetryPolicy:
        """Make the policy of a topic; called again when its settings change.

        Args:
            settings: The topic's settings, by key, the plugin's own among them.
        """
        ...
