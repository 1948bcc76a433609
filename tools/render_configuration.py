"""Shell: prints the configuration reference: the kernel's keys, and those of the plugins that come with it.

`python -m tools.render_configuration > docs/reference/configuration.md`; a test fails when the page is stale.
"""

from __future__ import annotations

import sys

from odradek.kernel.config.reference import render_page
from odradek.kernel.config.registry import Registry
from odradek.kernel.plugin_system.manager import PluginManager, installed_plugins


def own_plugins() -> PluginManager:
    """Return the plugins that come with the kernel, and nobody else's."""
    plugins = PluginManager()
    plugins.load([plugin for plugin in installed_plugins() if plugin.module.startswith("odradek.plugins.")])
    return plugins


def own_registry() -> Registry:
    """Return the keys of a broker with our own plugins."""
    plugins = own_plugins()
    return Registry.of(plugins.config_keys()).with_cleanup_policies(plugins.cleanup_policies())


def main() -> None:
    """Print the page."""
    sys.stdout.write(render_page(own_registry()))


if __name__ == "__main__":
    main()
