"""Shell: the runtimes of all coordinators of one broker: made from what plugins give, told what happens around them.

Who calls what, all on the reactor's task:

    the replicas            `leader_changed`, `progressed`
    a turn's end            `turn_ended`, before what is staged is written
    new metadata            `metadata_changed`
    FindCoordinator         `by_key_type`, `topic_wanted`
    writers of markers      `owner_of`
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..contracts.election import is_among_replicas
from ..errors import PluginError
from ..plugin_system.manager import failed
from ..plugin_system.offers import check_offer
from .computing import Computing
from .internal_topics import internal_topic, wanted_replicas
from .loader import Loader
from .long_operations import LongOperations
from .runtime import Place, Runtime
from .runtime_metrics import joint_metrics, runtime_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..config.broker import BrokerConfig
    from ..contracts.api_handler import ApiHandler, AsyncApiHandler
    from ..contracts.coordinator import Coordinator, MetadataChange
    from ..contracts.election import ElectionFactory
    from ..contracts.services import Metric
    from ..contracts.transactions import Transactions
    from ..machine.clock import Clock
    from ..machine.threads import Threads
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..partitions.staged_writes import StagedWrites
    from ..purgatory.timing_wheel import TimingWheel
    from ..types import TopicIdPartition
    from ..wire.messages.api_19_create_topics import CreatableTopic
    from .hosted_shard import HostedShard
    from .internal_topics import WantedReplicas

log = logging.getLogger(__name__)

HOOK: Final = "odradek_coordinators"
KERNEL: Final = "kernel"
"""In place of a plugin's name."""


