"""Shell: tells by the log which of the configs that a client has just set belong to parts that are not built."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..config.keys import Scope
from .image import SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..config.registry import Registry
    from .image import MetadataDelta, MetadataImage

log = logging.getLogger(__name__)


class ConfigWarnings:
    """Compares each image with the one before. Life: made with an image, then told of every next one, by one task."""

    def __init__(self, registry: Registry, image: MetadataImage, *, is_internal: Callable[[str], bool]) -> None:
        """Begin with an image, whose configs are told no more.

        Args:
            registry: The keys, and which of them have an effect.
            image: What is there already.
            is_internal: Whether a topic is the broker's own, whose configs nobody else has chosen.
        """
        self._registry = registry
        self._image = image
        self._is_internal = is_internal

    def changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow a change of the committed metadata."""
        before, self._image = self._image, image
        for kind, name in sorted(delta.changed_configs):
            scope = SCOPES.get(kind)
            if scope is None or (scope is Scope.TOPIC and self._is_internal(name)):
                continue
            known, texts = before.config(kind, name), image.config(kind, name)
            new = [key for key, text in texts.items() if known.get(key) != text]
            for _key, line in self._registry.without_effect(scope, new):
                log.warning("%s %s: %s", scope.value, name or "default", line)
