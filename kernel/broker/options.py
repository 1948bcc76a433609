"""Shell: what a broker is started with: its configuration, its plugins, the topics it is to have."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from ..classes import frozen
from ..config.broker import Setting
from ..config.definitions.odradek import TIERED, TIERED_OVER
from ..config.keys import Scope
from ..config.registry import Registry
from ..config.settings import default_data_dir, join_settings, listen_settings, read_settings
from ..errors import ConfigError
from ..plugin_system.manager import PluginManager, choose_plugins, installed_plugins
from ..plugin_system.settings import check_plugin_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..config.broker import BrokerConfig
    from ..config.sections import StartTopic
    from ..contracts.assignor import Assignor
    from ..contracts.delay_queue import DelayQueueFactory
    from ..contracts.election import ElectionFactory
    from ..contracts.retry_policy import RetryPolicyFactory
    from ..contracts.storage_context import StorageFactory

log = logging.getLogger(__name__)


@frozen
class BrokerOptions:
    """Everything that the operator chose.

    Attributes:
        config: The static configuration.
        plugins: The active plugins, loaded.
        storages: What the plugins offer, by name.
        elections: What the plugins offer, by name.
        assignors: What the plugins offer, by name.
        plugin_settings: Each plugin's own section, by its name.
        topics: Topics to have at start.
        keeps_strays: Whether logs that the metadata does not know stay where they are: for who adopts them.
        delay_queues: What the plugins offer, by name.
        retry_policies: What the plugins offer, by name.
        runs_plugin_services: Whether services of plugins run: not while topics are restored.
    """

    config: BrokerConfig
    plugins: PluginManager
    storages: Mapping[str, StorageFactory]
    elections: Mapping[str, ElectionFactory]
    assignors: Mapping[str, Assignor]
    plugin_settings: Mapping[str, Mapping[str, object]]
    topics: Sequence[StartTopic]
    keeps_strays: bool = False
    runs_plugin_services: bool = True
    delay_queues: Mapping[str, DelayQueueFactory] = attrs.field(factory=dict)
    retry_policies: Mapping[str, RetryPolicyFactory] = attrs.field(factory=dict)


def read_broker_options(
    *,
    config: Path | None,
    environment: Mapping[str, str],
    options: Sequence[str],
    listen: Sequence[str] = (),
    data_dir: Path | None = None,
    join: str = "",
) -> BrokerOptions:
    """Read the configuration and load the plugins that it wants.

    Args:
        config: `odradek.toml` or a `.properties` file.
        environment: The process's variables.
        options: `key=value` texts.
        listen: `HOST:PORT` texts, beating every other setting of listeners.
        data_dir: Where records are kept, beating `log.dirs`.
        join: Where a cluster is found that it is to join as a broker; empty for what the configuration says.

    Raises:
        ConfigError: A setting is wrong, or given twice.
        PluginError: A plugin is missing or broken.
    """
    settings = read_settings(config=config, environment=environment, options=options)
    more = listen_settings(listen)
    if data_dir is not None:
        if "," in str(data_dir):
            what = "a comma separates directories, and would make two of this one"
            raise ConfigError(what, where=f"--data-dir {data_dir}", hint="choose a name without it")
        more["log.dirs"] = Setting(str(data_dir), f"--data-dir {data_dir}")
    more |= join_settings(join, more, settings)
    for key in settings.options:
        if (setting := more.get("log.dirs" if key == "log.dir" else key)) is not None:
            raise ConfigError(f"{setting.where} says it already", where=f"--set {key}", hint="leave one of them out")
    settings = attrs.evolve(settings, options={**settings.options, **more})
    plugins = PluginManager()
    installed = installed_plugins()
    plugins.load(choose_plugins(installed, settings.file.enable, settings.file.disable))
    check_plugin_settings(
        settings.file,
        {plugin.found.name: plugin.settings for plugin in plugins.loaded},
        [plugin.name for plugin in installed],
    )
    storages, elections, assignors = plugins.storages(), plugins.elections(), plugins.assignors()
    registry = Registry.of(plugins.config_keys()).with_cleanup_policies(plugins.cleanup_policies())
    has_tiered = plugins.offers_tier and TIERED_OVER in storages
    registry = registry.with_choices("odradek.storage", [*storages, TIERED] if has_tiered else storages)
    registry = registry.with_choices("odradek.election", elections).with_choices("odradek.internal.election", elections)
    queues, retries = plugins.delay_queues(), plugins.retry_policies()
    registry = registry.with_choices("odradek.delay.queue", queues).with_choices("odradek.retry.policy", retries)
    of_server = [name for name, assignor in assignors.items() if assignor.is_server_side]
    registry = registry.with_choices("group.consumer.assignors", of_server)
    resolved = settings.resolve(registry, data_dir=default_data_dir(environment, Path.home()))
    for line in resolved.warnings():
        log.warning("%s", line)
    for topic in settings.file.topics:
        for name, line in registry.without_effect(Scope.TOPIC, topic.configs):
            log.warning("%s: topic %s: %s", topic.configs[name].where, topic.name, line)
    file = settings.file
    return BrokerOptions(
        resolved,
        plugins,
        storages,
        elections,
        assignors,
        file.plugins,
        file.topics,
        delay_queues=queues,
        retry_policies=retries,
    )
