"""Shell: `odradek plugins check`: loads plugins, looks at what they offer, and runs the quick part of their kits."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.kernel.config.keys import Scope
from odradek.kernel.errors import PluginError
from odradek.kernel.plugin_system.manager import PluginManager, choose_plugins, installed_plugins

from . import say
from .mistakes import of_choice
from .options import document
from .plugin_hints import announced_elsewhere
from .restoring import restore_topics
from .stage_settings import settings_in_use

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from odradek.kernel.plugin_system.manager import FoundPlugin, LoadedPlugin

OURS: Final = "odradek "
"""How the distribution of our own plugins begins."""
NEEDED: Final = ("pytest", "hypothesis")
NEED_BROKER: Final = ("coordinators", "api_handlers", "tier", "services", "metrics", "leader_changed")
"""Hooks that are asked, or called, only by a broker that is built."""

HAVE_KIT: Final = frozenset({"storage", "append stage", "delay queue", "retry policy", "cleanup policy", "assignor"})
"""What is offered that `plugin_kits` has a kit for."""

TESTS: Final = """\
from hypothesis import HealthCheck, settings
from {package}.plugin_kits import kits_of
from {package}.plugin_check import find

settings.register_profile("quick", max_examples={examples}, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("quick")
globals().update(kits_of(find({name!r})))
"""
EXAMPLES: Final = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `plugins check`."""
    document(
        parser,
        "Load a plugin, check that its hooks and what it offers can be used, and run the quick part of the contract "
        "kit of each storage, cleanup policy, assignor, append stage, delay queue and retry policy. Without a name "
        "every plugin is checked that did not come with Odradek. All of a kit, and the levels that a plugin promises, "
        "is for its own tests. A stage is tried with settings that the plugin's topic keys take.",
        [
            ("plugins check my_stage", "one, by its name"),
            ("plugins check my_package.my_stage", "or by its module, while it is not installed"),
        ],
        exit_status="0 all is well, 1 something is wrong, 2 wrong usage",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="a plugin's name, or its module")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="show tracebacks")


def run(arguments: argparse.Namespace) -> int:
    """Check plugins; return 1 when something is wrong with one.

    Raises:
        PluginError: One cannot be used.
    """
    for hint in announced_elsewhere():
        say(hint)
    if arguments.name is not None:
        chosen: Sequence[FoundPlugin] = [find(arguments.name)]
    else:
        chosen = [plugin for plugin in installed_plugins() if not plugin.distribution.startswith(OURS)]
        if not chosen:
            print("no plugin is installed but those that came with Odradek")
    return max([check(plugin) for plugin in chosen], default=0)


def find(name: str) -> FoundPlugin:
    """Return a plugin by its name or module.

    Raises:
        PluginError: There is none.
    """
    installed = installed_plugins()
    if "." not in name and importlib.util.find_spec(name) is None and name not in {each.name for each in installed}:
        known = [each.name for each in installed]
        raise PluginError(name, f"is not installed{of_choice(name, known, tell_all=True)}")
    (found,) = choose_plugins(installed, [name], ())
    return found


def check(found: FoundPlugin) -> int:
    """Check one plugin and say what was looked at; return 1 when it does not keep what its kit asks.

    Raises:
        PluginError: It cannot be used.
    """
    manager = PluginManager()
    manager.load([found])
    (loaded,) = manager.loaded
    hooks = [hook.removeprefix("odradek_") for hook in loaded.hooks]
    print(f"{found.name}: loaded from {found.module}, hooks: {', '.join(hooks)}")
    offers = _offers(manager)
    for kind, names in offers.items():
        print(f"{found.name}: offers {kind} {', '.join(names)}, which can be used")
    if later := [hook for hook in hooks if hook in NEED_BROKER]:
        print(f"{found.name}: {', '.join(later)}: asked by a broker only; `odradek serve` checks it at the start")
    if HAVE_KIT.isdisjoint(offers):
        print(f"{found.name}: no kit for what it offers")
        return 0
    keys = [key for _plugin, key in manager.config_keys() if key.scope is Scope.TOPIC]
    for name, stage in manager.append_stages().items():
        if settings_in_use(stage, keys) is None:
            told = "no settings were found that use it, so its own tests have to try it"
            print(f"{found.name}: append stage {name}: {told}")
    return _run_kits(loaded)


def _offers(manager: PluginManager) -> dict[str, list[str]]:
    """Ask for all that is offered without a broker; what cannot be used is refused on the way."""
    import argparse

    commands = argparse.ArgumentParser().add_subparsers()
    manager.cli_commands(commands, restore_topics)
    offers = {
        "configuration key": [key.name for _plugin, key in manager.config_keys()],
        "storage": list(manager.storages()),
        "election": list(manager.elections()),
        "append stage": list(manager.append_stages()),
        "delay queue": list(manager.delay_queues()),
        "retry policy": list(manager.retry_policies()),
        "cleanup policy": list(manager.cleanup_policies()),
        "assignor": list(manager.assignors()),
        "command": list(commands.choices),
    }
    return {kind: names for kind, names in offers.items() if names}


def _run_kits(loaded: LoadedPlugin) -> int:
    """Run the quick part of the kits in a process of its own; return 1 when a promise is broken."""
    name = loaded.found.name
    if missing := [module for module in NEEDED if importlib.util.find_spec(module) is None]:
        print(f"{name}: its kit was not run: install {' and '.join(missing)}, as `odradek[testing]` does")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tests = Path(folder) / "test_kits.py"
        package = __name__.rpartition(".")[0]
        tests.write_text(TESTS.format(package=package, examples=EXAMPLES, name=name), encoding="utf-8")
        (Path(folder) / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        options = ["-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", "--rootdir", folder]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "-c", str(Path(folder) / "pytest.ini"), str(tests)],
            capture_output=True,
            text=True,
            check=False,
        )
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or [""]
    if done.returncode == 0:
        print(f"{name}: quick part of its kit: {lines[-1]} (skipped is what its own tests promise, or not)")
        return 0
    print(done.stdout + done.stderr)
    raise PluginError(name, f"does not keep what its kit asks: {lines[-1]}")
