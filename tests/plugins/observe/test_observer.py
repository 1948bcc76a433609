"""What the plugin offers to a broker: metrics, services, and HTTP where it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from odradek.kernel.api import ConfigError
from odradek.plugins import observe
from odradek.plugins.observe.settings import HTTP_KEY

from .opened import watched

if TYPE_CHECKING:
    from odradek.kernel.api import Service


def services(listener: str) -> list[Service]:
    return list(observe.odradek_services(watched(settings={HTTP_KEY: listener})))


def test_http_is_off_unless_it_is_asked_for() -> None:
    assert [service.name for service in services("")] == ["idle monitor"]


def test_the_metrics_and_the_services_of_a_broker_are_of_one_observer() -> None:
    broker = watched()
    metrics = {metric.name: metric for metric in observe.odradek_metrics(broker)}
    (monitor,) = observe.odradek_services(broker)
    idle = metrics["kafka_network_socketserver_networkprocessoravgidle_percent"]
    assert not idle.read()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(monitor.run)
            await trio.sleep(5.5)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert idle.read() == {(): 0.9}


def test_what_every_plugin_offers_is_served_where_the_setting_says() -> None:
    broker = watched(settings={HTTP_KEY: "127.0.0.1:0"})
    broker.figures.offered = observe.odradek_metrics(broker)  # type: ignore[attr-defined]
    (*_, http) = observe.odradek_services(broker)

    async def main() -> bytes:
        await http.prepare()
        host, _, port = http.address().rpartition(":")
        got = bytearray()
        async with trio.open_nursery() as nursery:
            await nursery.start(http.run)
            stream = await trio.open_tcp_stream(host, int(port))
            await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            async for data in stream:
                got.extend(data)
            await stream.aclose()
            nursery.cancel_scope.cancel()
        return bytes(got)

    assert b"\nkafka_server_replicamanager_leadercount 0\n" in trio.run(main)


def test_a_wrong_setting_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        services("nonsense")
