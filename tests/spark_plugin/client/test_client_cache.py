"""One client per process and settings; what a fork inherited is neither used nor closed."""

from __future__ import annotations

import attrs

from odradek.spark_plugin.client.cache import CLIENTS_MAX, ClientCache
from odradek.spark_plugin.client.client import Client
from odradek.spark_plugin.client.settings import ClientSettings
from tests.spark_plugin.client.scripted import Network


@attrs.define
class Process:
    """A process with an id that may change, as in a child of fork."""

    number: int = 1
    made: list[Client] = attrs.field(factory=list)
    network: Network = attrs.field(factory=Network)

    def cache(self) -> ClientCache:
        self.network.broker(1, "a")
        return ClientCache(make=self._make, process_id=lambda: self.number)

    def _make(self, settings: ClientSettings) -> Client:
        client = Client(settings, connector=self.network.connect, clock=self.network.clock)
        self.made.append(client)
        return client


def settings(client_id: str = "x") -> ClientSettings:
    return ClientSettings.of({"bootstrap.servers": "a:9092", "client.id": client_id})


def test_equal_settings_share_a_client() -> None:
    process = Process()
    cache = process.cache()

    assert cache.client_for(settings()) is cache.client_for(settings())
    assert cache.client_for(settings("y")) is not cache.client_for(settings())
    assert len(process.made) == 2


def test_a_forked_child_begins_anew_and_leaves_its_parents_sockets_alone() -> None:
    process = Process()
    cache = process.cache()
    inherited = cache.client_for(settings())
    inherited.topics()

    process.number = 2
    own = cache.client_for(settings())

    assert own is not inherited
    assert not process.network.brokers["a", 9092].connections[0].is_closed


def test_a_child_that_closes_closes_nothing_of_its_parent() -> None:
    process = Process()
    cache = process.cache()
    cache.client_for(settings()).topics()

    process.number = 2
    cache.close()

    assert not process.network.brokers["a", 9092].connections[0].is_closed


def test_the_client_that_was_not_used_for_longest_is_closed_first() -> None:
    process = Process()
    cache = process.cache()
    clients = [cache.client_for(settings(f"c{number}")) for number in range(CLIENTS_MAX)]
    for client in clients:
        client.topics()
    cache.client_for(settings("c0"))

    cache.client_for(settings("one more"))

    closed = [one.is_closed for one in process.network.brokers["a", 9092].connections]
    assert closed == [False, True] + [False] * (CLIENTS_MAX - 2)


def test_closing_closes_all() -> None:
    process = Process()
    cache = process.cache()
    cache.client_for(settings()).topics()

    cache.close()

    assert process.network.brokers["a", 9092].connections[0].is_closed
    assert cache.client_for(settings()) is process.made[1]
