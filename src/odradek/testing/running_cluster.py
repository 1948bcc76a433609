"""Shell: several real brokers of one cluster inside a test's process, each on a thread and on ports of its own.

    from odradek.testing.running_cluster import running_cluster

    with running_cluster(brokers=3) as cluster:
        cluster.create_topic("orders")
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.leader("orders", 0))

The controller is a node of its own, on a thread beside the brokers': whichever broker is killed, another one leads.
With `voters=3` the first brokers keep the metadata together instead, and one that is killed may be the controller.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .broker_helpers import BrokerHelpers
from .running_broker import TEST_SETTINGS, RunningBroker, settings_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import timedelta

    from odradek.kernel.broker import BrokerOptions

    from .advanced_clock import AdvancedClock
    from .cut_network import CutNetwork

__all__ = ["RunningCluster", "running_cluster"]

CONTROLLER_ID: Final = 0
CONTROLLERS: Final = "CONTROLLER"
"""The name of the controllers' listeners."""
REPLICAS: Final = 3
"""How many replicas a topic has, unless the test says so, or there are fewer brokers."""
OF_EACH: Final = frozenset(
    {
        *("node.id", "broker.id", "process.roles", "listeners", "advertised.listeners", "log.dirs", "log.dir"),
        *("controller.listener.names", "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
    }
)
"""What each node has for itself, or binds them together."""
SESSION_MS: Final = "9000"
MORE_THAN_A_SESSION_MS: Final = 2_000
"""So much later than its session ends, the controller has looked, and fenced whoever was not heard of."""
UNHURRIED: Final = dict.fromkeys(
    ("request.timeout.ms", "replica.socket.timeout.ms", "controller.quorum.request.timeout.ms"), str(2**31 - 1)
)
"""Where time is virtual a long poll of one broker at another may last a day: no step ends its connection."""


class RunningCluster(BrokerHelpers):
    """Brokers that serve together, with what a test may do to them. One thread at a time may use it.

    Life: all serve from the beginning of `running_cluster`'s block; each may be stopped, killed, paused, cut off and
    started as often as you like; the block's end stops all.

    Attributes:
        brokers: The brokers by their ids, 1 and up: their faults and connections as a
            single `RunningBroker` has them.

    .. versionadded:: 0.1
    """

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, str],
        count: int,
        *,
        is_time_virtual: bool = False,
        voters: int = 0,
        config: Path | None = None,
    ) -> None:
        """Make one that `start_all` starts.

        Args:
            data_dir: Each node has a directory in it.
            settings: For all brokers.
            count: How many brokers, >= 1.
            is_time_virtual: Whether `advance` can let time pass.
            voters: How many of the brokers keep the metadata together, the first ones; 0: a node of its own does.
            config: A configuration file of all nodes, under the settings.
        """
        self._data_dir = data_dir
        self._config = config
        self._clock = _new_clock() if is_time_virtual else None
        replicas = str(min(REPLICAS, count))
        defaults = {
            **TEST_SETTINGS,
            "default.replication.factor": replicas,
            "min.insync.replicas": str(min(2, count)),
            "controller.listener.names": CONTROLLERS,
            **(UNHURRIED if is_time_virtual else {}),
        }
        said = _said_by(config)
        self._settings_of_all = {**{key: value for key, value in defaults.items() if key not in said}, **settings}
        self._quorum = ""
        self._controller = None if voters else self._controller_alone()
        self.brokers = {node_id: self._broker(node_id, is_voter=node_id <= voters) for node_id in range(1, count + 1)}
        if voters:
            ports = {node_id: self.brokers[node_id].reserve_port(CONTROLLERS) for node_id in range(1, voters + 1)}
            self._quorum = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports.items())

    def _controller_alone(self) -> RunningBroker:
        return self._node(CONTROLLER_ID, {"process.roles": "controller", "listeners": f"{CONTROLLERS}://127.0.0.1:0"})

    def __repr__(self) -> str:
        return f"<RunningCluster of {len(self.brokers)}, {self.bootstrap_servers}>"

    def _broker(self, node_id: int, *, is_voter: bool) -> RunningBroker:
        if not is_voter:
            return self._node(node_id, {"process.roles": "broker"})
        listeners = f"{TEST_SETTINGS['listeners']},{CONTROLLERS}://127.0.0.1:0"
        return self._node(node_id, {"process.roles": "broker,controller", "listeners": listeners})

    def _voters(self, node_id: int) -> str:
        """Return `controller.quorum.voters` as a node is told it."""
        if self._controller is None:
            return self._quorum
        where = "127.0.0.1:0" if node_id == CONTROLLER_ID else self._controller.bootstrap
        return f"{CONTROLLER_ID}@{where}"

    def _nodes(self) -> list[RunningBroker]:
        """Return all, in the order in which they are stopped."""
        return [*reversed(self.brokers.values()), *([] if self._controller is None else [self._controller])]

    def _decider(self) -> RunningBroker:
        """Return a node that knows what was decided."""
        if self._controller is not None:
            return self._controller
        living = (each for each in self.brokers.values() if each.is_serving and not each.is_isolated)
        return next(living, self.brokers[1])

    def _node(self, node_id: int, own: Mapping[str, str]) -> RunningBroker:
        directory = self._data_dir / str(node_id)

        def read_options(more: Mapping[str, str]) -> BrokerOptions:
            from odradek.kernel.broker import read_broker_options

            chosen = {**self._settings_of_all, "node.id": str(node_id), **own, **more}
            chosen["controller.quorum.voters"] = self._voters(node_id)
            return read_broker_options(
                config=self._config,
                environment={},
                options=[f"{key}={value}" for key, value in chosen.items()],
                data_dir=directory,
            )

        network = _new_network() if node_id != CONTROLLER_ID else None
        return RunningBroker(
            directory,
            read_options,
            None,
            None,
            is_time_virtual=self._clock is not None,
            clock=self._clock,
            network=network,
        )

    # ---------------------------------------------------------------------------------------------------- addresses

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT` of every broker, for `bootstrap.servers`; those that do not serve are among them."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def bootstrap(self) -> str:
        """`HOST:PORT` of every broker that is not cut off: where the helpers ask."""
        return ",".join(broker.bootstrap for broker in self.brokers.values() if not broker.is_isolated)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of the broker that leads a partition by what the controller has decided; -1 for none.

        Raises:
            ValueError: There is no such partition.
        """
        return self._decider().leader(topic, partition)

    # --------------------------------------------------------------------------------------------------------- life

    def start_all(self) -> None:
        """Start every node that does not run.

        Raises:
            OdradekError: One cannot start: as `odradek serve` says it.
        """
        if self._controller is not None:
            self._controller.start()
        with ThreadPoolExecutor(len(self.brokers), "odradek cluster") as threads:
            list(threads.map(RunningBroker.start, self.brokers.values()))

    def start(self, node_id: int) -> None:
        """Start a broker again, on the same port with the same data; see `RunningBroker.start`.

        Raises:
            ValueError: It is cut off: it would wait for its controller in vain.
        """
        if self._one(node_id).is_isolated:
            raise ValueError(f"start: broker {node_id} is cut off; heal the cluster first")
        self._one(node_id).start()

    def stop(self, node_id: int) -> None:
        """Stop a broker as SIGTERM does: what it leads moves to others first; see `RunningBroker.stop`.

        Raises:
            ValueError: It is cut off: it would wait for its controller in vain.
        """
        if self._one(node_id).is_isolated:
            raise ValueError(f"stop: broker {node_id} is cut off; heal the cluster first, or kill it")
        self._one(node_id).stop()

    def kill(self, node_id: int) -> None:
        """End a broker as `kill -9` does; see `RunningBroker.kill`. The controller notices at once."""
        self._one(node_id).kill()

    def pause(self, node_id: int) -> None:
        """Have a broker do nothing, as SIGSTOP does; see `RunningBroker.pause`.

        After `broker.session.timeout.ms` without a word from it the controller gives what it leads to others.
        """
        self._one(node_id).pause()

    def resume(self, node_id: int) -> None:
        """Let a broker go on after `pause`."""
        self._one(node_id).resume()

    def isolate(self, node_id: int) -> None:
        """Cut a broker off, as by a pulled cable: from the other brokers, from the controller and from all clients.

        Clients are cut off, too, for a test's are where the rest of the cluster is: one that still reached the broker
        would stand on its side of the cut. Nobody is refused and no connection ends, not even by `kill`, until `heal`.
        The broker goes on by itself. After `broker.session.timeout.ms` the controller gives what it leads to others.

        Raises:
            ValueError: There is no such broker; or this system has no epoll.
        """
        self._one(node_id).isolate()

    def heal(self) -> None:
        """Connect again whoever is cut off; nothing happens otherwise. What was sent meanwhile arrives."""
        for broker in self.brokers.values():
            broker.heal()

    def _one(self, node_id: int) -> RunningBroker:
        broker = self.brokers.get(node_id)
        if broker is None:
            raise ValueError(f"the cluster has no broker {node_id}; it has {', '.join(map(str, self.brokers))}")
        return broker

    # --------------------------------------------------------------------------------------------------------- time

    def now_ms(self) -> int:
        """Return the brokers' wall clock, in milliseconds since the Unix epoch: for the timestamps of records."""
        return self._decider().now_ms()

    def advance(self, duration: str | timedelta | int, *, silent: Iterable[str] = ()) -> None:
        """Let time pass for all brokers at once, and return when what became due meanwhile is done.

        As a single broker's (`RunningBroker.advance`): clients that are connected count as having spoken all along, and
        so do brokers, but for those that are cut off or paused: their sessions end. What is stopped stays as it is.

        Args:
            duration: `"30m"`, `"7d"`, `"1h30m"`, `"PT5M"`; milliseconds; a `timedelta`.
            silent: Clients that shall not count as having spoken, and are not heard meanwhile: client ids, member ids,
                ids of static members. Brokers are silenced by `isolate` and `pause`.

        Raises:
            ValueError: Time is real here; nobody of that name was ever here; or the duration is negative.
            ConfigError: The text is no duration.
            BrokerDiedError: A broker ended by itself.
        """
        if self._clock is None:
            raise ValueError(
                "advance: time is real here; start the cluster by `running_cluster(virtual_time=True)`, or override "
                "the fixture `odradek_virtual_time`"
            )
        from .cluster_time import ClusterTime
        from .virtual_time import duration_ms

        nodes = self._nodes()
        running = [shared for node in nodes if (shared := node.share_time()) is not None]
        is_anybody_away = len(running) < len(nodes) or any(broker.is_isolated for broker in self.brokers.values())
        session_ms = int(self._settings_of_all.get("broker.session.timeout.ms", SESSION_MS))
        ClusterTime(self._clock).advance(
            running,
            duration_ms(duration),
            silent={silent} if isinstance(silent, str) else {*silent},
            in_small_steps_ms=session_ms + MORE_THAN_A_SESSION_MS if is_anybody_away else 0,
        )

    # ---------------------------------------------------------------------------------------------------------- end

    def check(self) -> None:
        """Do nothing while every node lives that was not ended by the test.

        Raises:
            BrokerDiedError: One ended by itself.
        """
        for node in self._nodes():
            node.check()

    def close(self) -> None:
        """Stop all for good, the controller last; whoever is cut off is connected first."""
        self.heal()
        _close_each([node.close for node in self._nodes()])


def _new_clock() -> AdvancedClock:
    from odradek.kernel.machine.clock import SystemClock
    from odradek.kernel.machine.system.machine import real_machine

    from .advanced_clock import AdvancedClock

    return AdvancedClock(timer=real_machine().timer, wall=SystemClock())


def _new_network() -> CutNetwork | None:
    """Return a network that can be cut, where the system has what it takes."""
    from .cut_network import CutNetwork, can_be_cut

    return CutNetwork() if can_be_cut() else None


def _said_by(config: Path | None) -> Collection[str]:
    """Return which of the broker's keys a configuration file has."""
    from odradek.kernel.config.settings import read_settings

    return () if config is None else read_settings(config=config).file.broker.keys()


def _close_each(closes: list[Callable[[], None]]) -> None:
    """Call all, and raise what the first raised that failed."""
    try:
        closes[0]()
    finally:
        if closes[1:]:
            _close_each(closes[1:])


@contextmanager
def running_cluster(
    settings: Mapping[str, object] | None = None,
    *,
    brokers: int = REPLICAS,
    data_dir: Path | None = None,
    virtual_time: bool = False,
    voters: int = 0,
    config: Path | None = None,
) -> Iterator[RunningCluster]:
    """Run a cluster for the time of a `with` block.

    Args:
        settings: Kafka's broker keys, for all brokers; lists as comma-separated text. Topics have three replicas, two
            of which have to be in sync, unless they say something else.
        brokers: How many; a controller is there besides.
        data_dir: Where the data lives and stays: a second block with the same directory finds it again. By default a
            temporary directory, removed at the end.
        virtual_time: Whether time can be advanced: `RunningCluster.advance`.
        voters: How many of the brokers keep the metadata together, the first ones, instead of the controller that is
            there besides.
        config: A configuration file of all nodes, under the settings: what it says holds. `[plugins]` stands there.

    Raises:
        OdradekError: A broker could not start.
        BrokerDiedError: One ended by itself; raised at the end of the block, or by `RunningCluster.check`.
        ValueError: A setting is one that each broker has for itself; or there are not so many brokers as voters.

    .. versionadded:: 0.1
    """
    chosen = settings_text(settings)
    if of_each := sorted(OF_EACH & {*chosen, *_said_by(config)}):
        raise ValueError(f"running_cluster: {', '.join(of_each)}: each broker of a cluster has its own")
    if brokers < 1:
        raise ValueError(f"running_cluster: a cluster has brokers, and {brokers} is none")
    if not 0 <= voters <= brokers:
        raise ValueError(f"running_cluster: {voters} voters among {brokers} brokers")
    with tempfile.TemporaryDirectory(prefix="odradek-", ignore_cleanup_errors=True) as folder:
        where = data_dir or Path(folder)
        cluster = RunningCluster(where, chosen, brokers, is_time_virtual=virtual_time, voters=voters, config=config)
        try:
            cluster.start_all()
            yield cluster
        finally:
            cluster.close()
