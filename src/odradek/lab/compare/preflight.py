"""Pure core: what every run is set to, and which combinations cannot be run: told before anything is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.checks import check_together
from odradek.kernel.config.keys import Scope
from odradek.kernel.config.topic import TopicConfig, check_topic
from odradek.kernel.errors import ConfigError, KafkaError

from .ledger import Allowance
from .variations import Choice

if TYPE_CHECKING:
    from odradek.kernel.config.registry import Registry

    from .variations import Combination
    from .workload import Workload

STORE_FOLDER: Final = "{store}"
"""Stands in settings for the folder that a run has for what its broker moves away."""

DATA_FOLDER: Final = "{data}"
"""Stands for the broker's own folder where settings are checked before there is one."""

STORE_KEY: Final = "odradek.tiered.store"

BROKER_SETTINGS: Final = {
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
}
"""What is asked of every broker: to look after its logs often, so that nobody waits minutes for it. Segments are
compacted and moved away once they are flushed and a checkpoint, which the last of these keys paces, says so."""

TOPIC_SETTINGS: Final = {"file.delete.delay.ms": "100", "retention.ms": "-1"}
"""What is asked of every topic: to keep records for ever, and deleted files hardly at all."""

_TIERED: Final = (
    (Scope.BROKER, "remote.log.storage.system.enable", "true"),
    (Scope.BROKER, STORE_KEY, f"file://{STORE_FOLDER}"),
    (Scope.BROKER, "remote.log.manager.task.interval.ms", "200"),
    (Scope.TOPIC, "local.retention.bytes", "1"),
)

_IMPLIED: Final = {("odradek.storage", "tiered"): _TIERED, ("remote.storage.enable", "true"): _TIERED}
"""What a choice needs besides to be what its name says: `--set` and `--vary` beat it."""


def implied_choices(registry: Registry) -> dict[tuple[str, str], Sequence[Choice]]:
    """Return what choices need besides, as far as there are such keys: a plugin that is not there brings none."""
    return {
        cause: [Choice(key, scope, value) for scope, key, value in needed if registry.find(scope, key) is not None]
        for cause, needed in _IMPLIED.items()
    }


def settings_of_run(settings: Mapping[str, str], store_folder: str, run_name: str) -> dict[str, str]:
    """Return the settings of one run's broker.

    Args:
        settings: Of its combination.
        store_folder: The folder that this run has for a store.
        run_name: A name that no other run has: in a store that was chosen by hand, each run gets a place of this name,
            as a broker refuses what belongs to another cluster.
    """
    given = {key: text.replace(STORE_FOLDER, store_folder) for key, text in settings.items()}
    if STORE_KEY in given and not has_own_store(settings):
        given[STORE_KEY] = f"{given[STORE_KEY].rstrip('/')}/{run_name}"
    return given


def has_own_store(settings: Mapping[str, str]) -> bool:
    """Say whether a broker's store is the folder of its run."""
    return STORE_FOLDER in settings.get(STORE_KEY, "")


def reason_against(combination: Combination, workload: Workload, registry: Registry) -> str:
    """Return why a combination cannot be run, in one line; empty when nothing speaks against it.

    Args:
        combination: With all its settings.
        workload: What would be done to it.
        registry: All known keys.
    """
    settings = {key: Setting(text, f"{key}={text}") for key, text in combination.broker.items()}
    try:
        config = BrokerConfig(registry, settings, defaults={"log.dir": DATA_FOLDER})
        check_together(config)
        check_topic(config, combination.topic)
    except KafkaError as error:
        return error.detail
    except ConfigError as error:
        return str(error)
    if combination.fault and Allowance.of(combination.topic) != Allowance():
        return "under a fault, what its cleanup removes could not be told from what is lost"
    if TopicConfig.resolve(config, combination.topic).is_compacted and not workload.keys:
        return f"a compacted topic takes records with keys only, and those of {workload.name!r} have none"
    return ""


def unknown_keys(workload: Workload, registry: Registry) -> Mapping[str, str]:
    """Return the settings of a workload that nobody knows, each with a hint that may be empty."""
    tables = ((Scope.TOPIC, workload.topic), (Scope.BROKER, workload.broker))
    return {
        key: registry.hint(scope, key)
        for scope, settings in tables
        for key in settings
        if registry.find(scope, key) is None
    }
