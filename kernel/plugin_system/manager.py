"""Shell: finds plugins, checks them, and asks them for what they offer; nobody else touches pluggy.

The life of the manager: `load` imports and registers the plugins that the configuration wants; the typed methods below,
one for each hook, are called once each while the broker is built; after that only notifications are.

A plugin that cannot be loaded stops the start with one `PluginError`: which, why, what to do.

Source: the form of pluggy's "host" and of tox's plugin facade.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import logging
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pluggy

from .. import hookspecs
from ..classes import frozen
from ..contracts.culprits import note_plugin, where_of_error
from ..contracts.signatures import place_of
from ..errors import ConfigError, PluginError
from .hooks import nearest, problem_with_hooks
from .offers import KINDS, broken, check_offer, remedy

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from ..config.keys import ConfigKey
    from ..contracts.api_handler import ApiHandler, AsyncApiHandler
    from ..contracts.append_stage import AppendStageFactory
    from ..contracts.assignor import Assignor
    from ..contracts.cleanup import CleanupPolicy
    from ..contracts.coordinator import Coordinator
    from ..contracts.delay_queue import DelayQueueFactory
    from ..contracts.election import ElectionFactory
    from ..contracts.restoring import TopicRestorer
    from ..contracts.retry_policy import RetryPolicyFactory
    from ..contracts.services import BrokerHandle, Metric, Service
    from ..contracts.storage_context import StorageFactory
    from ..contracts.tiering import Tier
    from ..types import TopicIdPartition

ENTRY_POINT_GROUP: Final = "odradek.plugins"
EVERYTHING: Final = "*"
"""In `enable`: all that is installed, beside what else is named there."""
PLUGIN_API_VERSION: Final = 1
"""Raised when a hook or a contract changes so that plugins must change too."""
HOOKS: Final = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("odradek_")}
"""The specifications, by name, in the order of a broker's life."""

Offer = TypeVar("Offer")

log = logging.getLogger(__name__)


@frozen
class FoundPlugin:
    """A plugin that is installed, loaded or not.

    Attributes:
        name: The entry point's name; a module path for one that was enabled by its path.
        module: Where it lives, as `package.module`.
        distribution: Who ships it, with its version; empty for one that was enabled by its path.
    """

    name: str
    module: str
    distribution: str


@frozen
class LoadedPlugin:
    """A plugin that is active.

    Attributes:
        found: Where it came from.
        summary: The first line of its docstring.
        hooks: The hooks it implements, in the order of `hookspecs.py`.
        settings: The keys that its section `[plugins.NAME]` may have: its `odradek_plugin_settings`.
    """

    found: FoundPlugin
    summary: str
    hooks: tuple[str, ...]
    settings: tuple[str, ...] = ()


def installed_plugins() -> list[FoundPlugin]:
    """Return all plugins that installed distributions announce, by name; imports none of them.

    Raises:
        PluginError: Two distributions announce the same name.
    """
    found: dict[str, FoundPlugin] = {}
    shippers: dict[int, str] = {}
    for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        distribution = shippers.get(id(entry.dist), "")
        if entry.dist and not distribution:
            distribution = shippers[id(entry.dist)] = _shipper(entry.dist)
        plugin = FoundPlugin(entry.name, entry.value, distribution)
        other = found.setdefault(entry.name, plugin)
        if other.module != plugin.module:
            raise PluginError(
                entry.name,
                f"is announced twice, by {other.distribution or other.module} and by {distribution or plugin.module}: "
                "uninstall one of them, or ask its author for another name",
            )
    return sorted(found.values(), key=lambda plugin: plugin.name)


def _shipper(distribution: importlib.metadata.Distribution) -> str:
    """Return the name and version of a distribution.

    They stand at the head of its metadata; `importlib.metadata` would parse the README behind it, too, as an email.
    """
    head = (distribution.read_text("METADATA") or "").partition("\n\n")[0]
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    return f"{fields.get('Name') or distribution.name} {fields.get('Version') or distribution.version}"


