"""Shell: assignors by the names that active plugins offer, for `partition.assignment.strategy`.

The one place of the client that knows plugins: an assignor is a policy, and the same plugins serve brokers, clients and
`odradek assign simulate`. Kafka's class names are understood too.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.contracts.assignor import Assignor

DEFAULT_STRATEGY: Final = ("range", "cooperative-sticky")
"""Kafka's default: range as long as not all members know the other, and without a rebalance of the world from it to the
other."""
_KEY: Final = "partition.assignment.strategy"
_KAFKA_PACKAGE: Final = "org.apache.kafka.clients.consumer."
_KAFKA_CLASSES: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def resolve_assignors(given: Sequence[object]) -> tuple[Assignor, ...]:
    """Return assignors by their names; objects are taken as they are, `module:name` is imported.

    Raises:
        ConfigError: No active plugin offers one, or two have the same name.
        PluginError: A plugin that offers assignors cannot be loaded.
    """
    wanted = tuple(given) or DEFAULT_STRATEGY
    offered = _offered() if any(isinstance(each, str) and ":" not in each for each in wanted) else {}
    found = [_resolve(each, offered) for each in wanted]
    names = [assignor.name for assignor in found]
    if len(set(names)) < len(names):
        raise ConfigError(f"{_KEY} names an assignor twice: {', '.join(names)}")
    return tuple(found)


def _resolve(given: object, offered: dict[str, Assignor]) -> Assignor:
    from ..settings import load_object

    if not isinstance(given, str):
        return cast("Assignor", given)
    if ":" in given:
        return cast("Assignor", load_object(_KEY, given))
    name = _KAFKA_CLASSES.get(given.removeprefix(_KAFKA_PACKAGE), given)
    if name not in offered:
        known = ", ".join(sorted(offered)) or "none"
        raise ConfigError(f"{_KEY}: no installed plugin offers an assignor {name!r} (offered: {known})")
    return offered[name]


def _offered() -> dict[str, Assignor]:
    """Return what installed plugins offer; imports them, so only who joins a classic group pays for it."""
    from odradek.kernel.plugin_system.manager import PluginManager, choose_plugins, installed_plugins

    manager = PluginManager()
    manager.load(choose_plugins(installed_plugins(), None, ()))
    return manager.assignors()
