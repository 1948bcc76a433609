"""Shell: tells by the log which of the configs that a client has set are not, or not as they are, what counts.

These are configs of parts that are not built, when they are set; and a group's own numbers beyond what this broker
allows, at the start too: its bounds change by a restart.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..config.keys import Scope
from .image import SCOPES, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..config.broker import BrokerConfig
    from .image import MetadataDelta, MetadataImage

log = logging.getLogger(__name__)


class ConfigWarnings:
    """Compares each image with the one before. Life: made with an image, then told of every next one, by one task."""

    def __init__(self, config: BrokerConfig, image: MetadataImage, *, is_internal: Callable[[str], bool]) -> None:
        """Begin with an image, of whose configs only numbers beyond their bounds are told.

        Args:
            config: The broker's: its keys, which of them have an effect, and its bounds, which are fixed at the start.
            image: What is there already.
            is_internal: Whether a topic is the broker's own, whose configs nobody else has chosen.
        """
        self._config = config
        self._image = image
        self._is_internal = is_internal
        for group in sorted(name for kind, name in image.configs if kind == ResourceType.GROUP):
            self._tell_bounds(group, image.config(ResourceType.GROUP, group))

    def changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow a change of the committed metadata."""
        before, self._image = self._image, image
        for kind, name in sorted(delta.changed_configs):
            scope = SCOPES.get(kind)
            if scope is None or (scope is Scope.TOPIC and self._is_internal(name)):
                continue
            known, texts = before.config(kind, name), image.config(kind, name)
            new = {key: text for key, text in texts.items() if known.get(key) != text}
            for _key, line in self._config.registry.without_effect(scope, new):
                log.warning("%s %s: %s", scope.value, name or "default", line)
            if scope is Scope.GROUP:
                self._tell_bounds(name, new)

    def _tell_bounds(self, group: str, texts: Mapping[str, str]) -> None:
        from ..config.group_bounds import beyond_bounds  # where no group sets anything no start pays for it

        for line in beyond_bounds(self._config, texts):
            log.warning("group %s: %s", group, line)