def choose_plugins(
    installed: Iterable[FoundPlugin], enable: Sequence[str] | None, disable: Sequence[str]
) -> list[FoundPlugin]:
    """Return the plugins that a configuration makes active.

    Args:
        installed: What `installed_plugins` found.
        enable: Names, or modules for plugins under development; "*", as None, stands for everything that is installed.
        disable: Names that are left out all the same.

    Raises:
        PluginError: A name is not installed.
    """
    by_name = {plugin.name: plugin for plugin in installed}
    chosen = dict(by_name) if enable is None or EVERYTHING in enable else {}
    for name in enable or ():
        if name in by_name:
            chosen[name] = by_name[name]
        elif "." in name or _is_module(name):
            chosen[name] = FoundPlugin(name, name, "")
        elif name != EVERYTHING:
            known = ", ".join(by_name) or "none"
            meant = nearest(name, tuple(by_name), 0.6)
            told = f"did you mean {meant!r}? " if meant else ""
            raise PluginError(
                name, f"is enabled but not installed (installed: {known}): {told}install it or take it out"
            )
    for name in disable:
        if name not in by_name and name not in chosen:
            raise PluginError(name, "is disabled but not installed: take it out of `disable`")
        chosen.pop(name, None)
    return sorted(chosen.values(), key=lambda plugin: plugin.name)


