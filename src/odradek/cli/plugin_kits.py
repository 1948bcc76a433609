"""Shell: the contract kits of what one plugin offers, as classes that pytest runs: for `odradek plugins check`.

Needs pytest and hypothesis. Promises of a level (durable, sticky, ...) are not asked for: which levels a plugin has is
declared by its own tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import pytest

from odradek.kernel.config.keys import Scope
from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.plugin_system.manager import PluginManager
from odradek.testing.contracts.append_stage import AppendStageContract
from odradek.testing.contracts.assignor import AssignorContract
from odradek.testing.contracts.cleanup import CleanupPolicyContract
from odradek.testing.contracts.delay_queue import DelayQueueContract
from odradek.testing.contracts.retry_policy import RetryPolicyContract
from odradek.testing.contracts.storage import StorageContract

from .stage_settings import settings_in_use

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.contracts.append_stage import AppendStageFactory
    from odradek.kernel.contracts.assignor import Assignor
    from odradek.kernel.contracts.cleanup import CleanupPolicy
    from odradek.kernel.contracts.delay_queue import DelayQueueFactory
    from odradek.kernel.contracts.retry_policy import RetryPolicyFactory
    from odradek.kernel.contracts.storage import StorageEngine
    from odradek.kernel.contracts.storage_context import StorageContext, StorageFactory
    from odradek.kernel.plugin_system.manager import FoundPlugin


def kits_of(found: FoundPlugin) -> dict[str, type]:
    """Load a plugin, and return a class of tests for each thing that it offers, by the class's name.

    Raises:
        PluginError: The plugin cannot be used.
    """
    manager = PluginManager()
    manager.load([found])
    keys = [key for _plugin, key in manager.config_keys() if key.scope is Scope.TOPIC]
    kits: dict[str, type] = {}
    for name, assignor in manager.assignors().items():
        kits[f"TestAssignor {name}"] = _assignor_kit(assignor)
    for name, policy in manager.cleanup_policies().items():
        kits[f"TestCleanupPolicy {name}"] = _policy_kit(name, policy, {key.name: key.default for key in keys})
    for name, stage in manager.append_stages().items():
        in_use = settings_in_use(stage, keys)
        kits[f"TestAppendStage {name}"] = _stage_kit(stage, in_use, {key.name: key.default for key in keys})
    for name, queue in manager.delay_queues().items():
        kits[f"TestDelayQueue {name}"] = _queue_kit(queue, {key.name: key.default for key in keys})
    for name, retry_policy in manager.retry_policies().items():
        kits[f"TestRetryPolicy {name}"] = _retry_kit(retry_policy, {key.name: key.default for key in keys})
    for name, storage in manager.storages().items():
        kits[f"TestStorage {name}"] = _storage_kit(storage)
    return kits


def _assignor_kit(assignor: Assignor) -> type:
    class Kit(AssignorContract):
        gives_each_partition_once = is_balanced = is_sticky = False

        def make_assignor(self) -> Assignor:
            return assignor

    return Kit


def _policy_kit(name: str, policy: CleanupPolicy, values: Mapping[str, Any]) -> type:
    class Kit(CleanupPolicyContract):
        def make_policy(self) -> CleanupPolicy:
            return policy

        def settings(self) -> CleanupSettings:
            return attrs.evolve(super().settings(), cleanup_policy=(name,), values=values)

    return Kit


def _stage_kit(
    factory: AppendStageFactory, in_use: Mapping[str, object] | None, not_in_use: Mapping[str, object]
) -> type:
    class Kit(AppendStageContract):
        def make_factory(self) -> AppendStageFactory:
            return factory

        def settings_in_use(self) -> Mapping[str, object]:
            return pytest.skip("no settings were found that use it") if in_use is None else in_use

        def settings_not_in_use(self) -> Mapping[str, object]:
            return not_in_use

    return Kit


def _queue_kit(factory: DelayQueueFactory, values: Mapping[str, object]) -> type:
    class Kit(DelayQueueContract):
        def make_factory(self) -> DelayQueueFactory:
            return factory

        def settings(self) -> Mapping[str, object]:
            return values

    return Kit


def _retry_kit(factory: RetryPolicyFactory, values: Mapping[str, object]) -> type:
    class Kit(RetryPolicyContract):
        def make_factory(self) -> RetryPolicyFactory:
            return factory

        def settings(self) -> Mapping[str, object]:
            return values

    return Kit


def _storage_kit(factory: StorageFactory) -> type:
    class Kit(StorageContract):
        is_durable = recovers = shrinks = False

        def make_engine(self, context: StorageContext) -> StorageEngine:
            return factory(context)

    return Kit
