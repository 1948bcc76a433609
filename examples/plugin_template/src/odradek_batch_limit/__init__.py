"""Refuses batches of more records than the topic's `odradek.batch.limit.records` allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.kernel.api import AppendStageFactory, AtLeast, ConfigKey, ConfigType, Part, Scope, hookimpl

from .stage import RECORDS_MAX, make_stage

odradek_plugin_api = 1
"""The version of the plugin interface that this was written for."""


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Offer one topic key."""
    return [
        ConfigKey(
            RECORDS_MAX,
            ConfigType.INT,
            0,
            validator=AtLeast(0),
            scope=Scope.TOPIC,
            part=Part.PLUGINS,
            doc="The most records that one batch may hold; 0 for any number.",
        )
    ]


@hookimpl
def odradek_append_stages() -> Mapping[str, AppendStageFactory]:
    """Offer the stage."""
    return {"batch_limit": make_stage}
