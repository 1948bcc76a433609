"""Pure core: what stands in a configuration file, whatever its syntax."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..classes import frozen
from .broker import Setting


@frozen
class StartTopic:
    """A topic to have at start.

    Attributes:
        name: Its name.
        partitions: How many; `None` takes `num.partitions`.
        replication_factor: How many replicas of each; `None` takes `default.replication.factor`.
        configs: Its overrides.
        where: File and line.
    """

    name: str
    partitions: int | None
    replication_factor: int | None
    configs: Mapping[str, Setting]
    where: str


@frozen
class FileSections:
    """What a configuration file says; a `server.properties` has nothing but the broker's keys.

    Attributes:
        broker: The broker's keys.
        enable: The plugins to load: names or module paths; None: all that are installed.
        disable: Names of plugins not to load.
        plugins: Name of a plugin to its own settings, as TOML gives them.
        plugin_places: File and line of a plugin's section, by its name, and of each key, by the section's and its own.
        topics: Topics to have at start, in the order of the file.
    """

    broker: Mapping[str, Setting] = attrs.field(factory=dict)
    enable: tuple[str, ...] | None = None
    disable: tuple[str, ...] = ()
    plugins: Mapping[str, Mapping[str, object]] = attrs.field(factory=dict)
    topics: tuple[StartTopic, ...] = ()
    plugin_places: Mapping[tuple[str, ...], str] = attrs.field(factory=dict)
