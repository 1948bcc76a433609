"""Shell: `odradek config describe`: every configuration key of brokers, topics and groups, explained."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from odradek.kernel.config.keys import ConfigKey, Scope
from odradek.kernel.config.reference import render_key
from odradek.kernel.config.registry import Registry
from odradek.kernel.errors import ConfigError
from odradek.kernel.plugin_system.manager import PluginManager, installed_plugins

from .options import CommandParser, add_json_option, document
from .output import print_json, print_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Explain configuration keys: all of Kafka's, ours (odradek.*) and those of installed plugins. Nothing is "
        "asked of a broker; `odradek configs` shows what a running one has.",
        [("config describe num.partitions", "what one key means")],
    )
    if isinstance(parser, CommandParser):
        parser.hint = "what a running broker is set to: odradek configs"
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    describe = actions.add_parser("describe", help="explain keys")
    document(
        describe,
        "Explain the keys that are named, or list all of them. A name may hold wildcards (*, ?). A name that does "
        "not exist is answered with the nearest one that does.",
        [
            ("config describe", "all keys, with type and default"),
            ("config describe log.segment.bytes", "one key: its type, default, bounds and meaning"),
            ("config describe 'odradek.*' --scope broker", "all keys of our own that a broker has"),
            ("config describe --json", "everything, for a script"),
        ],
    )
    describe.add_argument("keys", nargs="*", metavar="KEY", help="a key, or a pattern with * and ?")
    scopes = [scope.value for scope in Scope]
    describe.add_argument(
        "--scope", choices=scopes, metavar="WHAT", help=f"only keys that are set on this: {', '.join(scopes)}"
    )
    add_json_option(describe)


def run(arguments: argparse.Namespace) -> int:
    """Print what is known of the keys."""
    plugins = PluginManager()
    plugins.load(installed_plugins())
    registry = Registry.of(plugins.config_keys()).with_cleanup_policies(plugins.cleanup_policies())
    scopes = [scope for scope in Scope if arguments.scope in (None, scope.value)]
    found = find_keys(registry, arguments.keys, scopes)
    if arguments.json:
        print_json([as_json(key) for key in found])
    elif arguments.keys:
        print("\n\n".join(render_key(key) for key in found))
    else:
        print_table(
            ("key", "set on", "type", "default"),
            [(key.name, key.scope.value, key.type.name.lower(), key.default_text) for key in found],
        )
    return 0


def find_keys(registry: Registry, names: Iterable[str], scopes: Iterable[Scope]) -> list[ConfigKey]:
    """Return the keys of these names, or all keys when no name is given.

    Raises:
        ConfigError: Nobody knows a name; the hint says what was probably meant.
    """
    known = {scope: [key for key in registry.keys[scope].values() if not key.is_internal] for scope in scopes}
    found: list[ConfigKey] = []
    for name in names:
        # A listener's own key (`listener.name.<listener>.<key>`) is in no list, but is one.
        exact = [key for scope in known if (key := registry.find(scope, name)) is not None]
        matching = exact or [key for keys in known.values() for key in keys if fnmatch.fnmatchcase(key.name, name)]
        if not matching:
            hints = (registry.hint(scope, name) for scope in known)
            raise ConfigError(f"there is no key {name!r}", hint=next(filter(None, hints), "odradek config describe"))
        found += matching
    return found or sorted(
        (key for keys in known.values() for key in keys), key=lambda key: (key.name, key.scope.value)
    )


def as_json(key: ConfigKey) -> dict[str, object]:
    """Return what is known of a key, for JSON."""
    return {
        "name": key.name,
        "scope": key.scope.value,
        "type": key.type.name.lower(),
        "default": key.default_text,
        "valid": key.valid_values or None,
        "importance": key.importance.value,
        "dynamic": key.is_dynamic,
        "secret": key.is_sensitive,
        "part": key.part.value,
        "works": key.part.stands and not key.refused_because,
        "synonyms": list(key.synonyms),
        "doc": key.doc,
    }
