"""Pure core: the timestamps of ListOffsets that are none, and from which version on each is understood.

*Source:* ListOffsets of Kafka's protocol; KIP-79, KIP-405, KIP-1005 and KIP-1023 (tiered storage), KIP-734.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import Final

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6

FIRST_VERSIONS: Final = {
    LATEST_TIMESTAMP: 1,
    EARLIEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""Below, a broker takes a special timestamp for one that it is not."""