class CoordinatorRuntimes:
    """All coordinators of a broker. Life: made, then as the module's docstring says.

    Attributes:
        loader: Loads shards; its `run` is a service.
        computing: Computes for shards; its `run` is a service.
        long_operations: Goes on with what is long in shards; its `run` is a service.
        by_topic: The runtimes, by the topic that each lives in.
        by_key_type: The same by FindCoordinator's key types.
        voted: The names of elections that are votes among the replicas.
    """

    def __init__(
        self,
        coordinators: Iterable[tuple[str, Coordinator[Any, Any]]],
        *,
        replicas: Replicas,
        writes: StagedWrites,
        clock: Clock,
        wheel: TimingWheel,
        config: Callable[[], BrokerConfig],
        topic_partitions: Callable[[str], int | None],
        elections: Mapping[str, ElectionFactory],
        want_turn: Callable[[], None],
        threads: Threads,
    ) -> None:
        """Make a runtime for each coordinator.

        Args:
            coordinators: Each with its plugin's name.
            replicas: The broker's.
            writes: Where batches are staged.
            clock: Both clocks.
            wheel: The broker's, advanced by the monotonic clock.
            config: Returns the newest configuration.
            topic_partitions: Returns how many partitions a topic has, None when it is not there.
            elections: Those that plugins offer, by name.
            want_turn: Has a turn of the reactor end soon, at which `turn_ended` is called.
            threads: Where logs are read, and what is long is computed.

        Raises:
            PluginError: A topic or a key type is offered twice.
        """
        self.loader = Loader(write_now=writes.write_now, fail=replicas.fail, threads=threads)
        self.computing = Computing(threads)
        self.long_operations = LongOperations()
        self.by_topic: dict[str, Runtime] = {}
        self.by_key_type: dict[int, Runtime] = {}
        self.voted = frozenset(name for name, factory in elections.items() if is_among_replicas(factory))
        self._plugin_of: dict[str, str] = {}
        self._replicas = replicas
        self._config = config
        self._want_turn = want_turn
        self._places: dict[Replica, Place] = {}
        self._dirty: dict[HostedShard, None] = {}
        for plugin, coordinator in coordinators:
            self._check_new(plugin, coordinator)
            runtime = Runtime(
                coordinator,
                replicas=replicas,
                writes=writes,
                loader=self.loader,
                clock=clock,
                wheel=wheel,
                config=config,
                topic_partitions=topic_partitions,
                compute=self.computing.begin,
                note_busy=self.long_operations.note_busy,
                note_dirty=self._note_dirty,
            )
            replicas.internal_topics.add(coordinator.topic)
            self.by_topic[coordinator.topic] = runtime
            self.by_key_type[coordinator.key_type] = runtime
            self._plugin_of[coordinator.topic] = plugin

    def __repr__(self) -> str:
        return f"<CoordinatorRuntimes of {', '.join(self.by_topic) or 'nothing'}>"

    def _check_new(self, plugin: str, coordinator: Coordinator[Any, Any]) -> None:
        for other in self.by_topic.values():
            what = None
            if other.coordinator.topic == coordinator.topic:
                what = f"the topic {coordinator.topic}"
            elif other.coordinator.key_type == coordinator.key_type:
                what = f"the key type {coordinator.key_type}"
            if what is not None:
                first = self._plugin_of[other.coordinator.topic]
                raise PluginError(
                    plugin, f"coordinates {what}, which plugin {first!r} does too: disable one of them", hook=HOOK
                )

    # -------------------------------------------------------------------------------------- what coordinators give

    def handlers(self) -> Iterator[tuple[str, ApiHandler | AsyncApiHandler]]:
        """Iterate over the handlers of all coordinators, each with its plugin's name.

        Raises:
            PluginError: A plugin failed.
        """
        for plugin, runtime in self._runtimes():
            for handler in _asked(plugin, partial(_list_of, runtime.coordinator.handlers, runtime)):
                check_offer(plugin, "odradek_api_handlers", handler)
                yield plugin, handler

    def metrics(self) -> Iterator[tuple[str, Metric]]:
        """Iterate over the metrics of all coordinators and of their runtimes, each with its plugin's name.

        Raises:
            PluginError: A plugin failed.
        """
        for plugin, runtime in self._runtimes():
            for metric in _asked(plugin, partial(_list_of, runtime.coordinator.metrics, runtime)):
                check_offer(plugin, "odradek_metrics", metric)
                yield plugin, metric
            for metric in runtime_metrics(runtime):
                yield plugin, metric
        if self.by_topic:
            for metric in joint_metrics(self.by_topic.values()):
                yield KERNEL, metric

    def transactions(self) -> Transactions | None:
        """Return the transaction coordinator's face towards producers, if some coordinator has one.

        Raises:
            PluginError: A plugin failed, or two have one.
        """
        found: Transactions | None = None
        for plugin, runtime in self._runtimes():
            offered = _asked(plugin, partial(runtime.coordinator.transactions, runtime))
            if offered is not None and found is not None:
                raise PluginError(plugin, "coordinates transactions, as another plugin does: disable one", hook=HOOK)
            found = found if offered is None else offered
        return found

    def _runtimes(self) -> Iterator[tuple[str, Runtime]]:
        for topic, runtime in self.by_topic.items():
            yield self._plugin_of[topic], runtime

    # ------------------------------------------------------------------------------------------------- what happens

    def leader_changed(self, partition: TopicIdPartition) -> None:
        """Take note that a replica got a leader, perhaps this broker."""
        runtime = self.by_topic.get(partition.topic)
        if runtime is None:
            return
        topic = self._replicas.topics.get(partition.topic)
        replica = topic.partitions.get(partition.partition) if topic is not None else None
        if replica is None or replica.partition != partition:
            return
        place = runtime.place_of(replica)
        self._places[replica] = place
        place.check()

    def progressed(self, replica: Replica) -> None:
        """Take note that a replica's watermarks moved or that it went offline. Hot: each append comes by."""
        place = self._places.get(replica)
        if place is not None:
            place.check()

    def turn_ended(self) -> None:
        """Append what the shards have gathered."""
        while self._dirty:
            dirty, self._dirty = self._dirty, {}
            for hosted in dirty:
                hosted.write_batch()

    def _note_dirty(self, hosted: HostedShard) -> None:
        if not self._dirty:
            self._want_turn()
        self._dirty[hosted] = None

    def metadata_changed(self, change: MetadataChange) -> None:
        """Tell coordinators of a change of the committed metadata, and forget topics that are gone."""
        for topic in change.deleted_topics:
            runtime = self.by_topic.get(topic.name)
            if runtime is not None:
                for partition, place in list(runtime.places.items()):
                    if place.replica.partition.topic_id == topic.topic_id:
                        place.leave()
                        del runtime.places[partition]
                        self._places.pop(place.replica, None)
        for plugin, runtime in self._runtimes():
            try:
                runtime.coordinator.metadata_changed(change, runtime)
            except Exception:
                log.exception("plugin %s: the coordinator of %s failed", plugin, runtime.coordinator.topic)

    def release_parked(self) -> None:
        """Tell NOT_COORDINATOR to whoever waits for another request: the broker stops and takes none."""
        for place in self._places.values():
            if place.hosted is not None:
                place.hosted.release_parked()

    def close(self) -> None:
        """Unload all shards; nothing may be called afterwards."""
        places, self._places = self._places, {}
        for place in places.values():
            hosted = place.hosted
            place.leave()
            if hosted is not None:
                hosted.sent_away.tell_all()  # no timer is due any more

    # -------------------------------------------------------------------------------------------------------- topics

    def owner_of(self, topic: str) -> Runtime | None:
        """Return the runtime that owns a topic, None for an ordinary one."""
        return self.by_topic.get(topic)

    def topic_to_create(self, name: str, usable_brokers_count: int) -> CreatableTopic | None:
        """Return how a topic has to be created that a coordinator lives in, None for any other topic."""
        runtime = self.by_topic.get(name)
        if runtime is None:
            return None
        keys = runtime.coordinator.topic_settings
        return internal_topic(name, keys, self._config(), usable_brokers_count, self.voted)

    def wanted_replicas(self) -> list[WantedReplicas]:
        """Return how many replicas the topics of coordinators shall have, as soon as there are brokers for them."""
        config = self._config()
        return [
            wanted_replicas(name, runtime.coordinator.topic_settings, config) for name, runtime in self.by_topic.items()
        ]


def _list_of(ask: Callable[[Runtime], Iterable[Any]], runtime: Runtime) -> list[Any]:
    return list(ask(runtime))


def _asked(plugin: str, ask: Callable[[], Any]) -> Any:
    """Return what a plugin's coordinator gives.

    Raises:
        PluginError: It failed.
    """
    try:
        return ask()
    except Exception as error:
        raise failed(plugin, "failed", error, hook=HOOK) from error
