"""Tiered storage: old segments in an object store, under any storage. Hook implementations only; see `README.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from odradek.kernel.api import Service, hookimpl

from .settings import CONFIG_KEYS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from odradek.kernel.api import BrokerHandle, ConfigKey, Metric, Tier, TopicIdPartition, TopicRestorer

    from .tier import TieredStorage


_tiers: WeakSet[TieredStorage] = WeakSet()
"""All that live in this process, each of one broker."""


@hookimpl
def odradek_config_keys() -> Sequence[ConfigKey]:
    """Own the keys of the store and the cache."""
    return CONFIG_KEYS


@hookimpl
def odradek_cli_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], restore_topics: TopicRestorer
) -> None:
    """Add `odradek tiered`."""
    from .cli import add_tiered_command

    add_tiered_command(commands, restore_topics)


@hookimpl
def odradek_tier(broker: BrokerHandle) -> Tier:
    """Offer the tier."""
    from .tier import TieredStorage

    tier = TieredStorage(broker)
    _tiers.add(tier)
    return tier


@hookimpl
def odradek_services(broker: BrokerHandle) -> Sequence[Service]:
    """Send, remove and bring near, where the broker has tiers."""
    return [
        service
        for tier in _tiers
        if tier.broker is broker
        for service in (
            Service("tiered storage", tier.visit_logs),
            Service("cold reads", tier.cold_reads.run),
            Service("deleted topics' objects", tier.collect_deleted_topics),
        )
    ]


@hookimpl
def odradek_metrics(broker: BrokerHandle) -> Sequence[Metric]:
    """Offer the metrics of tiering."""
    if not any(tier.broker is broker for tier in _tiers):
        return ()
    from .metrics import tier_metrics

    return [metric for tier in _tiers if tier.broker is broker for metric in tier_metrics(tier)]


@hookimpl
def odradek_leader_changed(
    partition: TopicIdPartition, leader_id: int, leader_epoch: int, broker: BrokerHandle
) -> None:
    """Hear which logs this broker leads: it alone sends their segments."""
    for tier in list(_tiers):
        if tier.broker is broker:  # others have a task, and a thread, of their own
            tier.note_leader(partition, leader_id, leader_epoch)
