"""Shell: `odradek plugins`: what is installed, what is active, which hooks it has, who ships it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.config.settings import read_settings
from odradek.kernel.errors import PluginError
from odradek.kernel.plugin_system.manager import PluginManager, choose_plugins, installed_plugins

from . import plugin_check, plugin_hints, plugin_project, say
from .options import add_json_option, document
from .output import print_json, print_table
from .restoring import restore_topics

if TYPE_CHECKING:
    from odradek.kernel.plugin_system.manager import FoundPlugin


ACTIONS: Final = (
    ("new", "write the project of a plugin", plugin_project),
    ("check", "load plugins, check their signatures, run the quick part of their kits", plugin_check),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    document(
        parser,
        "Show the plugins of this installation. All that is installed is active, unless `[plugins]` of an "
        "odradek.toml says otherwise with `enable` or `disable`.",
        [
            ("plugins list", "what is here"),
            ("plugins list --config odradek.toml", "what that file makes active"),
            ("plugins new my_stage --kind stage", "begin one of your own"),
            ("plugins check my_stage", "see whether it can be used"),
        ],
    )
    parser.set_defaults(config=None, json=False)  # without an action it lists
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="list plugins")
    document(
        listing,
        "List every installed plugin, whether it is active, broken (and why) or disabled, the hooks it "
        "implements (without their odradek_ in front), its commands, and the distribution that ships it.",
        [("plugins list --json", "the same for a script")],
        exit_status="0 every active plugin can be loaded, 1 one cannot, 2 wrong usage or configuration",
    )
    listing.add_argument("--config", type=Path, metavar="FILE", help="the odradek.toml that chooses among them")
    add_json_option(listing)
    for name, what, module in ACTIONS:
        action = actions.add_parser(name, help=what)
        module.configure(action)
        action.set_defaults(act=module.run)


def run(arguments: argparse.Namespace) -> int:
    """List the plugins, or do what else was asked; return 1 when an active one is broken."""
    if "act" in arguments:
        status: int = arguments.act(arguments)
        return status
    for hint in plugin_hints.announced_elsewhere():
        say(hint)
    file = read_settings(config=arguments.config).file
    installed = installed_plugins()
    active = choose_plugins(installed, file.enable, file.disable)
    shown = [
        _look_at(plugin, is_active=plugin in active)
        for plugin in sorted({*installed, *active}, key=lambda plugin: plugin.name)
    ]
    if arguments.json:
        print_json(shown)
    else:
        print_table(
            ("name", "state", "hooks", "commands", "shipped by", "what it is"),
            [
                (
                    row["name"],
                    row["state"],
                    row["hooks"],
                    row["commands"],
                    row["distribution"] or row["module"],
                    row["summary"],
                )
                for row in shown
            ],
        )
    return 1 if any(row["state"] == "broken" for row in shown) else 0


def _look_at(plugin: FoundPlugin, *, is_active: bool) -> dict[str, Any]:
    """Load one plugin and return what there is to say about it."""
    row: dict[str, Any] = {
        "name": plugin.name,
        "state": "active" if is_active else "disabled",
        "hooks": [],
        "commands": [],
        "distribution": plugin.distribution,
        "module": plugin.module,
        "summary": "",
    }
    if is_active:
        manager = PluginManager()
        try:
            manager.load([plugin])
        except PluginError as error:
            return {**row, "state": "broken", "summary": str(error)}
        (loaded,) = manager.loaded
        commands = argparse.ArgumentParser().add_subparsers()
        manager.cli_commands(commands, restore_topics)
        row["commands"] = list(commands.choices)
        row["hooks"] = [hook.removeprefix("odradek_") for hook in loaded.hooks]
        row["summary"] = loaded.summary.partition(". ")[0].rstrip(".")
    return row
