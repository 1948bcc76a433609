"""Pure core: the pauses between attempts: one rule for requests, connections and metadata.

The pause before attempt n is `initial * 2 ** (n - 1)`, times a random factor of 0.8 to 1.2, so that clients that failed
together do not come back together; and never more than `maximum`. Where that leaves no room to grow it is the pause.

*Source:* KIP-580, `ExponentialBackoff`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    import random

_JITTER: Final = 0.2
_EXPONENT_MAX: Final = 32


@attrs.frozen
class Backoff:
    """Exponential pauses with jitter.

    Attributes:
        initial_ms: The first pause, >= 0.
        maximum_ms: What no pause is longer than; where it is below `initial_ms`, pauses do not grow.
        random_source: Where the jitter comes from.
    """

    initial_ms: int
    maximum_ms: int
    random_source: random.Random

    def pause_ms(self, attempts_count: int) -> int:
        """Return the pause after so many failed attempts (>= 1); 0 after none."""
        if attempts_count <= 0:
            return 0
        if self.maximum_ms <= self.initial_ms:
            return self.maximum_ms
        plain = min(self.maximum_ms, self.initial_ms << min(attempts_count - 1, _EXPONENT_MAX))
        return min(self.maximum_ms, int(plain * self.random_source.uniform(1 - _JITTER, 1 + _JITTER)))