class PluginManager:
    """The active plugins of one broker or one run of the command line. Owned by whoever builds those."""

    def __init__(self) -> None:
        self._pluggy = pluggy.PluginManager("odradek")
        self._pluggy.add_hookspecs(hookspecs)
        self._loaded: dict[str, LoadedPlugin] = {}
        self._listeners: dict[str, list[tuple[str, Callable[..., Any]]]] = {}
        self.owners: dict[tuple[str, str], str] = {}
        """Which plugin offers what, by kind and name, as `("storage", "segment")`, once it was asked."""

    def __repr__(self) -> str:
        return f"PluginManager({', '.join(self._loaded) or 'no plugins'})"

    @property
    def loaded(self) -> Sequence[LoadedPlugin]:
        """The active plugins, in the order they were loaded."""
        return tuple(self._loaded.values())

    def load(self, plugins: Iterable[FoundPlugin]) -> None:
        """Import and register plugins.

        Raises:
            PluginError: One cannot be imported, has a hook with a wrong name or signature, or was made for another
                version of the plugin API.
        """
        for found in plugins:
            self.register(found, _import(found))

    def register(self, found: FoundPlugin, module: ModuleType | object) -> None:
        """Register one plugin that is imported already.

        Raises:
            PluginError: As `load`.
        """
        wanted = getattr(module, "odradek_plugin_api", PLUGIN_API_VERSION)
        if wanted != PLUGIN_API_VERSION:
            raise PluginError(
                found.name,
                f"was made for version {wanted} of the plugin API, this is version {PLUGIN_API_VERSION}: "
                "install a version of it that fits",
            )
        note_plugin(found.name, found.module)
        marked = self._marked(module)
        if problem := problem_with_hooks(module, HOOKS, marked):
            raise broken(found.name, problem)
        try:
            self._pluggy.register(module, found.name)
            self._pluggy.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            reason = str(error).strip().splitlines()[-1]
            raise broken(found.name, f"cannot be registered: {reason}") from error
        hooks = tuple(hook for hook in HOOKS if hook in marked.values())
        summary = (inspect.getdoc(module) or "").partition("\n")[0]
        settings = tuple(getattr(module, "odradek_plugin_settings", ()))
        self._listeners.clear()
        self._loaded[found.name] = LoadedPlugin(found, summary, hooks, settings)

    def _marked(self, module: ModuleType | object) -> dict[str, str]:
        """Return what a module marks with `hookimpl`: the hook that it implements, by its name there."""
        marked = {name: self._pluggy.parse_hookimpl_opts(module, name) for name in dir(module)}
        return {name: options.get("specname") or name for name, options in marked.items() if options is not None}

    # ------------------------------------------------------------------------------- one method a hook, in its order

    def config_keys(self) -> list[tuple[str, ConfigKey]]:
        """Return every plugin's configuration keys, each with the plugin's name."""
        return self._listed("odradek_config_keys")

    def cli_commands(
        self, commands: argparse._SubParsersAction[argparse.ArgumentParser], restore_topics: TopicRestorer
    ) -> None:
        """Let plugins add sub-commands; one that fails is reported and left out."""
        for plugin, implementation in self._implementations("odradek_cli_commands"):
            try:
                implementation(commands=commands, restore_topics=restore_topics)
            except Exception as error:
                log.error("%s", failed(plugin, "adding its commands failed, and they are left out", error))

    def storages(self) -> dict[str, StorageFactory]:
        """Return storage factories by name."""
        return self._joined("odradek_storages")

    def elections(self) -> dict[str, ElectionFactory]:
        """Return election factories by name."""
        return self._joined("odradek_elections")

    def append_stages(self) -> dict[str, AppendStageFactory]:
        """Return append stage factories by name."""
        return self._joined("odradek_append_stages")

    def delay_queues(self) -> dict[str, DelayQueueFactory]:
        """Return factories of delay queues by name."""
        return self._joined("odradek_delay_queues")

    def retry_policies(self) -> dict[str, RetryPolicyFactory]:
        """Return factories of retry policies by name."""
        return self._joined("odradek_retry_policies")

    def cleanup_policies(self) -> dict[str, CleanupPolicy]:
        """Return cleanup policies by name."""
        return self._joined("odradek_cleanup_policies")

    def assignors(self) -> dict[str, Assignor]:
        """Return assignors by name."""
        return self._joined("odradek_assignors")

    def coordinators(self, broker: BrokerHandle) -> list[tuple[str, Coordinator[Any, Any]]]:
        """Return every plugin's coordinators, each with the plugin's name."""
        return self._listed("odradek_coordinators", broker=broker)

    def api_handlers(self, broker: BrokerHandle) -> list[tuple[str, ApiHandler | AsyncApiHandler]]:
        """Return every plugin's API handlers, each with the plugin's name."""
        return self._listed("odradek_api_handlers", broker=broker)

    @property
    def offers_tier(self) -> bool:
        """Whether some plugin would offer a tier."""
        return bool(self._implementations("odradek_tier"))

    def tier(self, broker: BrokerHandle) -> Tier:
        """Return the tier.

        Raises:
            PluginError: None is offered, or two are.
        """
        offers = [(plugin, offer) for plugin, offer in self._ask("odradek_tier", broker=broker) if offer is not None]
        if not offers:
            raise PluginError(
                "",
                "remote.log.storage.system.enable is true, and no active plugin offers a tier: enable `storage_tiered`",
                hook="odradek_tier",
            )
        if len(offers) > 1:
            (first, _), (second, _), *_ = offers
            raise PluginError(
                second, f"offers a tier, which plugin {first!r} offers too: disable one of them", hook="odradek_tier"
            )
        ((plugin, offer),) = offers
        check_offer(plugin, "odradek_tier", offer)
        return offer  # type: ignore[no-any-return] # plugins are checked by what they do

    def services(self, broker: BrokerHandle) -> list[tuple[str, Service]]:
        """Return every plugin's services, each with the plugin's name."""
        return self._listed("odradek_services", broker=broker)

    def metrics(self, broker: BrokerHandle) -> list[tuple[str, Metric]]:
        """Return every plugin's metrics, each with the plugin's name."""
        return self._listed("odradek_metrics", broker=broker)

    def leader_changed(
        self, broker: BrokerHandle, partition: TopicIdPartition, leader_id: int, leader_epoch: int
    ) -> None:
        """Tell plugins that a partition has a new leader."""
        self._notify(
            "odradek_leader_changed", partition=partition, leader_id=leader_id, leader_epoch=leader_epoch, broker=broker
        )

    # ----------------------------------------------------------------------------------------------------- machinery

    def _implementations(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        """Return the implementations of a hook by plugin, first registered first; each takes what it declares."""
        return [
            (implementation.plugin_name, _taking(implementation.function, implementation.argnames))
            for implementation in getattr(self._pluggy.hook, hook).get_hookimpls()
        ]

    def _ask(self, hook: str, **arguments: object) -> list[tuple[str, Any]]:
        """Call a hook that offers something, plugin by plugin, so that a failure has a name."""
        answers: list[tuple[str, Any]] = []
        for plugin, implementation in self._implementations(hook):
            try:
                answer = implementation(**arguments)
            except ConfigError:
                raise  # the operator's mistake, not the plugin's: it says where and what to do
            except Exception as error:
                raise failed(plugin, "failed", error, hook=hook) from error
            answers.append((plugin, answer))
        return answers

    def _misshapen(self, plugin: str, hook: str, answer: object, wanted: str) -> PluginError:
        """Return the error of a hook that gave what is not even of the form that was wanted."""
        implementations = getattr(self._pluggy.hook, hook).get_hookimpls()
        place = next(place_of(each.function) for each in implementations if each.plugin_name == plugin)
        forgotten = " (is a `return` missing?)" if answer is None else ""
        told = f"gave {answer!r}, not {wanted}{forgotten}, at {place} {remedy(plugin)}"
        return PluginError(plugin, told, hook=hook)

    def _listed(self, hook: str, **arguments: object) -> list[tuple[str, Any]]:
        """Ask for sequences and join them, each thing with its plugin."""
        joined = []
        for plugin, many in self._ask(hook, **arguments):
            if isinstance(many, str | bytes | Mapping) or not isinstance(many, Iterable):
                raise self._misshapen(plugin, hook, many, "a sequence")
            for each in many:
                check_offer(plugin, hook, each)
                joined.append((plugin, each))
        return joined

    def _joined(self, hook: str) -> dict[str, Any]:
        """Join what plugins offer by name; nobody may offer what another offers, or what is not of the contract."""
        what = KINDS[hook].what
        joined: dict[str, tuple[str, Any]] = {}
        for plugin, offers in self._ask(hook):
            if not isinstance(offers, Mapping):
                raise self._misshapen(plugin, hook, offers, "a mapping of names")
            for name, offer in offers.items():
                check_offer(plugin, hook, offer, name)
                self.owners[what, name] = plugin
                if name in joined:
                    raise PluginError(
                        plugin,
                        f"offers the {what} {name!r}, which plugin {joined[name][0]!r} offers too: disable one of them",
                        hook=hook,
                    )
                joined[name] = (plugin, offer)
        return {name: offer for name, (_plugin, offer) in joined.items()}

    def _notify(self, hook: str, **arguments: object) -> None:
        listeners = self._listeners.get(hook)
        if listeners is None:  # asked once: a start with thousands of partitions notifies of each
            listeners = self._listeners[hook] = self._implementations(hook)
        for plugin, listener in listeners:
            try:
                listener(**arguments)
            except Exception:
                log.exception("plugin %s: %s failed", plugin, hook)


def choose_offer(offers: Mapping[str, Offer], name: str, what: str, key: str) -> Offer:
    """Return the offer that a setting names.

    Raises:
        PluginError: No active plugin offers it.
    """
    try:
        return offers[name]
    except KeyError:
        known = ", ".join(sorted(offers)) or "none: no plugin that offers one is active"
        raise PluginError(
            "", f"no active plugin offers the {what} {name!r} ({key}; offered: {known}); see `odradek plugins list`"
        ) from None


def failed(plugin: str, what: str, error: Exception, *, hook: str = "") -> PluginError:
    """Return the error of a plugin whose code raised one: what, where, and what to do."""
    where = where_of_error(error)
    told = f"{what}{f' at {where}' if where else ''}: {error!r}"
    return PluginError(plugin, f"{told} {remedy(plugin)}" if plugin else told, hook=hook)


def _is_module(name: str) -> bool:
    return name.isidentifier() and importlib.util.find_spec(name) is not None


def _import(found: FoundPlugin) -> ModuleType:
    note_plugin(found.name, found.module)  # before: an error on the way tells where in the plugin it was
    try:
        return importlib.import_module(found.module)
    except (Exception, SystemExit) as error:  # a module that ends the process would end it without a word
        where = where_of_error(error)
        place = f"{found.module}, at {where}" if where else found.module
        raise broken(found.name, f"cannot be imported from {place}: {type(error).__name__}: {error}") from error


def _taking(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return `function` with the arguments that it does not declare left out, as pluggy's own calls do."""

    def call(**arguments: object) -> Any:
        return function(**{name: arguments[name] for name in names})

    return call
