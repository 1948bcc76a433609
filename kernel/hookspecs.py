"""Every hook of the plugin system, in the order of a broker's life.

A plugin is a module, named by an entry point of the group `odradek.plugins`, whose functions are marked with
`odradek.kernel.api.hookimpl` and named like a hook below. It takes as many of the arguments as it wants.

The kernel asks for what plugins offer once, at start, and then calls the objects it got: a hook is never called
for a record or a request. Notifications are called when something happened, and only where somebody listens.
`plugin_system/manager.py` is the only caller; how hooks meet a configuration stands in `docs/reference/hooks.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .config.keys import ConfigKey
    from .contracts.api_handler import ApiHandler, AsyncApiHandler
    from .contracts.append_stage import AppendStageFactory
    from .contracts.assignor import Assignor
    from .contracts.cleanup import CleanupPolicy
    from .contracts.coordinator import Coordinator
    from .contracts.delay_queue import DelayQueueFactory
    from .contracts.election import ElectionFactory
    from .contracts.restoring import TopicRestorer
    from .contracts.retry_policy import RetryPolicyFactory
    from .contracts.services import BrokerHandle, Metric, Service
    from .contracts.storage_context import StorageFactory
    from .contracts.tiering import Tier
    from .types import TopicIdPartition

hookspec = pluggy.HookspecMarker("odradek")

# --------------------------------------------------------------------------------------------------------------------
# Before the configuration is read
# --------------------------------------------------------------------------------------------------------------------


@hookspec
def odradek_config_keys() -> Sequence[ConfigKey]:  # type: ignore[empty-body] # a specification has no body
    """Offer configuration keys of the plugin's own.

    Called: once at start, before the configuration is parsed, by the task that builds the broker; also by
        `odradek config describe`.
    Result: all plugins' keys are joined; a name that exists already stops the start.
    Errors: an exception stops the start and names the plugin.
    Source: the form of Kafka's ConfigDef; names begin with `odradek.` unless Kafka knows the key.
    """


@hookspec
def odradek_cli_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], restore_topics: TopicRestorer
) -> None:
    """Add sub-commands to the `odradek` command.

    Called: once for each run of the command line whose first word is not a command of the kernel, and by
        `odradek plugins list`; not for `odradek --help`, which loads no plugin.
    Result: ignored; the plugin calls `commands.add_parser` and sets the default `run` to a function that takes the
        parsed arguments and returns the exit status.
    Errors: an exception is printed with the plugin's name; the other commands work.
    Source: the form of argparse sub-commands.

    Args:
        commands: What `ArgumentParser.add_subparsers` returned.
        restore_topics: For a command that finds topics elsewhere, to write them into an empty data directory.
    """


# --------------------------------------------------------------------------------------------------------------------
# While the broker is built
# --------------------------------------------------------------------------------------------------------------------


@hookspec
def odradek_storages() -> Mapping[str, StorageFactory]:  # type: ignore[empty-body] # a specification has no body
    """Offer storage engines by the name that the topic key `odradek.storage` chooses them with.

    Called: once, when the broker is built.
    Result: joined; a name that two plugins offer stops the start.
    Errors: an exception stops the start and names the plugin.
    Source: `odradek.kernel.contracts.storage`; the kit is `odradek.testing.contracts.storage`.
    """


@hookspec
def odradek_elections() -> Mapping[str, ElectionFactory]:  # type: ignore[empty-body] # a specification has no body
    """Offer elections by the name that `odradek.election` (topic) and `odradek.metadata.election` choose them with.

    Called: once, when the broker is built.
    Result: joined; a name that two plugins offer stops the start.
    Errors: an exception stops the start and names the plugin.
    Source: `odradek.kernel.contracts.election`; the kit is `odradek.testing.contracts.election`.
    """


@hookspec
def odradek_append_stages() -> Mapping[str, AppendStageFactory]:  # type: ignore[empty-body] # as above
    """Offer stages that see a topic's batches before they are appended, by name.

    Called: once, when the broker is built. Every factory is called for each partition that is opened, and when its
        topic's settings change; it answers None where the topic does not want the stage, which then costs nothing.
    Result: joined; a name that two plugins offer stops the start.
    Errors: an exception stops the start; one in a stage refuses the batch with UNKNOWN_SERVER_ERROR and names the
        plugin in the log.
    Source: `odradek.kernel.contracts.append_stage`.
    """


@hookspec
def odradek_delay_queues() -> Mapping[str, DelayQueueFactory]:  # type: ignore[empty-body] # as above
    """Offer queues of delayed records by the name that the topic key `odradek.delay.queue` chooses them with.

    Called: once, when the broker is built. A queue is made for each partition of a topic that has
        `odradek.delay.enable`.
    Result: joined; a name that two plugins offer stops the start.
    Errors: an exception stops the start; one of a queue takes its partition offline.
    Source: `odradek.kernel.contracts.delay_queue`; the kit is `odradek.testing.contracts.delay_queue`.
    """


@hookspec
def odradek_retry_policies() -> Mapping[str, RetryPolicyFactory]:  # type: ignore[empty-body] # as above
    """Offer retry policies by the name that the topic key `odradek.retry.policy` chooses them with.

    Called: once, when the broker is built. A policy is made for each partition of a topic with `odradek.retry.topic`.
    Result: joined; a name that two plugins offer stops the start.
    Errors: an exception stops the start; one of a policy refuses the batch of failed records and is logged.
    Source: `odradek.kernel.contracts.retry_policy`; the kit is `odradek.testing.contracts.retry_policy`.
    """


@hookspec
def odradek_cleanup_policies() -> Mapping[str, CleanupPolicy]:  # type: ignore[empty-body] # as above
    """Offer cleanup policies by the name that the topic key `cleanup.policy` chooses them with.

    Called: once, when the broker is built.
    Result: joined; a name that two plugins offer stops the start. A topic keeps what a policy would clean that no
        plugin offers.
    Errors: an exception stops the start; one in a policy is logged, and its log is left as it is until the next round.
    Source: `odradek.kernel.contracts.cleanup`; the kit is `odradek.testing.contracts.cleanup`.
    """


@hookspec
def odradek_assignors() -> Mapping[str, Assignor]:  # type: ignore[empty-body] # a specification has no body
    """Offer assignors by the name that clients and `group.consumer.assignors` choose them with.

    Called: once, when the broker is built; also by our own client, when it is told a name.
    Result: joined; a name that two plugins offer stops the start.
    Errors: an exception stops the start and names the plugin.
    Source: `odradek.kernel.contracts.assignor`; the kit is `odradek.testing.contracts.assignor`.
    """


@hookspec
def odradek_coordinators(broker: BrokerHandle) -> Sequence[Coordinator[Any, Any]]:  # type: ignore[empty-body]
    """Offer coordinators: state machines that live in the partitions of an internal topic.

    Called: once, when the broker is built; the coordinators' handlers and metrics are asked for right after.
    Result: joined; a topic or a key type of FindCoordinator that two plugins offer stops the start.
    Errors: an exception stops the start and names the plugin.
    Source: `odradek.kernel.contracts.coordinator`.

    Args:
        broker: What a plugin may ask of the broker that it lives in.
    """


@hookspec
def odradek_api_handlers(broker: BrokerHandle) -> Sequence[ApiHandler | AsyncApiHandler]:  # type: ignore[empty-body]
    """Offer handlers of API keys that the kernel does not answer itself.

    Called: once, when the broker is built and before it listens.
    Result: joined; ApiVersions lists the keys; a key that two plugins, or a plugin and the kernel, answer stops the
        start.
    Errors: an exception stops the start and names the plugin.
    Source: `odradek.kernel.contracts.api_handler`.

    Args:
        broker: What a plugin may ask of the broker that it lives in.
    """


@hookspec
def odradek_tier(broker: BrokerHandle) -> Tier:  # type: ignore[empty-body] # a specification has no body
    """Offer the tier: what moves old segments of a topic, whatever its storage, into a remote store.

    Called: once, when the broker is built, before any log is opened and before the services are asked for; only where
        `remote.log.storage.system.enable` is true.
    Result: one; two of them stop the start, and so does none where the key asks for one. None offers nothing.
    Errors: an exception stops the start and names the plugin; one of the tier takes its partition offline.
    Source: KIP-405; `odradek.kernel.contracts.tiering`; the kit is `odradek.testing.contracts.tiering`.

    Args:
        broker: What a plugin may ask of the broker that it lives in.
    """


@hookspec
def odradek_services(broker: BrokerHandle) -> Sequence[Service]:  # type: ignore[empty-body] # a specification
    """Offer long-running services, each run in the broker's nursery while the broker serves.

    Called: once, when the broker is built, after all were asked for their metrics; then each is prepared, before any
        log is opened.
    Result: joined. A service that crashes is logged with the plugin's name, restarted with a growing pause, and after
        five failures within a minute stops the broker.
    Errors: an exception stops the start and names the plugin, as does one of a service's `prepare`.
    Source: `odradek.kernel.contracts.services`, and `odradek.kernel.contracts.observing` for what can be shown.

    Args:
        broker: What a plugin may ask of the broker that it lives in.
    """


@hookspec
def odradek_metrics(broker: BrokerHandle) -> Sequence[Metric]:  # type: ignore[empty-body] # a specification
    """Offer gauges and counters, read whenever somebody asks for the metrics.

    Called: once, when the broker is built; the metrics' own functions are called on every scrape.
    Result: joined; a name that exists already stops the start.
    Errors: an exception stops the start; one in a metric's function leaves that metric out of the scrape.
    Source: the names of Kafka's metrics wherever Kafka has one.

    Args:
        broker: What a plugin may ask of the broker that it lives in.
    """


# --------------------------------------------------------------------------------------------------------------------
# While the broker serves: notifications
# --------------------------------------------------------------------------------------------------------------------


@hookspec
def odradek_leader_changed(
    partition: TopicIdPartition, leader_id: int, leader_epoch: int, broker: BrokerHandle
) -> None:
    """Hear that a partition this broker has a replica of got a leader, perhaps this broker.

    Called: after the change took effect, once for each partition and epoch, by the reactor's task: must not block.
    Result: ignored.
    Errors: an exception is logged with the plugin's name, and nothing else happens.
    Source: KIP-101 on leader epochs.

    Args:
        partition: Which.
        leader_id: The broker that leads now, -1 for none.
        leader_epoch: Its epoch.
        broker: This broker, one of perhaps several in a process, each with a task of its own.
    """
