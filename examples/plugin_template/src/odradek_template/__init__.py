"""Three small things as somebody outside writes them: a storage, a cleanup policy, an append stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.kernel.api import (
    AppendStageFactory,
    AtLeast,
    CleanupPolicy,
    ConfigKey,
    ConfigType,
    Part,
    Scope,
    StorageFactory,
    hookimpl,
)

from .batch_limit import RECORDS_MAX, make_stage
from .newest import NEWEST_RECORDS, NewestPolicy
from .sqlite_storage import SqliteEngine

odradek_plugin_api = 1
"""The version of the plugin interface that this was written for."""


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Offer two topic keys."""
    newest = "How many of the newest records of each key stay, where `cleanup.policy` is `newest`."
    limit = "The most records that one batch may hold; 0 for any number."
    return [
        ConfigKey(name, ConfigType.INT, least, validator=AtLeast(least), scope=Scope.TOPIC, part=Part.PLUGINS, doc=doc)
        for name, least, doc in ((NEWEST_RECORDS, 1, newest), (RECORDS_MAX, 0, limit))
    ]


@hookimpl
def odradek_storages() -> Mapping[str, StorageFactory]:
    """Offer `odradek.storage=sqlite`."""
    return {"sqlite": SqliteEngine}


@hookimpl
def odradek_cleanup_policies() -> Mapping[str, CleanupPolicy]:
    """Offer `cleanup.policy=newest`."""
    return {"newest": NewestPolicy()}


@hookimpl
def odradek_append_stages() -> Mapping[str, AppendStageFactory]:
    """Offer the stage."""
    return {"batch_limit": make_stage}
