"""Pure core: what callers are told of topics.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    import uuid


@attrs.frozen
class TopicInfo:
    """One topic.

    Attributes:
        name: Its name.
        topic_id: Tells it from a deleted namesake; `ZERO_ID` where the broker is older than topic ids (KIP-516).
        partitions: Their numbers, rising.
        is_internal: Whether it is one of the broker's own.
    """

    name: str
    topic_id: uuid.UUID
    partitions: tuple[int, ...]
    is_internal: bool = False
