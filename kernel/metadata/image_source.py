"""Pure core: where a node has the committed metadata from: a log that it keeps, or one that it follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .image import MetadataImage
    from .image_listeners import MetadataListener


class PublishedImages(Protocol):
    """The newest committed metadata that is here, and who is told of it."""

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata."""
        ...

    def add_listener(self, listener: MetadataListener) -> None:
        """Tell `listener` of every image from now on; what is there already it finds in `image`."""
        ...


class ImageSource(PublishedImages, Protocol):
    """Images, and how far the log goes from which they come."""

    @property
    def end_offset(self) -> int:
        """Where the log ends here."""
        ...

    @property
    def leader_epoch(self) -> int:
        """The epoch of the controller, as far as it is known."""
        ...
