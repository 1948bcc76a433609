"""Shell: who is told of every new image of the metadata, in order."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..machine.turnstile import Slices
    from .image import MetadataDelta, MetadataImage

MetadataListener: TypeAlias = "Callable[[MetadataDelta, MetadataImage], Generator[None, None, None] | None]"
"""Told of every new image, in order, before the operations that made it are answered. Must not block or raise.

One that may have much to do returns it as steps.
"""


class ImageListeners:
    """The listeners of one broker. Owned by the task that publishes its images."""

    def __init__(self) -> None:
        """Begin without any."""
        self._listeners: list[MetadataListener] = []

    def add(self, listener: MetadataListener) -> None:
        """Tell `listener` of every image from now on."""
        self._listeners.append(listener)

    async def publish(self, delta: MetadataDelta, image: MetadataImage, slices: Slices) -> None:
        """Have the listeners follow. Cancelled: all the same, as what is committed is so; they wait for nobody."""
        with trio.CancelScope(shield=True):
            for listener in self._listeners:
                steps = listener(delta, image)
                if steps is not None:
                    await slices.run(steps)
