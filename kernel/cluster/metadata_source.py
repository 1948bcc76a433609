"""Pure core: where a member's metadata comes from: the log of other nodes that it follows, or a log of its own.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import Protocol

from ..metadata.image_source import ImageSource


class MetadataSource(ImageSource, Protocol):
    """Committed metadata that grows; its listeners are told in order.

    Invariant: `image` never goes back.
    """

    async def wait_caught_up(self) -> None:
        """Wait until all is here that was committed when the leader was heard of first. Cancelled: nothing happens."""
        ...

    async def wait_for(self, offset: int) -> None:
        """Wait until the record at `offset` is in the image. Cancelled: nothing happens."""
        ...
