"""Pure core: what plugins offer, kind by kind: which contract it keeps, and the error that names who does not keep it.

What a hook gives is looked at when it is asked, at the start: `check_offer`. What an offer makes later, for each
partition, is looked at when the first of its class is made: `check_made`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import attrs

from ..classes import frozen
from ..config.keys import ConfigKey
from ..contracts.api_handler import ApiHandler, AsyncApiHandler
from ..contracts.append_stage import AppendStageFactory
from ..contracts.assignor import Assignor
from ..contracts.cleanup import CleanupPolicy
from ..contracts.coordinator import Coordinator
from ..contracts.culprits import plugin_of
from ..contracts.delay_queue import DelayQueueFactory
from ..contracts.election import ElectionFactory
from ..contracts.retry_policy import RetryPolicyFactory
from ..contracts.services import Metric, MetricRead, Service, ServiceCall, ServicePrepare, ServiceRun
from ..contracts.signatures import missing_members, module_of, problem_with, problem_with_call
from ..contracts.storage_context import StorageFactory
from ..contracts.tiering import Tier
from ..errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@frozen
class Kind:
    """A kind of offer.

    Attributes:
        what: What it is, for people.
        contracts: What it keeps, one of them at least.
        calls: Of a value that holds functions: how each of these is called, by its name.
    """

    what: str
    contracts: tuple[type, ...]
    calls: Mapping[str, type] = attrs.field(factory=dict)

    def problem_with(self, offer: object) -> str:
        """Return what keeps an offer from being used, as text; empty when nothing does."""
        meant = [each for each in self.contracts if not _lacks_members(offer, each)] or self.contracts[:1]
        problems = [problem_with(offer, contract) for contract in meant]
        if not any(problems):
            problems += [problem_with_call(getattr(offer, name), call) for name, call in self.calls.items()]
        return "; ".join(filter(None, problems))


_CALLS_OF_SERVICE: Final = {
    "run": ServiceRun,
    "prepare": ServicePrepare,
    "close": ServiceCall,
    "address": ServiceCall,
}

KINDS: Final[Mapping[str, Kind]] = {
    "odradek_config_keys": Kind("configuration key", (ConfigKey,)),
    "odradek_storages": Kind("storage", (StorageFactory,)),
    "odradek_elections": Kind("election", (ElectionFactory,)),
    "odradek_append_stages": Kind("append stage", (AppendStageFactory,)),
    "odradek_delay_queues": Kind("delay queue", (DelayQueueFactory,)),
    "odradek_retry_policies": Kind("retry policy", (RetryPolicyFactory,)),
    "odradek_cleanup_policies": Kind("cleanup policy", (CleanupPolicy,)),
    "odradek_assignors": Kind("assignor", (Assignor,)),
    "odradek_coordinators": Kind("coordinator", (Coordinator,)),
    "odradek_api_handlers": Kind("API handler", (ApiHandler, AsyncApiHandler)),
    "odradek_tier": Kind("tier", (Tier,)),
    "odradek_services": Kind("service", (Service,), _CALLS_OF_SERVICE),
    "odradek_metrics": Kind("metric", (Metric,), {"read": MetricRead}),
}
"""By the hook that asks for it."""

_METRIC_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")

_fitting: Final[WeakKeyDictionary[type, set[type]]] = WeakKeyDictionary()
"""Classes of which an object was looked at, with the contracts that it keeps: a fact of the process."""


def check_offer(plugin: str, hook: str, offer: object, name: str = "") -> None:
    """See that an offer can be used.

    Args:
        plugin: Whose.
        hook: The hook that gave it.
        offer: The offer.
        name: Under which it is offered, if under one.

    Raises:
        PluginError: It cannot; with what is wrong and where.
    """
    kind = KINDS[hook]
    problem = kind.problem_with(offer)
    if problem:
        named = f" {name!r}" if name else ""
        told = f"offers as {kind.what}{named} what is none: {problem} {remedy(plugin)}"
        raise PluginError(plugin, told, hook=hook)


def joined_metrics(offered: Iterable[tuple[str, Metric]]) -> tuple[Metric, ...]:
    """Return what plugins, and the kernel, offer as metrics, in their order.

    Raises:
        PluginError: Two have one name, one's name is none that Prometheus takes, or its kind is unknown.
    """
    owners: dict[str, str] = {}
    joined = []
    for plugin, metric in offered:
        if metric.name in owners:
            told = f"metric {metric.name} is there already, of {owners[metric.name] or 'the kernel'}"
            raise PluginError(plugin, told, hook="odradek_metrics")
        if not _METRIC_NAME.fullmatch(metric.name) or metric.kind not in ("counter", "gauge"):
            raise PluginError(plugin, f"metric {metric.name!r} of kind {metric.kind!r}", hook="odradek_metrics")
        owners[metric.name] = plugin
        joined.append(metric)
    return tuple(joined)


def check_made(made: object, contract: type, what: str, maker: object) -> None:
    """See that what an offer made can be used; costs nothing but for the first of a class.

    Args:
        made: The object.
        contract: What it has to keep.
        what: What it is, for people, as in "a log of storage 'mine'".
        maker: The offer.

    Raises:
        PluginError: It cannot be used; with the plugin that `maker` comes from, what is wrong and where.
    """
    kind = type(made)
    if contract in _fitting.get(kind, ()):
        return
    problem = problem_with(made, contract)
    if problem:
        raise broken(plugin_of_object(maker), f"{what} cannot be used: {problem}")
    _fitting.setdefault(kind, set()).add(contract)


def plugin_of_object(value: object) -> str:
    """Return the plugin in whose code a function, a class or an object's class was written; empty when in none."""
    return plugin_of(module_of(value))


def broken(plugin: str, reason: str) -> PluginError:
    """Return the error of a plugin that an operator can do without, with what to do about it if it is known."""
    return PluginError(plugin, f"{reason} {remedy(plugin)}" if plugin else reason)


def remedy(plugin: str) -> str:
    """Return what an operator can do about a broken plugin."""
    return f'(repair it, or put it into `disable` of [plugins] as "{plugin}")'


def _lacks_members(offer: Any, contract: type) -> bool:
    return bool(missing_members(offer, contract))
